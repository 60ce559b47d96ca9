"""The 32-bit murmur2 with which Kafka's producers hash keys, for one key and for columns of keys.

Source of the method: ``org.apache.kafka.common.utils.Utils.murmur2``, that is Austin Appleby's MurmurHash2
with the seed 0x9747b28c. Columns are hashed in blocks that fit the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement.model import Int32Array

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_POSITIVE: Final = 0x7FFFFFFF
_BLOCK: Final = 8192
_LEAST_BLOCK: Final = 64
_LITTLE_ENDIAN: Final = np.dtype("<u4")

Words = NDArray[np.uint32]
Offsets = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """Keys of several lengths in one buffer.

    Attributes:
        data: uint8, all bytes.
        starts: int32 or int64, shape ``(K,)``: where each key begins in ``data``.
        ends: of the same type and shape: where it ends.
        null: bool, shape ``(K,)``, True for keys that are null; None where none is.
    """

    data: NDArray[np.uint8]
    starts: Offsets
    ends: Offsets
    null: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.starts)


def murmur2(key: bytes) -> int:
    """The hash of one key, signed as in Java, from -2^31 to 2^31-1."""
    h = _SEED ^ len(key)
    whole = len(key) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * _M & 0xFFFFFFFF
        k = (k ^ k >> 24) * _M & 0xFFFFFFFF
        h = h * _M & 0xFFFFFFFF ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * _M & 0xFFFFFFFF
    h = (h ^ h >> 13) * _M & 0xFFFFFFFF
    h ^= h >> 15
    return h - (1 << 32) if h > _POSITIVE else h


def to_positive(number: int) -> int:
    """Kafka's ``Utils.toPositive``: the sign bit dropped (so not the absolute value)."""
    return number & _POSITIVE


def positive_hashes(keys: KeyColumn | NDArray[np.uint8], divisor: int | None = None) -> Int32Array:
    """``toPositive(murmur2(key))`` of every key.

    Args:
        keys: a column, or uint8 of shape ``(K, L)``, one key a row.
        divisor: from 1; the result is the remainder by it, taken while the block is in the cache.

    Returns:
        int32, shape ``(K,)``; for null keys the value of the empty key.
    """
    out = np.empty(len(keys), np.uint32)
    rows = _BLOCK
    if not isinstance(keys, KeyColumn):
        rows = max(_LEAST_BLOCK, min(_BLOCK, _BLOCK * 32 // max(1, keys.shape[1])))
    for lo in range(0, len(keys), rows):
        block = out[lo : lo + rows]
        if isinstance(keys, KeyColumn):
            _hash_column(keys.data, keys.starts[lo : lo + rows], keys.ends[lo : lo + rows], block)
        else:
            _hash_equal(keys[lo : lo + rows], block)
        block &= np.uint32(_POSITIVE)
        if divisor is not None:
            # NumPy has vector code for quotients by one number, and none for remainders.
            block -= block // np.uint32(divisor) * np.uint32(divisor)
    return out.view(np.int32)


def _hash_column(data: NDArray[np.uint8], starts: Offsets, ends: Offsets, h: Words) -> None:
    lengths = ends - starts
    length, count = int(lengths[0]), len(lengths)
    first = int(starts[0])
    if (lengths == length).all() and int(starts[-1]) - first == (count - 1) * length:
        _hash_equal(data[first : first + count * length].reshape(count, length), h)
    else:
        h[:] = _hash_mixed(data, starts.astype(np.int64), lengths.astype(np.int64))


def _hash_equal(keys: NDArray[np.uint8], h: Words) -> None:
    """Keys of one length, a row each, into ``h``."""
    length = keys.shape[1]
    whole = length & ~3
    h[:] = np.uint32(_SEED ^ length)
    if whole:
        words = np.array(np.ascontiguousarray(keys[:, :whole]).view(_LITTLE_ENDIAN).T, np.uint32, order="C")
        _stir(words, np.empty_like(words))
        for k in words:
            h *= np.uint32(_M)
            h ^= k
    if whole < length:
        for i in range(whole, length):
            h ^= keys[:, i].astype(np.uint32) << np.uint32(8 * (i - whole))
        h *= np.uint32(_M)
    _finish(h)


def _hash_mixed(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Words:
    """Keys of several lengths: sorted by length, so that those with one more word are a suffix."""
    order = np.argsort(lengths, kind="stable")
    begin, length = starts[order], lengths[order]
    h = np.uint32(_SEED) ^ length.astype(np.uint32)
    scratch = np.empty_like(h)
    longest = int(length[-1])
    if longest >= 4:
        words = np.ndarray((len(data) - 3,), _LITTLE_ENDIAN, data, strides=(1,))
        for at in range(0, longest & ~3, 4):
            lo = int(np.searchsorted(length, at + 4))
            k = words[begin[lo:] + at].astype(np.uint32, copy=False)
            _stir(k, scratch[lo:])
            h[lo:] *= np.uint32(_M)
            h[lo:] ^= k
    tail = begin + (length & ~3)
    for i in range(3):
        rows = np.flatnonzero(length & 3 > i)
        h[rows] ^= data[tail[rows] + i].astype(np.uint32) << np.uint32(8 * i)
    np.multiply(h, np.uint32(_M), out=h, where=length & 3 > 0)
    _finish(h)
    result = np.empty_like(h)
    result[order] = h
    return result


def _stir(k: Words, scratch: Words) -> None:
    """Stir the words in place, before they go into the hash."""
    k *= np.uint32(_M)
    np.right_shift(k, np.uint32(24), out=scratch)
    k ^= scratch
    k *= np.uint32(_M)


def _finish(h: Words) -> None:
    h ^= h >> np.uint32(13)
    h *= np.uint32(_M)
    h ^= h >> np.uint32(15)
