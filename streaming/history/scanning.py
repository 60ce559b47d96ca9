"""Delta tables read by Arrow, without Spark, whatever release of this software wrote their files.

Local files are read by Arrow's Parquet reader, file by file, because ``pyarrow.dataset`` cannot read single fields of
structs inside lists. Tables behind a URL are read through it all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

# ParquetFile, the public face of this class, takes longer to describe a small file's columns than to read them.
from pyarrow._parquet import ParquetReader
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from streaming.errors import HistoryError

if TYPE_CHECKING:
    import pyarrow.dataset  # imports pandas, so only where a dataset is made

Leaf = tuple[str, ...]
"""The paths that a column of a Parquet file may have: writers name the items of a list in two ways."""


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


def read_files(files: Sequence[str], target: pa.Schema) -> pa.Table:
    """The rows of local Parquet files in the order given; of the files only the columns and fields of ``target``.

    Raises:
        HistoryError: a file is missing or damaged.
    """
    leaves = [leaf for field in target for leaf in _leaves(field.type, (field.name,))]
    threads = min(8, os.cpu_count() or 1, len(files)) or 1
    share = -(-len(files) // threads) or 1
    shares = [files[start : start + share] for start in range(0, len(files), share)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [part for found in pool.map(partial(_read_each, leaves=leaves), shares) for part in found]
    return pa.concat_tables([conform(part, target) for part in _same_schema(parts)] or [target.empty_table()])


def _leaves(kind: pa.DataType, paths: Leaf) -> Iterator[Leaf]:
    """The columns that hold a field in a Parquet file."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(field.type, tuple(f"{path}.{field.name}" for path in paths))
    elif pa.types.is_list(kind):
        items = tuple(f"{path}.list.{item}" for path in paths for item in ("element", "item"))
        yield from _leaves(kind.value_type, items)
    else:
        yield paths


def _read_each(files: Sequence[str], leaves: Sequence[Leaf]) -> list[pa.Table]:
    return [_read_file(file, leaves) for file in files]


def _read_file(file: str, leaves: Sequence[Leaf]) -> pa.Table:
    reader = ParquetReader()
    try:
        reader.open(file, pre_buffer=False)
        places = [_place(reader, path) for paths in leaves for path in paths]
        found = [place for place in places if place is not None]
        # A table without columns would not know how many rows it has.
        return reader.read_all(column_indices=found or [0], use_threads=False)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].partition(". Detail:")[0]
        raise HistoryError(
            f"{file}: the table's log names this file, and it cannot be read: {reason}: restore it from a copy",
            path=file,
        ) from error
    finally:
        reader.close()


def _place(reader: ParquetReader, path: str) -> int | None:
    try:
        return int(reader.column_name_idx(path))
    except KeyError:
        return None  # the file is of an earlier release, or its writer names items in the other way


def _same_schema(parts: Iterable[pa.Table]) -> list[pa.Table]:
    """Neighbours of one schema joined: files of one writer look the same."""
    groups: list[list[pa.Table]] = []
    for part in parts:
        if groups and groups[-1][0].schema.equals(part.schema):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [pa.concat_tables(group) for group in groups]


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


def kept(table: pa.Table, wanted: pa.ChunkedArray) -> pa.Table:
    """The rows for which a mask holds; the table itself where it holds for all, because moves are long to copy."""
    return table if pc.all(wanted, skip_nulls=False, min_count=0).as_py() else table.filter(wanted)


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
