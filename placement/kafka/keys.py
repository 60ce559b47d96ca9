"""Columns of record keys in any usual form, as one buffer of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from placement import checks
from placement.errors import InvalidKeyError
from placement.kafka.murmur2 import KeyColumn

Keys = Iterable[bytes | str | None] | NDArray[Any]
"""What :func:`key_column` reads; Arrow arrays and chunked arrays besides."""

_ARROW_OFFSETS: Final = {
    "string": np.int32,
    "binary": np.int32,
    "large_string": np.int64,
    "large_binary": np.int64,
}


def key_bytes(key: bytes | str) -> bytes:
    """The bytes that Kafka's serializers send: strings in UTF-8, lone surrogates as ``?`` as in Java.

    Raises:
        InvalidKeyError: neither bytes nor text.
    """
    if isinstance(key, str):
        try:
            return key.encode()
        except UnicodeEncodeError:
            # Java sees code units: two surrogates that make a pair are one character there.
            paired = key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            return paired.encode("utf-8", "replace")
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    raise InvalidKeyError(f"a key is bytes or text, not {checks.shown(key)}", key=key)


def key_column(keys: Keys) -> KeyColumn | NDArray[np.uint8]:
    """Read a column of keys.

    Args:
        keys: uint8 of shape ``(K, L)``, one key a row; a NumPy array of bytes (``S``, which drops zero bytes
            at the end) or text (``U``); an Arrow array or chunked array of binary or text; or any
            iterable of bytes, text and None.

    Raises:
        InvalidKeyError: neither bytes nor text nor null.
    """
    if hasattr(keys, "buffers") and hasattr(keys, "type"):
        return _from_arrow(keys)
    if hasattr(keys, "chunks") and hasattr(keys, "type"):
        return _joined([_from_arrow(chunk) for chunk in keys.chunks])
    if isinstance(keys, np.ndarray) and keys.dtype.kind == "S" and keys.ndim == 1:
        return _from_fixed(keys)
    if isinstance(keys, np.ndarray) and keys.dtype == np.uint8 and keys.ndim == 2:
        return np.ascontiguousarray(keys)
    if isinstance(keys, np.ndarray) and keys.dtype.kind not in "OU":
        raise InvalidKeyError(f"keys are bytes or text, not an array of {keys.dtype}", key=keys.dtype)
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable) or getattr(keys, "ndim", 1) != 1:
        raise InvalidKeyError(f"keys are a list of bytes or text, not {checks.shown(keys)}", key=keys)
    return _from_objects(keys.tolist() if isinstance(keys, np.ndarray) else list(keys))


def _from_fixed(keys: NDArray[np.bytes_]) -> KeyColumn:
    starts = np.arange(len(keys)) * keys.itemsize
    return KeyColumn(np.ascontiguousarray(keys).view(np.uint8), starts, starts + np.strings.str_len(keys))


def _from_objects(keys: Sequence[bytes | str | None]) -> KeyColumn:
    encoded = [b"" if key is None else key_bytes(key) for key in keys]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    ends = np.cumsum(lengths)
    null = np.fromiter((key is None for key in keys), bool, len(keys)) if None in keys else None
    return KeyColumn(np.frombuffer(b"".join(encoded), np.uint8), ends - lengths, ends, null)


def _from_arrow(keys: Any) -> KeyColumn:
    """From the buffers of an Arrow array: validity bits, offsets, bytes."""
    if str(keys.type) == "null":
        return _from_objects([None] * len(keys))
    offset_type = _ARROW_OFFSETS.get(str(keys.type))
    if offset_type is None:
        raise InvalidKeyError(f"keys are binary or text, not an Arrow array of {keys.type}", key=str(keys.type))
    validity, offset_buffer, data_buffer = keys.buffers()
    count, skipped = len(keys), keys.offset
    if offset_buffer is None or not count:
        return _from_objects([])
    offsets = np.frombuffer(offset_buffer, offset_type)[skipped : skipped + count + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    null = None
    if validity is not None and keys.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
        null = bits[skipped : skipped + count] == 0
    return KeyColumn(data, offsets[:-1], offsets[1:], null)


def _joined(columns: Sequence[KeyColumn]) -> KeyColumn:
    if not columns:
        return _from_objects([])
    sizes = [len(column.data) for column in columns]
    before = np.cumsum([0, *sizes[:-1]]).tolist()
    nulls = [np.zeros(len(column), bool) if column.null is None else column.null for column in columns]
    return KeyColumn(
        np.concatenate([column.data for column in columns]),
        np.concatenate([column.starts.astype(np.int64) + moved for column, moved in zip(columns, before, strict=True)]),
        np.concatenate([column.ends.astype(np.int64) + moved for column, moved in zip(columns, before, strict=True)]),
        np.concatenate(nulls) if any(null.any() for null in nulls) else None,
    )
