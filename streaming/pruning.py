"""Rows of a Delta table for one question: only the files, columns and struct fields that can hold the answer.

Local files are read by Arrow's Parquet reader, file by file, because ``pyarrow.dataset`` cannot read single fields of
structs inside lists. Tables behind a URL are read through it all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from streaming.scanning import conform, scan


@dataclass(frozen=True, slots=True)
class Span:
    """Plan versions from ``first`` to ``last`` of one cluster, or of all; ``None`` is no bound."""

    cluster: str | None = None
    first: int | None = None
    last: int | None = None

    def bounds(self) -> list[tuple[str, str, object]]:
        """Column, comparison and value of each bound."""
        found = [
            ("cluster_id", "equal", self.cluster),
            ("plan_version", "greater_equal", self.first),
            ("plan_version", "less_equal", self.last),
        ]
        return [bound for bound in found if bound[2] is not None]


EVERYTHING: Final = Span()

_STATISTICS: Final = {
    "equal": (("min", "less_equal"), ("max", "greater_equal")),
    "greater_equal": (("max", "greater_equal"),),
    "less_equal": (("min", "less_equal"),),
}
"""What must hold of the least and greatest value in a file that can have a row within a bound."""

_CUT_AT: Final = 32
"""Characters of a text that Delta's statistics keep."""


def narrowed(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The fields of ``schema`` that are named; ``moves.topic`` is a field of the structs in the list ``moves``."""
    fields: dict[str, list[str]] = {}
    for column in columns:
        name, _, part = column.partition(".")
        fields.setdefault(name, []).extend([part] if part else [])
    return pa.schema([_narrow(schema.field(name), parts) for name, parts in fields.items()])


def _narrow(field: pa.Field, parts: Sequence[str]) -> pa.Field:
    if not parts:
        return field
    struct = field.type.value_type
    return pa.field(field.name, pa.list_(pa.struct([struct.field(part) for part in parts])))


def read(table: DeltaTable, path: str, schema: pa.Schema, columns: Sequence[str], span: Span = EVERYTHING) -> pa.Table:
    """The columns of the rows in the span, in no particular order; what old files lack is null."""
    target = narrowed(schema, columns)
    needed = list(dict.fromkeys([*columns, *(name for name, _, _ in span.bounds())]))
    if "://" in path:
        rows = _read_remote(table, schema, needed, span)
    else:
        rows = _read_local(table, path, narrowed(schema, needed), needed, span)
        for name, comparison, value in span.bounds():
            rows = rows.filter(getattr(pc, comparison)(rows[name], value))
    return conform(rows, target)


def _read_remote(table: DeltaTable, schema: pa.Schema, needed: Sequence[str], span: Span) -> pa.Table:
    wanted = None
    for name, comparison, value in span.bounds():
        bound = getattr(pc, comparison)(pc.field(name), pc.scalar(value))
        wanted = bound if wanted is None else wanted & bound
    names = list(dict.fromkeys(column.partition(".")[0] for column in needed))
    return scan(table.to_pyarrow_dataset(), schema, names, wanted)


def _read_local(table: DeltaTable, path: str, target: pa.Schema, needed: Sequence[str], span: Span) -> pa.Table:
    leaves = [leaf for column in needed for leaf in _leaves(column)]
    files = [os.path.join(path, unquote(name)) for name in _files(table, span)]  # noqa: PTH118 - thousands of them
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        parts = list(pool.map(partial(_read_file, leaves=leaves), files))
    return pa.concat_tables([conform(part, target) for part in _same_schema(parts)] or [target.empty_table()])


def _leaves(column: str) -> list[str]:
    """The column in Parquet's words; writers name the items of a list in two ways."""
    name, _, part = column.partition(".")
    return [f"{name}.list.{item}.{part}" for item in ("element", "item")] if part else [column]


def _read_file(file: str, leaves: Sequence[str]) -> pa.Table:
    with pq.ParquetFile(file) as parquet:
        return parquet.read(columns=list(leaves), use_threads=False)


def _same_schema(parts: Iterable[pa.Table]) -> list[pa.Table]:
    """The parts, those of one schema joined: files of one writer look the same."""
    groups: list[list[pa.Table]] = []
    for part in parts:
        group = next((group for group in groups if group[0].schema.equals(part.schema)), None)
        if group is None:
            groups.append([part])
        else:
            group.append(part)
    return [pa.concat_tables(group) for group in groups]


def _files(table: DeltaTable, span: Span) -> list[str]:
    """The files that may hold rows of the span, by the statistics in the table's log."""
    actions = pa.table(table.get_add_actions(flatten=True))
    for name, comparison, value in span.bounds():
        for side, test in _STATISTICS[comparison]:
            if f"{side}.{name}" in actions.schema.names:
                actions = actions.filter(getattr(pc, test)(actions[f"{side}.{name}"], value).fill_null(True))
    return [str(name) for name in actions["path"].to_pylist()]


def values(table: DeltaTable, path: str, schema: pa.Schema, column: str) -> list[str]:
    """The distinct texts in a column, sorted; files of which the log's statistics tell it are not opened."""
    actions = pa.table(table.get_add_actions(flatten=True))
    if {f"min.{column}", f"max.{column}"} <= set(actions.schema.names):
        least, greatest = (set(actions[f"{side}.{column}"].to_pylist()) for side in ("min", "max"))
        same = bool(pc.all(pc.equal(actions[f"min.{column}"], actions[f"max.{column}"])).as_py())
        if same and None not in least | greatest and all(len(text) < _CUT_AT for text in least):
            return sorted(least)
    return sorted(read(table, path, schema, [column])[column].unique().to_pylist())
