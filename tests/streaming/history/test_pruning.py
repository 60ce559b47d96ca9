"""Rows are the same whichever files are left out, whoever wrote them, and in whatever pieces."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.errors import HistoryError
from streaming.history.pruning import Bound, Span, newest_version, read, values
from streaming.record.schemas import PLANS, TIMESTAMP
from tests.streaming.driving import at

KEYS = pa.schema([("cluster_id", pa.string()), ("plan_version", pa.int64()), ("created_at", TIMESTAMP)])


def rows(*found: tuple[str, int, float]) -> pa.Table:
    """Cluster, version, and the minute at which it was made."""
    columns = zip(*((cluster, version, at(minute)) for cluster, version, minute in found), strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, KEYS, strict=True)], KEYS)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Files that overlap, of two clusters; in ``east`` version 4 was made before version 3."""
    pieces = [
        [("east", 1, 1), ("east", 4, 3), ("west", 1, 2)],
        [("east", 2, 2)],
        [("east", 3, 4), ("west", 2, 5)],
        [("a name that is longer than the thirty-two characters of statistics", 1, 9)],
    ]
    for piece in pieces:
        write_deltalake(tmp_path / "plans", rows(*piece), mode="append")
    return str(tmp_path / "plans")


@pytest.mark.parametrize(
    "span",
    [
        Span(),
        Span("east"),
        Span(("east", "west")),
        Span("north"),
        Span("east", 2, 3),
        Span("east", last=1),
        Span("east", among=(4, 1)),
        Span("east", among=()),
        Span(until=at(3)),
        Span("east", until=at(3)),
        Span("east", until=at(0)),
        Span("a name that is longer than the thirty-two characters of statistics"),
        Span("a name that is longer than the thirty-two characters of others"),
    ],
    ids=str,
)
def test_a_span_reads_what_a_filter_over_everything_leaves(path: str, span: Span) -> None:
    def wanted(row: dict[str, Any]) -> bool:
        named = [span.cluster] if isinstance(span.cluster, str) else span.cluster
        return (
            (named is None or row["cluster_id"] in named)
            and (span.first is None or row["plan_version"] >= span.first)
            and (span.last is None or row["plan_version"] <= span.last)
            and (span.among is None or row["plan_version"] in span.among)
            and (span.until is None or row["created_at"] <= span.until)
        )

    table = DeltaTable(path)
    expected = [row for row in table.to_pyarrow_table().to_pylist() if wanted(row)]
    found = read(table, path, PLANS.schema, KEYS.names, span).to_pylist()
    order = ("cluster_id", "plan_version")
    assert sorted(found, key=lambda row: [row[k] for k in order]) == sorted(
        expected, key=lambda row: [row[k] for k in order]
    )
    newest = max((row["plan_version"] for row in expected), default=None)
    assert newest_version(table, path, PLANS.schema, span) == newest


@pytest.mark.parametrize(
    ("bound", "least", "most", "may"),
    [
        (Bound("v", least=5), 1, 4, False),
        (Bound("v", least=5), 1, 5, True),
        (Bound("v", most=5), 6, 9, False),
        (Bound("v", most=5), 5, 9, True),
        (Bound("v", among=[2, 7]), 3, 6, False),
        (Bound("v", among=[2, 7]), 7, 7, True),
        (Bound("v", among=[]), 1, 9, False),
        (Bound("v", least=5), None, None, True),
    ],
)
def test_a_file_is_left_out_only_where_the_log_is_sure(bound: Bound, least: Any, most: Any, may: bool) -> None:
    assert bound.may_hold(least, most) is may


def test_files_that_cannot_hold_a_row_are_not_opened(path: str) -> None:
    """Damaged files prove it: opening one is an error."""
    table = DeltaTable(path)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    for action in actions:
        if action["max.plan_version"] != 4:
            Path(path, action["path"]).write_bytes(b"damaged")
    assert read(table, path, PLANS.schema, ["plan_version"], Span("east", 4, 4))["plan_version"].to_pylist() == [4]
    with pytest.raises(HistoryError, match="the table's log names this file, and it cannot be read"):
        read(table, path, PLANS.schema, ["plan_version"], Span("east", 2, 3))


def test_names_that_the_statistics_cut_are_read_from_the_files(path: str) -> None:
    long = "a name that is longer than the thirty-two characters of statistics"
    assert values(DeltaTable(path), path, PLANS.schema, "cluster_id") == [long, "east", "west"]


def test_columns_that_no_file_has_are_null(path: str) -> None:
    found = read(DeltaTable(path), path, PLANS.schema, ["plan_version", "seal", "moves.topic"], Span("west"))
    assert found.schema.names == ["plan_version", "seal", "moves"]
    assert found["seal"].null_count == found["moves"].null_count == found.num_rows == 2
    assert read(DeltaTable(path), path, PLANS.schema, ["seal"]).num_rows == 7


def test_a_moment_between_two_milliseconds_is_told_apart(tmp_path: Path) -> None:
    """Statistics of moments are cut to the millisecond."""
    table = pa.table({"cluster_id": ["c"], "plan_version": [1], "created_at": [at(1) + timedelta(microseconds=700)]})
    write_deltalake(tmp_path / "plans", table.cast(KEYS))
    path = str(tmp_path / "plans")
    for microseconds, versions in ((0, []), (699, []), (700, [1]), (999, [1])):
        span = Span("c", until=at(1) + timedelta(microseconds=microseconds))
        found = read(DeltaTable(path), path, PLANS.schema, ["plan_version"], span)
        assert found["plan_version"].to_pylist() == versions
