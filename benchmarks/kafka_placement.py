"""``place_adminutils`` against Kafka's AdminUtils: same brokers, same start, same layouts, in turn.

Run ``python -m benchmarks.kafka_placement [ROUNDS]``.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

from benchmarks.kafka_reference import HEADER, KafkaReference, take_turns
from placement import Broker, place_adminutils

START = 7


def rack_of(broker: int, brokers: int, racks: int, uneven: bool) -> str | None:
    """Racks of equal size, or of sizes that grow as the differences of square roots do."""
    if not racks:
        return None
    return f"r{int(racks * (broker / brokers) ** 2) if uneven else broker % racks}"


CASES = [
    (200_000, 1_000, 0, False),
    (200_000, 1_000, 3, False),
    (200_000, 1_000, 20, False),
    (1_000_000, 10_000, 0, False),
    (1_000_000, 10_000, 3, False),
    (1_000_000, 10_000, 20, True),
]


def checksum(layout: object) -> int:
    return zlib.crc32(np.asarray(layout).astype("<i4").tobytes())


def peak_memory() -> None:
    """Print how much one call adds to a process at 1M partitions, replication factor 3, 20 uneven racks."""
    brokers = [Broker(i, rack_of(i, 10_000, 20, True)) for i in range(10_000)]
    before = high_water_mark()
    place_adminutils(brokers, 1_000_000, 3, fixed_start_index=START)
    after = high_water_mark()
    print(f"peak memory of the process: {after:.0f} MB, of which the call: {after - before:.0f} MB")


def high_water_mark() -> float:
    """The most memory that the process has had, in MB (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(rounds: int) -> None:
    print(HEADER)
    with KafkaReference() as kafka:
        for partitions, count, racks, uneven in CASES:
            brokers = [Broker(i, rack_of(i, count, racks, uneven)) for i in range(count)]
            kafka.ask("brokers " + " ".join(b.rack or "-" for b in brokers))
            compared = take_turns(
                kafka,
                f"place {partitions} {START}",
                lambda b=brokers, p=partitions: place_adminutils(b, p, 3, fixed_start_index=START),
                checksum,
                rounds,
            )
            name = f"{partitions:,} x {count:,}, {racks or 'no'} {'uneven ' if uneven else ''}racks"
            print(compared.row(name), flush=True)
    subprocess.run([sys.executable, "-m", "benchmarks.kafka_placement", "--memory"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--memory"]:
        peak_memory()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
