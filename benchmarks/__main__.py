"""Run the benchmarks, or those that are named: ``python -m benchmarks [NAME ...]``."""

from __future__ import annotations

import subprocess
import sys

CLAIMS = {
    "replan": "the least movement: seconds, ratios to a sort of the same cells, growth",
    "loads": "planning by load: bytes moved over the certified lower bound, seconds",
    "kafka_placement": "AdminUtils, side by side with Kafka's JVM code",
    "kafka_partitioner": "murmur2, side by side with Kafka's JVM code",
    "naive_placement": "why (i + j) mod n is not used",
    "comparison": "what AdminUtils and striping move when a broker leaves or joins, beside this planner",
    "fuzz": "100,000 lines of every kind of nonsense, with good events between them",
    "histories": "10,000 random histories of a cluster on the pure planner, beside a model of it",
    "faults": "the job killed at 50 random moments, under load, each time with another history",
    "collect": "a real cluster: how soon news is told, what a look costs, at loads too",
    "control_plane": "the job: cost of a batch, throughput, fleets, growth",
    "backlog": "a first backlog in a folder: a million lines, and one file of 600 MB",
    "audit": "questions to a journal of 1,000 plans and 100,000 partitions, each a whole process",
}


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(CLAIMS))
    if unknown:
        raise SystemExit(f"no benchmark {unknown[0]!r}: there are {', '.join(CLAIMS)}")
    for name in names or CLAIMS:
        print(f"\n== {name}: {CLAIMS[name]}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
