"""Names for the arrays that the planning steps hand to each other, and what stands in them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_BROKER: Final = -1
"""Pads the rows of a replica matrix where replication factors differ."""

MAX_ID: Final = 2**31 - 1
"""Broker and partition ids are 32-bit integers in Kafka."""

Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]


_NARROW = 1 << 15
_SHORT = 1 << 10


def by_group(group: NDArray[np.int32] | Int64Array) -> NDArray[np.intp]:
    """The order that puts equal entries together, ascending, each group in the order it had; -1 is a group."""
    # Narrow keys are sorted digit by digit, which takes a tenth of the time.
    narrow = group.size > _SHORT and int(group.max()) < _NARROW
    return np.argsort(group.astype(np.int16) if narrow else group, kind="stable")


def any_in_row(matrix: BoolArray) -> BoolArray:
    """Whether any cell of each row is set; shapes ``(q, W)`` and ``(q,)``."""
    # Column by column: reducing over a short inner axis costs several times as much.
    result = np.zeros(matrix.shape[0], np.bool_)
    for column in range(matrix.shape[1]):
        result |= matrix[:, column]
    return result


def count_in_row(matrix: BoolArray) -> Int64Array:
    """How many cells of each row are set; shapes ``(q, W)`` and ``(q,)``."""
    result = np.zeros(matrix.shape[0], np.int64)
    for column in range(matrix.shape[1]):
        result += matrix[:, column]
    return result
