"""Delta tables read by Arrow, without Spark, whatever release of this software wrote their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

if TYPE_CHECKING:
    import pyarrow.dataset  # imports pandas, so only where a dataset is made


def dataset(path: str) -> pa.dataset.Dataset:
    """A Delta table as it is now.

    Local files are read by Arrow itself: through the file system of deltalake, its threads call back into Python, and
    now and then abort the process when it ends.

    Raises:
        TableNotFoundError: there is no Delta table.
    """
    table = DeltaTable(path)
    if "://" in path:
        return table.to_pyarrow_dataset()
    return table.to_pyarrow_dataset(filesystem=SubTreeFileSystem(path, LocalFileSystem()))


def scan(
    source: pa.dataset.Dataset, schema: pa.Schema, columns: Sequence[str], wanted: pc.Expression | None = None
) -> pa.Table:
    """Columns of a table with the types of ``schema``; what its files do not have yet is null."""
    target = pa.schema([schema.field(name) for name in columns])
    try:
        if set(columns) <= set(source.schema.names):
            return conform(source.to_table(columns=list(columns), filter=wanted), target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass  # Arrow adds no fields to structs inside lists: file by file, then
    parts = []
    for fragment in source.get_fragments(wanted):
        physical = fragment.physical_schema
        present = [name for name in columns if name in physical.names]
        rows = fragment.to_table(schema=physical, columns=present, filter=wanted)
        parts.append(conform(rows, target))
    return pa.concat_tables(parts) if parts else target.empty_table()


def conform(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table with exactly the target's columns and types; what it lacks is null."""
    columns = []
    for field in target:
        if field.name in table.schema.names:
            column = table[field.name].combine_chunks()
            array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
            columns.append(_cast(array, field.type))
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.table(columns, schema=target)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_list(kind) and pa.types.is_list(array.type):
        values = _cast(array.flatten(), kind.value_type)
        lengths = array.value_lengths().fill_null(0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=array.is_null())
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        present = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
        fields = [_cast(present[f.name], f.type) if f.name in present else pa.nulls(len(array), f.type) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    return array.cast(kind)
