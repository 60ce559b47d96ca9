"""Between a plan and its being carried out the cluster is seen where the plan takes it from: that is no drift."""

from __future__ import annotations

from typing import Any

import pytest

from tests.streaming.driving import Driver, line, outcomes, reasons


@pytest.fixture
def driver() -> Driver:
    """v2: t on [1, 2] and [2, 1]; v3: both observed; v4 drains broker 1."""
    driver = Driver()
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))
    driver.batch(observed(driver, {0: [1, 2], 1: [2, 1]}))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    assert driver.layout() == {"t": [[3, 2], [2, 3]]}
    return driver


def observed(driver: Driver, replicas: dict[int, list[int]], *, isr: list[int] | None = None) -> bytes:
    seen: list[dict[str, Any]] = [
        {"topic": "t", "partition": p, "replicas": row, "leader": row[0], "isr": isr or row}
        for p, row in replicas.items()
    ]
    return driver.event("assignment_observed", partitions=seen)


def test_what_waits_to_be_moved_has_not_drifted_whatever_its_isr_is(driver: Driver) -> None:
    result = driver.batch(observed(driver, {0: [1, 2], 1: [2, 1]}, isr=[2]))
    assert outcomes(result) == {"e8": "no_effect"}
    assert reasons(result) == {
        "e8": "every observed partition is as the state has it, or (2) waits for its plan to be carried out"
    }
    assert driver.layout() == {"t": [[3, 2], [2, 3]]}


def test_what_is_done_is_taken_over_while_the_rest_waits(driver: Driver) -> None:
    result = driver.batch(observed(driver, {0: [3, 2], 1: [2, 1]}))
    assert [line(v) for v in result.versions] == ["v5 observation not_required: observed: t-0 has leader 3, ISR 3,2"]
    assert result.versions[0].only_observes
    assert driver.layout() == {"t": [[3, 2], [2, 3]]}


def test_once_seen_in_its_place_going_back_is_drift(driver: Driver) -> None:
    driver.batch(observed(driver, {0: [3, 2], 1: [2, 3]}))
    result = driver.batch(observed(driver, {0: [1, 2], 1: [2, 3]}))
    assert [line(v) for v in result.versions] == [
        "v6 observation not_required: observed: 0 partitions adopted, 1 corrected"
    ]
    assert driver.layout() == {"t": [[1, 2], [2, 3]]}


def test_a_third_place_is_drift_also_while_the_plan_waits(driver: Driver) -> None:
    result = driver.batch(observed(driver, {0: [4, 2]}))
    assert [line(v) for v in result.versions] == [
        "v5 observation not_required: observed: 0 partitions adopted, 1 corrected"
    ]


def test_several_plans_may_wait_one_upon_the_other(driver: Driver) -> None:
    driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned"))
    assert driver.layout() == {"t": [[4, 2], [2, 4]]}
    result = driver.batch(observed(driver, {0: [1, 2], 1: [2, 3]}))
    assert [line(v) for v in result.versions] == []
    assert driver.layout() == {"t": [[4, 2], [2, 4]]}


def test_what_is_taken_back_on_its_way_has_not_drifted(driver: Driver) -> None:
    """On its way no leader is told; then the executor is stopped, and cancels."""
    way = {"topic": "t", "partition": 0, "replicas": [3, 2], "leader": None, "isr": [2]}
    driver.batch(driver.event("assignment_observed", partitions=[way]))
    result = driver.batch(observed(driver, {0: [1, 2], 1: [2, 1]}))
    assert [line(v) for v in result.versions] == []
    assert driver.layout() == {"t": [[3, 2], [2, 3]]}


def test_after_a_restart_the_answer_is_the_same(driver: Driver) -> None:
    driver.memory.clusters.clear()
    driver.memory.reload("c")
    assert driver.memory.clusters["c"].moving == (4,)
    driver.batch(observed(driver, {0: [1, 2], 1: [2, 1]}))
    assert driver.layout() == {"t": [[3, 2], [2, 3]]}


