"""The digest of a plan: sha256 over the canonical form of what it changes.

Canonical form: the tag, then the names of the changed topics (JSON, sorted), then the little-endian int32 columns
topic (index into those names), partition, before and after, rows ordered by topic and partition, replica lists padded
with -1 to the longest. The same change has the same digest, whatever made it and however it was held in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from placement.model import NO_BROKER, Int32Array

_TAG = b"replica-plan/1\n"


def digest_of(
    topics: Sequence[str], topic_index: Int32Array, partition: Int32Array, before: Int32Array, after: Int32Array
) -> str:
    """Hexadecimal sha256 of the changed rows, given in canonical order.

    Args:
        topics: sorted names; those that no row uses do not count.
        topic_index, partition: int32, shape ``(M,)``.
        before, after: int32 broker ids, shapes ``(M, R1)`` and ``(M, R2)``, padded with ``NO_BROKER``.
    """
    first = np.ones(topic_index.size, np.bool_)
    first[1:] = topic_index[1:] != topic_index[:-1]
    names = [topics[i] for i in topic_index[first].tolist()]
    local = np.cumsum(first) - 1
    result = hashlib.sha256(_TAG)
    result.update(json.dumps(names, ensure_ascii=True, separators=(",", ":")).encode())
    for matrix in (local[:, None], partition[:, None], _trimmed(before), _trimmed(after)):
        result.update(f"\n{matrix.shape[0]}x{matrix.shape[1]}\n".encode())
        result.update(np.ascontiguousarray(matrix, "<i4").tobytes())
    return result.hexdigest()


def _trimmed(matrix: Int32Array) -> Int32Array:
    if not matrix.shape[1] or (matrix[:, -1] != NO_BROKER).any():
        return matrix
    return matrix[:, : int((matrix != NO_BROKER).sum(axis=1).max(initial=0))]
