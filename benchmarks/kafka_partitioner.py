"""``partitions_for_keys`` against a loop over Kafka's ``Utils.murmur2``: 10M keys of 16 bytes, one thread each.

Run ``python -m benchmarks.kafka_partitioner [ROUNDS]``.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.kafka_reference import HEADER, KafkaReference, take_turns
from placement import partitions_for_keys

COUNT = 10_000_000
PARTITIONS = 50


def draw_keys(count: int) -> np.ndarray:
    """SplitMix64, as in the JVM: shape ``(count, 16)``, uint8."""
    z = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z.astype("<u8").view(np.uint8).reshape(count, 16)


def main(rounds: int) -> None:
    keys = draw_keys(COUNT)
    print(HEADER)
    with KafkaReference() as kafka:
        kafka.ask(f"keys {COUNT}")
        compared = take_turns(
            kafka,
            f"hash {PARTITIONS}",
            lambda: partitions_for_keys(keys, PARTITIONS),
            lambda partitions: int(np.asarray(partitions).sum(dtype=np.int64)),
            rounds,
        )
        print(compared.row("10M keys of 16 bytes"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