def test_unchanged_drift_is_reported_once_and_once_more_when_it_is_over() -> None:
    driver = Driver('[policy]\non_drift = "report"\n')
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))
    driver.batch(observed(driver, {0: [1, 2], 1: [2, 1]}))

    def seen(replicas: dict[int, list[int]], *, isr: list[int] | None = None) -> list[str]:
        return [line(v) for v in driver.batch(observed(driver, replicas, isr=isr)).versions]

    assert seen({0: [4, 2], 1: [2, 1]}) == ["v4 drift reported: drift: 1 partitions are not where they were planned"]
    assert seen({0: [4, 2], 1: [2, 1]}) == []
    driver.memory.clusters.clear()
    result = driver.batch(observed(driver, {0: [4, 2], 1: [2, 1]}, isr=None))
    assert list(reasons(result).values()) == [
        "every observed partition is as the state has it, or (1) has drifted as was reported"
    ]
    assert seen({0: [4, 2], 1: [2, 4]}) == ["v5 drift reported: drift: 1 partitions are not where they were planned"]
    assert seen({0: [3, 2]}) == ["v6 drift reported: drift: 1 partitions are not where they were planned"]
    assert seen({0: [1, 2]}) == ["v7 drift reported: drift is over: 1 partitions are where they were planned"]
    assert seen({0: [1, 2]}) == []
    assert seen({0: [3, 2]}) == ["v8 drift reported: drift: 1 partitions are not where they were planned"]


@pytest.mark.parametrize("approval", ["not_required", "proposed"])
@pytest.mark.parametrize("leader", [True, False])
def test_unchanged_drift_is_planned_back_once_and_again_when_it_was_over(approval: str, leader: bool) -> None:
    gated = '["restore"]' if approval == "proposed" else "[]"
    driver = Driver(f'[policy]\non_drift = "restore"\napproval = {gated}\n')
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))

    def seen(replicas: dict[int, list[int]]) -> list[str]:
        rows = [
            {"topic": "t", "partition": p, "replicas": row} | ({"leader": row[0], "isr": row} if leader else {})
            for p, row in replicas.items()
        ]
        result = driver.batch(driver.event("assignment_observed", partitions=rows))
        driver.memory.clusters.clear()
        return [f"{v.kind} {v.approval} {v.cause}" for v in result.versions if v.kind != "observation"]

    def back(count: int) -> str:
        return f"restore {approval} drift: {count} partitions are not where they were planned"

    assert seen({0: [4, 2]}) == [back(1)]
    assert seen({0: [4, 2]}) == seen({0: [4, 2], 1: [2, 1]}) == []
    # What is proposed is proposed together with what is new, which supersedes it.
    assert seen({0: [4, 2], 1: [2, 3]}) == [back(2 if approval == "proposed" else 1)]
    assert seen({0: [4, 2], 1: [2, 3]}) == seen({1: [2, 3]}) == []
    assert seen({0: [1, 2]}) == ["drift reported drift is over: 1 partitions are where they were planned"]
    assert seen({0: [4, 2]}) == [back(1)]


def test_a_restore_that_was_superseded_or_rejected_is_proposed_again() -> None:
    driver = Driver('[policy]\non_drift = "restore"\napproval = ["restore"]\n')
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2]}))

    def seen() -> list[str]:
        return [line(v) for v in driver.batch(observed(driver, {0: [4, 2]})).versions]

    away = "restore proposed: drift: 1 partitions are not where they were planned"
    assert seen() == [f"v3 {away}"]
    driver.batch(driver.event("topic_created", topic="u", replica_assignment={0: [1, 2]}))
    assert seen() == [f"v5 {away}"]
    driver.batch(driver.event("plan_rejected", plan_version=5, digest=driver.journal[-1].digest))
    assert seen() == [f"v7 {away}"]
    driver.batch(driver.event("plan_approved", plan_version=7, digest=driver.journal[-1].digest))
    assert seen() == []


def test_what_is_remembered_of_drift_is_the_same_after_a_restart() -> None:
    """The twenty newest versions that tell of drift are: an older one is put on record again."""
    driver = Driver('[policy]\non_drift = "report"\n')
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}))
    driver.batch(observed(driver, {1: [2, 3]}))
    for turn in range(20):
        driver.batch(observed(driver, {0: [3 + turn % 2, 2]}))
    told = driver.memory.clusters["c"].told
    driver.memory.reload("c")
    driver.batch(observed(driver, {0: [4, 2]}))
    assert driver.memory.clusters["c"].told == told
    assert len(driver.batch(observed(driver, {1: [2, 3]})).versions) == 1
