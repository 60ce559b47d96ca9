"""Plans that wait for approval, are rejected, rolled back, or only elect leaders."""

from __future__ import annotations

from streaming.apply.journal.tasks import fate_of_proposal
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


def test_what_can_be_rolled_back_is_and_the_rest_is_named() -> None:
    """Of four topics that a heal moved one is deleted, one has another replication factor, and one grows."""
    driver = Driver()
    driver.racks({"a": [1, 3], "b": [2, 4]})
    for topic in "tuvw":
        driver.batch(driver.event("topic_created", topic=topic, replica_assignment={0: [1, 2]}))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    heal = driver.journal[-1]
    driver.batch(driver.event("broker_joined", broker_id=1, rack="a", minute=1))
    driver.batch(driver.event("topic_deleted", topic="t", minute=1))
    driver.batch(driver.event("replication_factor_changed", topic="u", replication_factor=1, minute=1))
    driver.batch(driver.event("partitions_added", topic="v", partitions=2, minute=1))
    driver.batch(driver.event("plan_rolled_back", plan_version=heal.plan_version, digest=heal.digest, event_id="back"))
    back = driver.journal[-1]
    assert back.kind == "rollback"
    assert back.cause == (
        f"version {heal.plan_version} rolled back by event back; "
        "not rolled back: topic t is gone, u-0 has changed since"
    )
    layout = driver.layout()
    assert (layout["v"][0], layout["w"], len(layout["v"])) == ([1, 2], [[1, 2]], 2)
    result = driver.batch(
        driver.event("plan_rolled_back", plan_version=heal.plan_version, digest=heal.digest, event_id="again")
    )
    assert outcomes(result) == {"again": "stale"}
    assert reasons(result)["again"].startswith(
        f"nothing of version {heal.plan_version} can be rolled back: topic t is gone, u-0 has changed since, "
    )


def test_what_would_go_back_to_a_lost_broker_stays() -> None:
    driver = Driver()
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [3, 4]}))
    driver.batch(driver.event("replication_factor_changed", topic="t", replication_factor=1))
    shrunk = driver.journal[-1]
    assert driver.layout()["t"] == [[1], [3]]
    driver.batch(driver.event("broker_left", broker_id=2, reason="decommissioned"))
    rollback = {"plan_version": shrunk.plan_version, "digest": shrunk.digest}
    driver.batch(driver.event("plan_rolled_back", **rollback, event_id="back"))
    assert driver.journal[-1].cause == (
        f"version {shrunk.plan_version} rolled back by event back; not rolled back: t-0 was on a broker that is lost"
    )
    assert driver.layout()["t"] == [[1], [3, 4]]
    refused = driver.batch(driver.event("plan_rolled_back", **rollback, event_id="again"))
    assert outcomes(refused) == {"again": "rejected"}
    assert "cannot be undone: " in reasons(refused)["again"]


def test_what_is_seen_of_leaders_leaves_a_proposal_and_what_is_seen_elsewhere_does_not(six: Driver) -> None:
    six.batch(six.event("broker_joined", broker_id=7, rack="a", minute=1))
    six.batch(six.event("rebalance_requested", minute=1))
    proposal = six.journal[-1]
    assert proposal.approval == "proposed"
    first = six.layout()["t"][0]

    def seen(replicas: list[int], minute: float) -> None:
        row = {"topic": "t", "partition": 0, "replicas": replicas, "leader": replicas[1], "isr": replicas}
        six.batch(six.event("assignment_observed", partitions=[row], minute=minute))

    seen(first, 2)
    assert (six.journal[-1].kind, six.journal[-1].supersedes) == ("observation", None)
    for state in (six.memory.clusters["c"], six.memory.reload("c")):
        assert state.proposal is not None and state.proposal.plan_version == proposal.plan_version
    seen([7, *first[1:]], 3)
    assert six.journal[-1].supersedes == proposal.plan_version
    assert fate_of_proposal(proposal, six.journal) == (
        f"since version {six.journal[-1].plan_version} the cluster is not as it was planned for: "
        "observed: 0 partitions adopted, 1 corrected"
    )
    result = six.batch(
        six.event(
            "plan_approved", plan_version=proposal.plan_version, digest=proposal.digest, event_id="late", minute=4
        )
    )
    assert outcomes(result) == {"late": "stale"}
