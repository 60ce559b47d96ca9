"""Arrow rows as Python values, moments in UTC.

Arrow's own ``to_pylist`` imports pandas as soon as it meets a moment with a time zone, which takes a command longer
than everything else that it does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Converter = Callable[[Any], Any]


def rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as dicts."""
    names = table.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*(items(table[name]) for name in names), strict=True)]


def items(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column."""
    convert = _converter(column.type)
    if convert is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    found = column.cast(_counted(column.type)).to_pylist()
    return [None if value is None else convert(value) for value in found]


def moment(microseconds: int) -> datetime:
    """A moment from the microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _counted(kind: pa.DataType) -> pa.DataType:
    """The type with moments as microseconds."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_counted(field.type)) for field in kind])
    return kind


def _converter(kind: pa.DataType) -> Converter | None:
    """What makes moments of a value's numbers; ``None`` where there are none in it."""
    if pa.types.is_timestamp(kind):
        return moment
    if pa.types.is_list(kind):
        inner = _converter(kind.value_type)
        return inner and (lambda values: [None if value is None else inner(value) for value in values])
    if pa.types.is_struct(kind):
        parts = {field.name: found for field in kind if (found := _converter(field.type))}
        return (lambda value: value | _converted(value, parts)) if parts else None
    return None


def _converted(value: dict[str, Any], parts: dict[str, Converter]) -> dict[str, Any]:
    return {name: convert(value[name]) for name, convert in parts.items() if value[name] is not None}
