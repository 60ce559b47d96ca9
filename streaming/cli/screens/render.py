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

    from streaming.history.tables import Standing

TableData = tuple[list[str], list[list[str]]]


def print_json(value: Any) -> None:
    """Print a value for machines, moments in UTC; data classes become objects."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def print_table(data: TableData) -> None:
    """Print a table: fitted to a terminal, tab-separated when piped."""
    header, rows = data[0], [[on_one_line(cell) for cell in row] for row in data[1]]
    if not sys.stdout.isatty():
        click.echo("\n".join(map("\t".join, [header, *rows])))
        return
    from rich.console import Console

    draw(Console(highlight=False), (header, rows))


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line that has names in it which others chose."""
    click.echo(on_one_line(text), err=err)


def on_one_line(text: str) -> str:
    """Text that others chose, with what would end the line or command the terminal written as in a string of Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def draw(console: Console, data: TableData) -> None:
    """The same as a table that fits the console."""
    from streaming.cli.screens.drawing import drawn

    console.print()
    console.print(drawn(*data, console.width), soft_wrap=True)


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
