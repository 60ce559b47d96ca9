"""Tables for people: coloured on a terminal, plain when piped."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import msgspec

from streaming.record.version import PlanVersion

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from streaming.history.tables import Standing

SHORTEST_FOLDED = 10
"""Columns of several words give way where the terminal is narrow, but not below this."""

TableData = tuple[list[str], list[list[str]]]


def console() -> Console:
    """A console on standard output; wide enough for whole rows when it is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=10_000, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value for machines, moments in UTC; data classes become objects."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def print_table(data: TableData, *, title: str | None = None) -> None:
    """Print a table: boxed and fitted on a terminal, tab-separated when piped."""
    header, rows = data
    if not sys.stdout.isatty():
        click.echo("\n".join(map("\t".join, [header, *rows])))
        return
    console().print(rich_table(data, title=title))


def rich_table(data: TableData, *, title: str | None = None) -> Table:
    """The same data as a table that rich can draw."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    header, rows = data
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(header):
        numeric = bool(rows) and all(_numeric(row[place]) for row in rows)
        words = any(" " in row[place] for row in rows)
        least = max([len(name), *(len(word) for row in rows for word in row[place].split())])
        table.add_column(
            name,
            justify="right" if numeric else "left",
            no_wrap=not words,
            overflow="fold",
            min_width=min(least, SHORTEST_FOLDED),
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _numeric(cell: str) -> bool:
    return cell in ("", "-") or cell.replace(".", "", 2).isdigit()


def plan_table(versions: Sequence[PlanVersion], standings: Mapping[tuple[str, int], Standing]) -> TableData:
    """Plan versions as people compare them: what caused them, what they cost, what they bring, how far they are.

    ``replicas`` and ``leaders`` are the fewest and the most on one broker. A cluster is named where there are several,
    progress where somebody reported any.
    """
    header = ["version", "kind", "cause", "moves", "bound", "replicas", "leaders", "approval"]
    rows = [_plan_row(version) for version in versions]
    if standings:
        header = [*header, "progress"]
        found = (standings.get((v.cluster_id, v.plan_version)) for v in versions)
        rows = [[*row, str(standing or "-")] for row, standing in zip(rows, found, strict=True)]
    if len({version.cluster_id for version in versions}) > 1:
        return ["cluster", *header], [[v.cluster_id, *row] for v, row in zip(versions, rows, strict=True)]
    return header, rows


def _plan_row(version: PlanVersion) -> list[str]:
    n = version.numbers
    before, after = n.before, n.after
    return [
        str(version.plan_version),
        version.kind,
        version.cause,
        str(n.moved_replicas),
        str(n.lower_bound),
        change(f"{before.replicas_min}..{before.replicas_max}", f"{after.replicas_min}..{after.replicas_max}"),
        change(f"{before.leaders_min}..{before.leaders_max}", f"{after.leaders_min}..{after.leaders_max}"),
        "-" if version.approval == "not_required" else version.approval,
    ]


def change(before: str, after: str) -> str:
    """Before and after, or the one value where nothing changes."""
    return after if before == after else f"{before} → {after}"


def version_numbers(version: PlanVersion) -> dict[str, Any]:
    """The numbers of a version, for machines and for ``show``."""
    n = version.numbers
    return {
        "partitions_changed": n.partitions_changed,
        "moved_replicas": n.moved_replicas,
        "lower_bound": n.lower_bound,
        "gap": n.gap,
        "optimal": n.optimal,
        "leader_changes": n.leader_changes,
        "replicas_per_broker_before": [n.before.replicas_min, n.before.replicas_max],
        "replicas_per_broker_after": [n.after.replicas_min, n.after.replicas_max],
        "leaders_per_broker_before": [n.before.leaders_min, n.before.leaders_max],
        "leaders_per_broker_after": [n.after.leaders_min, n.after.leaders_max],
        **({} if n.loads is None else asdict(n.loads)),
    }
