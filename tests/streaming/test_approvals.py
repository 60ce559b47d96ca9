"""Plans that wait for approval, are rejected, rolled back, or only elect leaders."""

from __future__ import annotations

from tests.streaming.driving import RACKS, Driver, outcomes, reasons


def test_a_rebalance_waits_for_approval_and_is_applied_exactly_as_proposed(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    before = six.layout()
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    assert (proposed.kind, proposed.approval) == ("rebalance", "proposed")
    assert six.layout() == before
    approval = six.event("plan_approved", plan_version=proposed.plan_version, digest=proposed.digest, minute=3)
    (approved,) = six.batch(approval).versions
    assert (approved.approval, approved.base_version) == ("approved", proposed.plan_version)
    assert approved.digest == proposed.digest
    assert approved.moves == proposed.moves
    assert six.layout() != before
    assert sum(replicas.count(7) for replicas in six.layout()["t"]) == 2


def test_an_approval_with_another_digest_is_rejected(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    result = six.batch(six.event("plan_approved", event_id="x", plan_version=proposed.plan_version, digest="no"))
    assert outcomes(result) == {"x": "rejected"}
    assert "is not that of version" in reasons(result)["x"]


def test_an_approval_is_stale_once_the_cluster_moved_on(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    six.batch(six.event("topic_created", topic="u", minute=3))
    result = six.batch(
        six.event("plan_approved", event_id="x", plan_version=proposed.plan_version, digest=proposed.digest)
    )
    assert outcomes(result) == {"x": "stale"}
    assert "the cluster is at version 5" in reasons(result)["x"]


def test_a_rejected_plan_stays_on_record_and_can_no_longer_be_approved(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    of = {"plan_version": proposed.plan_version, "digest": proposed.digest}
    (rejection,) = six.batch(six.event("plan_rejected", **of)).versions
    assert (rejection.kind, rejection.approval, rejection.base_version) == ("rejection", "rejected", 4)
    assert outcomes(six.batch(six.event("plan_approved", event_id="x", **of))) == {"x": "stale"}


def test_a_rollback_restores_the_layout_as_a_new_version(six: Driver) -> None:
    before = six.layout()
    (healed,) = six.batch(six.event("broker_left", broker_id=3, reason="decommissioned", minute=1)).versions
    six.batch(six.event("broker_joined", broker_id=3, rack="b", minute=2))
    roll = six.event("plan_rolled_back", plan_version=healed.plan_version, digest=healed.digest, minute=3)
    (rolled,) = six.batch(roll).versions
    assert (rolled.kind, rolled.base_version, rolled.numbers.moved_replicas) == ("rollback", healed.plan_version, 3)
    assert six.layout() == before


def test_a_rollback_onto_a_broker_that_is_gone_is_rejected(six: Driver) -> None:
    (healed,) = six.batch(six.event("broker_left", broker_id=3, reason="unregistered", minute=1)).versions
    roll = six.event("plan_rolled_back", event_id="x", plan_version=healed.plan_version, digest=healed.digest)
    result = six.batch(roll)
    assert outcomes(result) == {"x": "rejected"}
    assert "cannot be undone" in reasons(result)["x"]


def test_a_rollback_is_stale_where_a_partition_has_changed_since(six: Driver) -> None:
    (healed,) = six.batch(six.event("broker_left", broker_id=3, reason="decommissioned", minute=1)).versions
    six.batch(six.event("topic_deleted", topic="t", minute=2))
    roll = six.event("plan_rolled_back", event_id="x", plan_version=healed.plan_version, digest=healed.digest)
    assert outcomes(six.batch(roll)) == {"x": "stale"}


def test_a_preferred_election_moves_nothing(six: Driver) -> None:
    before = six.layout()
    (election,) = six.batch(six.event("preferred_election_requested")).versions
    assert (election.kind, election.numbers.partitions_changed, election.numbers.moved_replicas) == ("election", 6, 0)
    assert six.layout() == before


def test_a_gated_heal_records_the_departure_at_once_and_proposes_the_moves() -> None:
    driver = Driver('[policy]\napproval = ["heal"]\n')
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    before = driver.layout()
    fact, proposal = driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned", minute=1)).versions
    assert (fact.kind, fact.approval) == ("membership", "not_required")
    assert (proposal.kind, proposal.approval) == ("heal", "proposed")
    assert driver.layout() == before
    driver.batch(driver.event("plan_approved", plan_version=4, digest=proposal.digest))
    assert all(3 not in replicas for replicas in driver.layout()["t"])


def test_what_makes_a_proposal_stale_says_so(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    (again,) = six.batch(six.event("rebalance_requested", minute=3)).versions
    (created,) = six.batch(six.event("topic_created", topic="u", minute=4)).versions
    (later,) = six.batch(six.event("topic_created", topic="w", minute=5)).versions
    assert [v.supersedes for v in (proposed, again, created, later)] == [
        None,
        proposed.plan_version,
        again.plan_version,
        None,
    ]


def _two_of_three() -> Driver:
    driver = Driver()
    driver.racks({"a": [1, 2, 3]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2]}))
    return driver


def test_a_rollback_that_would_keep_only_failed_copies_is_rejected() -> None:
    driver = _two_of_three()
    grown = driver.event("replication_factor_changed", topic="t", replication_factor=3, minute=1)
    (raised,) = driver.batch(grown).versions
    driver.batch(*(driver.event("broker_left", broker_id=b, reason="failed", minute=2) for b in (1, 2)))
    roll = {"plan_version": raised.plan_version, "digest": raised.digest}
    result = driver.batch(driver.event("plan_rolled_back", event_id="x", minute=3, **roll))
    assert outcomes(result) == {"x": "rejected"}
    assert "gives up a replica that is in sync" in reasons(result)["x"]


def test_a_rollback_onto_a_broker_that_has_failed_is_rejected() -> None:
    driver = _two_of_three()
    (healed,) = driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned", minute=1)).versions
    driver.batch(driver.event("broker_joined", broker_id=1, rack="a", minute=2))
    driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=3))
    roll = {"plan_version": healed.plan_version, "digest": healed.digest}
    result = driver.batch(driver.event("plan_rolled_back", event_id="x", minute=4, **roll))
    assert outcomes(result) == {"x": "rejected"}
    assert "is placed on a broker that is not alive" in reasons(result)["x"]


def test_an_approval_is_stale_also_in_the_batch_in_which_a_broker_fails(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    (proposed,) = six.batch(six.event("rebalance_requested", minute=2)).versions
    terms = {"plan_version": proposed.plan_version, "digest": proposed.digest}
    result = six.batch(
        six.event("broker_left", broker_id=7, reason="failed", minute=3),
        six.event("plan_approved", event_id="x", minute=3, **terms),
    )
    assert outcomes(result)["x"] == "stale"
