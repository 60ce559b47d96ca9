"""Replanning: CPU seconds for every kind of event, as a ratio to sorting the same cells, and its growth.

    python -m benchmarks.replan [--quick]

Each line is the median of its rounds. The ratio divides by ``np.sort`` of all replicas of the layout in the same run,
so it says the same on a faster or a busier machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placement import (
    Assignment,
    Broker,
    Replan,
    WaveLimits,
    in_waves,
    place_adminutils,
    place_striped,
    replan,
    replicas_up,
    verify,
)
from tests.clusters import comparison_brokers, comparison_layout, drawn_layout, even_layout, in_state, racked


@dataclass(frozen=True)
class Event:
    """What happens to a cluster, and the limit in CPU seconds that planning for it has to keep."""

    name: str
    brokers: list[Broker]
    mode: str
    limit: float | None = None


def cpu_seconds(call: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def events(count: int, racks: int, limits: dict[str, float]) -> list[Event]:
    brokers = racked(count, racks)
    rack = [b.id for b in brokers if b.rack == "r001"]
    added = [Broker(count + 1000 + i, f"r{i % racks:03d}") for i in range(count // 10)]
    return [
        Event("one broker lost, heal", in_state(brokers, [7], "dead"), "heal", limits.get("lost")),
        Event("one broker lost, rebalance", in_state(brokers, [7], "dead"), "rebalance", limits.get("any")),
        Event("one broker joined", [*brokers, added[0]], "rebalance", limits.get("any")),
        Event("one rack lost", in_state(brokers, rack, "dead"), "heal", limits.get("rack")),
        Event("5% drained", in_state(brokers, range(0, count, 20), "draining"), "heal", limits.get("drained")),
        Event("10% joined", [*brokers, *added], "rebalance", limits.get("joined")),
    ]


def line(layout: Assignment, event: Event, rounds: int) -> Replan:
    plan = replan(layout, event.brokers, mode=event.mode)  # type: ignore[arg-type]
    seconds = cpu_seconds(lambda: replan(layout, event.brokers, mode=event.mode), rounds)  # type: ignore[arg-type]
    cells = layout.replicas.reshape(-1)
    sorting = cpu_seconds(lambda: np.sort(cells), max(rounds, 3))
    limit = "" if event.limit is None else f"{event.limit:.2f}"
    after, leaders = plan.replicas_after, plan.leaders_after
    print(
        f"| {event.name} | {seconds:.3f} | {limit} | {seconds / sorting:.0f} | {plan.moved_replicas} "
        f"| {plan.lower_bound} | {'yes' if plan.optimal else 'no'} | {after.minimum}..{after.maximum} "
        f"| {leaders.minimum}..{leaders.maximum} | {plan.leader_changes} |",
        flush=True,
    )
    return plan


def table(title: str) -> None:
    print(f"\n### {title}\n")
    columns = ["event", "CPU s", "limit", "x np.sort", "moved", "bound", "optimal", "replicas", "leaders", "led anew"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def comparison() -> None:
    table("12 brokers in 3 racks, 1,000 partitions, RF 3: the published comparison")
    brokers = comparison_brokers()
    line(comparison_layout(), Event("broker 12 removed", brokers[:-1], "rebalance"), 5)
    line(comparison_layout(), Event("broker 13 joins rack 1", [*brokers, Broker(13, "r000")], "rebalance"), 5)


def one_size(count: int, racks: int, partitions: int, limits: dict[str, float], rounds: int) -> None:
    table(f"{count:,} brokers in {racks} racks, {partitions:,} partitions, RF 3")
    layout = even_layout(count, racks, partitions, 3)
    for event in events(count, racks, limits):
        line(layout, event, rounds)


def drawn(rounds: int) -> None:
    """One broker lost where topics of 12 partitions lie as Kafka's placers draw them, beside an even layout."""
    for count, racks, partitions in ((201, 3, 100_000), (1000, 20, 200_000)):
        brokers = racked(count, racks)
        layouts = {
            "even": even_layout(count, racks, partitions, 3, per_topic=12),
            "striped": drawn_layout(brokers, partitions, place_striped),
            "AdminUtils": drawn_layout(brokers, partitions, place_adminutils),
        }
        table(
            f"{count:,} brokers in {racks} racks, {partitions:,} partitions, RF 3, topics of 12; one broker lost, heal"
        )
        for name, layout in layouts.items():
            line(layout, Event(name, in_state(brokers, [7], "dead"), "heal"), rounds)


def growth() -> None:
    print("\n### Growth: one broker lost, 100 partitions a broker\n")
    print("| partitions | brokers | CPU s | x np.sort | verify, CPU s |\n| --- | --- | --- | --- | --- |")
    for partitions in (1_000, 10_000, 100_000, 1_000_000):
        count = partitions // 100
        layout = even_layout(count, 5, partitions, 3)
        brokers = in_state(racked(count, 5), [7], "dead")
        plan = replan(layout, brokers)
        seconds = cpu_seconds(lambda a=layout, b=brokers: replan(a, b), 3)  # type: ignore[misc]
        checking = cpu_seconds(lambda p=plan: verify(p), 3)  # type: ignore[misc]
        sorting = cpu_seconds(lambda a=layout: np.sort(a.replicas.reshape(-1)), 3)  # type: ignore[misc]
        print(f"| {partitions:,} | {count:,} | {seconds:.3f} | {seconds / sorting:.0f} | {checking:.3f} |", flush=True)


def waves() -> None:
    print("\n### Waves: at most one move in and one out per broker\n")
    print("| plan | moves | waves | bound | CPU s |\n| --- | --- | --- | --- | --- |")
    layout = even_layout(1000, 20, 200_000, 3)
    for event in events(1000, 20, {}):
        plan = replan(layout, event.brokers, mode=event.mode)  # type: ignore[arg-type]
        up = replicas_up(plan.moves, event.brokers)
        cut = in_waves(plan.moves, up, WaveLimits(1, 1))
        seconds = cpu_seconds(lambda p=plan, u=up: in_waves(p.moves, u, WaveLimits(1, 1)), 3)  # type: ignore[misc]
        print(f"| {event.name} | {len(plan.moves):,} | {cut.count} | {cut.bound} | {seconds:.3f} |", flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    comparison()
    table("201 brokers in 3 racks, 100,000 partitions, RF 3")
    line(even_layout(201, 3, 100_000, 3), Event("201 -> 200", in_state(racked(201, 3), [7], "dead"), "heal", 0.15), 5)
    every = {"lost": 3.0, "any": 3.0, "rack": 3.0, "drained": 3.0, "joined": 3.0}
    one_size(999, 3, 200_000, every, 1 if quick else 3)
    one_size(1000, 20, 200_000, every, 1 if quick else 3)
    drawn(1 if quick else 5)
    waves()
    if not quick:
        one_size(10_000, 20, 1_000_000, {"lost": 0.5, "rack": 3.0, "drained": 5.0, "joined": 10.0}, 1)
    growth()


if __name__ == "__main__":
    main()
