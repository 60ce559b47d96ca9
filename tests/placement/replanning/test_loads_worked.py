"""Planning by load, on clusters that a person can follow."""

from __future__ import annotations

import pytest

from placement import Assignment, Band, Broker, Limits, Loads, LogDir, PartitionLoad, replan, verify
from placement.errors import InvalidLimitError, InvalidLoadError
from placement.loads.model import WEIGHTS

GB = 10**9
BROKERS = [Broker(1), Broker(2), Broker(3)]


def loaded(layout: Assignment, sizes: list[int], limits: dict[int, Limits] | None = None) -> Loads:
    """Only disk differs: the rates follow the size."""
    rows = [(topic, partition) for topic, partition, _ in layout.rows()]
    measured = [PartitionLoad(t, p, s * GB, s, s) for (t, p), s in zip(rows, sizes, strict=True)]
    return Loads.of(layout, measured, limits=limits)


LAYOUT = Assignment.from_topics({"t": [[1], [1], [1], [1], [2], [2], [3], [3]]})
SIZES = [40, 30, 20, 10, 30, 30, 60, 20]  # on brokers 1, 2, 3: 100, 60, 80 GB
WIDE = Band(settle=0.3, trigger=0.3)


def test_a_crowded_broker_gives_the_fewest_bytes() -> None:
    plan = replan(LAYOUT, BROKERS, mode="rebalance", loads=loaded(LAYOUT, SIZES), band=Band(settle=0.2, trigger=0.2))
    assert plan.loads is not None
    disk = WEIGHTS.index("disk")
    assert (plan.loads.before[disk] // GB).tolist() == [100, 60, 80]
    assert (plan.loads.after[disk] // GB).tolist() == [90, 70, 80]
    assert [(m.partition, m.before, m.after) for m in plan.moves] == [(3, (1,), (2,))]
    assert plan.loads.moved_bytes == 10 * GB
    assert plan.loads.lower_bound_bytes == 10 * GB
    assert verify(plan)


def test_within_the_trigger_nothing_moves() -> None:
    plan = replan(LAYOUT, BROKERS, mode="rebalance", loads=loaded(LAYOUT, SIZES), band=WIDE)
    assert (len(plan.moves), plan.leader_changes) == (0, 0)


def test_a_hard_limit_is_kept_though_the_band_is_wide() -> None:
    loads = loaded(LAYOUT, SIZES, {1: Limits(disk=95 * GB)})
    plan = replan(LAYOUT, BROKERS, mode="rebalance", loads=loads, band=WIDE)
    assert [(m.partition, m.after) for m in plan.moves] == [(3, (2,))]


def test_a_hot_leader_costs_no_bytes() -> None:
    layout = Assignment.from_topics({"t": [[1, 2], [1, 2], [2, 1], [2, 1]]})
    read = [90, 90, 10, 10]
    measured = [PartitionLoad("t", p, GB, 100, r) for p, r in enumerate(read)]
    plan = replan(layout, BROKERS[:2], mode="rebalance", loads=Loads.of(layout, measured))
    assert plan.loads is not None
    assert plan.loads.moved_bytes == plan.moved_replicas == 0
    assert plan.loads.before[WEIGHTS.index("bytes_out")].tolist() == [180, 20]
    assert plan.loads.after[WEIGHTS.index("bytes_out")].tolist() == [100, 100]


def test_new_replicas_go_to_disks_with_room() -> None:
    dirs = (LogDir("/d1", limit=100 * GB, used=95 * GB), LogDir("/d2", limit=100 * GB, used=50 * GB))
    brokers = [Broker(1, state="dead"), Broker(2), Broker(3)]
    layout = Assignment.from_topics({"t": [[1, 2], [2, 1]]})
    loads = loaded(layout, [20, 4], {3: Limits(log_dirs=dirs)})
    plan = replan(layout, brokers, loads=loads)
    assert plan.loads is not None
    placed = {
        broker: path
        for move, paths in zip(plan.moves, plan.loads.log_dirs, strict=True)
        for broker, path in zip(move.after, paths, strict=True)
    }
    assert placed == {2: "any", 3: "/d2"}
    assert verify(plan)


def test_a_budget_in_bytes_takes_the_lost_first() -> None:
    brokers = [Broker(1, state="dead"), Broker(2), Broker(3), Broker(4)]
    layout = Assignment.from_topics({"t": [[1, 2], [1, 3], [2, 3], [3, 2]]})
    plan = replan(layout, brokers, mode="rebalance", loads=loaded(layout, [5, 7, 50, 60]), max_bytes=12 * GB)
    assert plan.loads is not None
    assert plan.loads.moved_bytes == 12 * GB
    assert [m.partition for m in plan.moves if m.reason == "lost"] == [0, 1]


def test_what_is_not_known_is_the_median_of_the_topic() -> None:
    layout = Assignment.from_topics({"a": [[1], [1], [1], [1]], "b": [[1]]})
    measured = [PartitionLoad("a", 0, 10, 4, 9), PartitionLoad("a", 1, 30, 6), PartitionLoad("a", 2, 20)]
    loads = Loads.of(layout, [*measured, PartitionLoad("gone", 0, 99)], out_per_in=2.0)
    assert loads.size.tolist() == [10, 30, 20, 20, 20]
    assert loads.bytes_in.tolist() == [4, 6, 6, 6, 6]
    assert loads.bytes_out.tolist() == [9, 12, 12, 12, 12]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: PartitionLoad("t", 0, -1), "partition t-0: size is -1: it must be an integer from 0 to"),
        (lambda: Loads.of(LAYOUT, [PartitionLoad("t", 0)] * 2), "partition t-0 has more than one load"),
        (lambda: Limits(log_dirs=(LogDir("/d", 1), LogDir("/d", 2))), "repeat a path"),
    ],
)
def test_loads_that_cannot_be_are_refused(given: object, said: str) -> None:
    with pytest.raises(InvalidLoadError, match=said):
        given()  # type: ignore[operator]


def test_options_that_contradict_each_other_are_refused() -> None:
    loads = loaded(LAYOUT, SIZES)
    for options in ({"max_bytes": -1}, {"max_bytes": 1, "max_moves": 1}, {"strict_spread": True}):
        with pytest.raises(InvalidLimitError):
            replan(LAYOUT, BROKERS, mode="rebalance", loads=loads, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidLimitError, match="max_bytes needs loads"):
        replan(LAYOUT, BROKERS, max_bytes=1)
    with pytest.raises(InvalidLimitError, match="trigger"):
        Band(settle=0.2, trigger=0.1)
    with pytest.raises(InvalidLoadError, match="1 partitions and the layout has 8"):
        replan(LAYOUT, BROKERS, loads=loaded(Assignment.from_topics({"t": [[1]]}), [1]))
