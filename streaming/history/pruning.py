"""Rows of a Delta table for one question: only the files that can hold the answer, by the statistics in its log."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from math import inf
from operator import and_
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.history.scanning import conform, kept, read_files, scan


@dataclass(frozen=True, slots=True)
class Span:
    """Rows of one cluster, of several or of all, within plan versions and up to a moment; ``None`` is no bound.

    Attributes:
        cluster: its name, or several names.
        first, last: plan versions, both included.
        until: the latest ``created_at``.
        among: these plan versions only.
    """

    cluster: str | Sequence[str] | None = None
    first: int | None = None
    last: int | None = None
    until: datetime | None = None
    among: Sequence[int] | None = None

    def bounds(self) -> list[Bound]:
        """What it asks of a row, column by column."""
        names = [self.cluster] if isinstance(self.cluster, str) else self.cluster
        found = [
            Bound("cluster_id", among=None if names is None else sorted(names)),
            Bound("plan_version", self.first, self.last, None if self.among is None else sorted(self.among)),
            Bound("created_at", most=self.until),
        ]
        return [bound for bound in found if (bound.least, bound.most, bound.among) != (None, None, None)]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a column must be: at least, at most, or one of some values, ascending."""

    column: str
    least: Any = None
    most: Any = None
    among: Sequence[Any] | None = None

    def holds(self, value: Any, kind: pa.DataType) -> Any:
        """A mask of the values of a column, or an expression of a field."""
        tests = []
        if self.least is not None:
            tests.append(pc.greater_equal(value, pa.scalar(self.least, kind)))
        if self.most is not None:
            tests.append(pc.less_equal(value, pa.scalar(self.most, kind)))
        if self.among is not None:
            tests.append(pc.is_in(value, value_set=pa.array(self.among, kind)))
        return reduce(and_ if isinstance(value, pc.Expression) else pc.and_, tests)

    def may_hold(self, least: Any, most: Any) -> bool:
        """Whether a file with values from ``least`` to ``most`` can have such a row; ``None`` is not known."""
        if least is None or most is None:
            return True
        if (self.least is not None and most < self.least) or (self.most is not None and least > self.most):
            return False
        if self.among is None:
            return True
        place = bisect_left(self.among, least)
        return place < len(self.among) and bool(self.among[place] <= most)


EVERYTHING: Final = Span()

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
    target, bounds = narrowed(schema, columns), span.bounds()
    if "://" not in path:
        return _read_local(_files(table, bounds), path, schema, columns, bounds).select(target.names)
    tests = [bound.holds(pc.field(bound.column), schema.field(bound.column).type) for bound in bounds]
    names = list(dict.fromkeys(column.partition(".")[0] for column in _needed(columns, bounds)))
    return conform(scan(table.to_pyarrow_dataset(), schema, names, reduce(and_, tests) if tests else None), target)


def newest_version(table: DeltaTable, path: str, schema: pa.Schema, span: Span) -> int | None:
    """The greatest plan version in the span. The files that may have greater ones are opened first."""
    if "://" in path:
        return _greatest(read(table, path, schema, ["plan_version"], span))
    bounds = span.bounds()
    found: int | None = None
    for file in sorted(_files(table, bounds), key=lambda file: file.most, reverse=True):
        if found is not None and file.most <= found:
            break
        here = _greatest(_read_local([file], path, schema, ["plan_version"], bounds))
        found = here if found is None else max(found, here or found)
    return found


def _greatest(rows: pa.Table) -> int | None:
    found: int | None = pc.max(rows["plan_version"]).as_py()
    return found


def _read_local(
    files: Sequence[_File], path: str, schema: pa.Schema, columns: Sequence[str], bounds: Sequence[Bound]
) -> pa.Table:
    rows = read_files([os.path.join(path, file.name) for file in files], narrowed(schema, _needed(columns, bounds)))  # noqa: PTH118 - thousands of them
    for bound in bounds:
        rows = kept(rows, bound.holds(rows[bound.column], schema.field(bound.column).type))
    return rows


def _needed(columns: Sequence[str], bounds: Sequence[Bound]) -> list[str]:
    return list(dict.fromkeys([*columns, *(bound.column for bound in bounds)]))


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the table, and the least and the greatest plan version in it as far as the log tells them."""

    name: str
    least: float
    most: float


def _files(table: DeltaTable, bounds: Sequence[Bound]) -> list[_File]:
    """The files that may hold rows within the bounds, by the statistics in the table's log, by plan version."""
    actions = _statistics(table)
    left: Iterable[int] = range(actions.num_rows)
    for bound in bounds:
        least, most = _side(actions, "min", bound.column), _side(actions, "max", bound.column)
        left = [row for row in left if bound.may_hold(least[row], most[row])]
    names = actions["path"].to_pylist()
    first, last = _side(actions, "min", "plan_version"), _side(actions, "max", "plan_version")
    files = [
        _File(unquote(names[row]), 0 if first[row] is None else first[row], inf if last[row] is None else last[row])
        for row in left
    ]
    return sorted(files, key=lambda file: file.least)


def _statistics(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions(flatten=True))


def _side(actions: pa.Table, side: str, column: str) -> list[Any]:
    """The least or the greatest value of a column in each file, ``None`` where the log does not tell it."""
    name = f"{side}.{column}"
    return list(actions[name].to_pylist()) if name in actions.schema.names else [None] * actions.num_rows


def values(table: DeltaTable, path: str, schema: pa.Schema, column: str) -> list[str]:
    """The distinct texts in a column, sorted; files of which the log's statistics tell it are not opened."""
    actions = _statistics(table)
    if {f"min.{column}", f"max.{column}"} <= set(actions.schema.names):
        least, greatest = (set(_side(actions, side, column)) for side in ("min", "max"))
        same = bool(pc.all(pc.equal(actions[f"min.{column}"], actions[f"max.{column}"])).as_py())
        if same and None not in least | greatest and all(len(text) < _CUT_AT for text in least):
            return sorted(least)
    return sorted(read(table, path, schema, [column])[column].unique().to_pylist())
