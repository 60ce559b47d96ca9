"""Planning by load: bytes moved, the certified lower bound, and CPU seconds, for every kind of event.

    python -m benchmarks.loads [--quick] [--seed N] [--noise]

Lognormal loads from a seed, the largest partition 5% of a broker, a band of 9% around each broker's share. Each line
is one run. `residual` is how far the worst broker ends outside its band, in shares; `least`, how far it must, because
somebody has to lead the heaviest partition. With ``--noise``, of 50 plans one after the other, those that act where
every number is wrong by up to a fifth (uniform), or by a standard deviation of a fifth (normal).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from placement import Assignment, Band, Broker, Loads, Replan, replan, verify
from placement.loads.model import RESOURCES
from tests.clusters import in_state
from tests.load_clusters import noisy, skewed

SIZES = ((12, 3, 1_000), (60, 5, 10_000), (100, 5, 20_000), (1_000, 20, 200_000))


def line(name: str, layout: Assignment, brokers: list[Broker], loads: Loads, mode: str, band: Band) -> Replan:
    start = time.process_time()
    plan = replan(layout, brokers, mode=mode, loads=loads, band=band)  # type: ignore[arg-type]
    seconds = time.process_time() - start
    report = plan.loads
    assert report is not None
    whole = int((loads.size * layout.replication_factor).sum())
    led = report.given.leader()
    least = max(((led[k].max() - report.high[k]) / report.share[k]).min() for k in range(len(RESOURCES)))
    ratio = report.moved_bytes / report.lower_bound_bytes if report.lower_bound_bytes else float("nan")
    print(
        f"| {len(brokers):,} | {name} | {100 * report.moved_bytes / whole:.3f} "
        f"| {100 * report.lower_bound_bytes / whole:.3f} | {ratio:.3f} | {max(report.residuals().values()):.4f} "
        f"| {max(least, 0.0):.4f} "
        f"| {plan.leader_changes} | {'yes' if verify(plan) else 'no'} | {seconds:.2f} |",
        flush=True,
    )
    return plan


def noise(count: int, racks: int, partitions: int, first: int) -> None:
    """Of 50 plans those that act, on ten clusters of this size."""
    for seed in range(first, first + 10):
        layout, brokers, loads = skewed(count, racks, partitions, seed)
        settled = replan(layout, brokers, mode="rebalance", loads=loads).assignment
        acted = []
        for kind in ("uniform", "normal"):
            layout, found = settled, 0
            for draw in range(50):
                plan = replan(layout, brokers, mode="rebalance", loads=noisy(loads, draw, kind))
                layout, found = plan.assignment, found + bool(len(plan.moves))
            acted.append(found)
        print(f"| {count} | {seed} | {acted[0]} | {acted[1]} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Planning by load: bytes, bound and CPU seconds.")
    parser.add_argument("--quick", action="store_true", help="leave the largest cluster out")
    parser.add_argument("--seed", type=int, default=1, help="of the loads")
    parser.add_argument("--noise", action="store_true", help="plan under noise instead")
    asked = parser.parse_args()
    if asked.noise:
        print("| brokers | seed | uniform | normal |\n| --- | --- | --- | --- |")
        for size in SIZES[: 1 if asked.quick else 2]:
            noise(*size, asked.seed)
        return
    columns = [
        "brokers",
        "event",
        "moved, % of data",
        "bound, %",
        "ratio",
        "residual",
        "least",
        "led anew",
        "sound",
        "CPU s",
    ]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for count, racks, partitions in SIZES[: -1 if asked.quick else None]:
        layout, brokers, loads = skewed(count, racks, partitions, asked.seed)
        settled = line("skew", layout, brokers, loads, "rebalance", Band()).assignment
        line("skew, exact counts", layout, brokers, loads, "rebalance", Band(exact_counts=True))
        line("broker lost", settled, in_state(brokers, [3], "dead"), loads, "heal", Band())
        line("broker joined", settled, [*brokers, Broker(count + 1, "r000")], loads, "rebalance", Band())
        led = settled.replicas[:, 0] == 2
        hot = replace(loads, bytes_out=np.where(led, 3 * loads.bytes_out, loads.bytes_out))
        line("hot leaders", settled, brokers, hot, "rebalance", Band())


if __name__ == "__main__":
    main()
