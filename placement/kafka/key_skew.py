"""How evenly keys fill the partitions of a topic, for the partition counts that one thinks about.

Two things make partitions uneven. One is chance, where there are few keys for many partitions. The other
is a heavy key: all its records go to one partition, whatever the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from placement import checks
from placement.kafka.keys import Keys, key_column
from placement.kafka.murmur2 import KeyColumn, positive_hashes
from placement.sizes import partition_count

_MAX_COUNTED: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Skew:
    """What one partition count makes of a column of keys.

    Attributes:
        records: records of each partition, by partition id.
        without_key: records whose key is null; they go in turn and are not counted in ``records``.
        heaviest_key: records of the most frequent key; no partition count puts fewer on the fullest partition.
    """

    records: tuple[int, ...]
    without_key: int
    heaviest_key: int

    @property
    def partitions(self) -> int:
        """The partition count."""
        return len(self.records)

    @property
    def keyed(self) -> int:
        """Records with a key."""
        return sum(self.records)

    @property
    def largest(self) -> int:
        """Records of the fullest partition."""
        return max(self.records)

    @property
    def smallest(self) -> int:
        """Records of the emptiest partition."""
        return min(self.records)

    @property
    def mean(self) -> float:
        """Records a partition would have if all had the same."""
        return self.keyed / self.partitions

    @property
    def factor(self) -> float:
        """The fullest partition over the mean: 1 is even, 2 means twice the share. 1 where there are no keys."""
        return self.largest / self.mean if self.keyed else 1.0

    @property
    def empty(self) -> int:
        """Partitions without any record."""
        return self.records.count(0)


def key_skew(keys: Keys, partition_counts: Sequence[int]) -> tuple[Skew, ...]:
    """The skew of a column of keys for each partition count, hashing once.

    Args:
        keys: one per record, as ``placement.kafka.keys.key_column`` reads them.
        partition_counts: each from 1 to 10,000,000.

    Raises:
        InvalidPartitionsError: a partition count is out of that range.
        InvalidKeyError: a key is neither bytes nor text nor null.
    """
    counts = [
        partition_count(count, _MAX_COUNTED) for count in checks.instances(partition_counts, object, "partition_counts")
    ]
    column = key_column(keys)
    hashes = positive_hashes(column)
    records = len(hashes)
    if isinstance(column, KeyColumn) and column.null is not None:
        hashes = hashes[~column.null]
    heaviest = int(np.unique(hashes, return_counts=True)[1].max(initial=0))
    return tuple(
        Skew(tuple(np.bincount(hashes % count, minlength=count).tolist()), records - len(hashes), heaviest)
        for count in counts
    )


def skew_table(skews: Sequence[Skew]) -> str:
    """One line a partition count: mean, fullest and emptiest partition, and the fullest over the mean."""
    lines = ["partitions        mean     fullest    emptiest   fullest/mean"]
    lines += [f"{s.partitions:>10} {s.mean:>11.1f} {s.largest:>11} {s.smallest:>11} {s.factor:>14.2f}" for s in skews]
    return "\n".join(lines)


def skew_chart(skew: Skew, *, width: int = 50, rows: int = 40) -> str:
    """A bar a partition, in plain text; of more than ``rows`` partitions the fullest and the emptiest half.

    Args:
        skew: of one partition count.
        width: of the longest bar, in characters.
        rows: at most that many bars.
    """
    order = list(range(skew.partitions))
    cut = None
    if skew.partitions > rows:
        order.sort(key=lambda partition: (-skew.records[partition], partition))
        cut = rows // 2
        order = order[:cut] + order[len(order) - (rows - cut) :]
    digits = len(str(skew.partitions - 1))
    lines = [_bar(skew, partition, digits, width) for partition in order]
    if cut is not None:
        lines.insert(cut, f"{'...':>{digits}} {skew.partitions - rows} partitions between them")
    return "\n".join(lines)


def _bar(skew: Skew, partition: int, digits: int, width: int) -> str:
    records = skew.records[partition]
    bar = "█" * round(width * records / max(1, skew.largest))
    over = f"{records / skew.mean - 1:+.0%}" if skew.keyed else ""
    return f"{partition:>{digits}} {bar:<{width}} {records} {over}".rstrip()
