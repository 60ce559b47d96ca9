"""Commands on files alone: no tables, no JVM."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import numpy as np

from placement import (
    Assignment,
    Broker,
    Change,
    LoadReport,
    PlacementError,
)
from placement.kafka.reassignment_json import reassignment_json, reassignment_with_dirs_json
from placement.model import NO_BROKER
from placement.plan import Moves
from placement.strategies import STRATEGIES, Request
from streaming.cli.screens.working import working
from streaming.errors import InputError

Document = TypeVar("Document", dict[str, Any], list[Any])

_brokers = click.option("--brokers", "brokers_file", metavar="B.json", required=True, help="The cluster's brokers.")
_current = click.option("--current", "current_file", metavar="CURRENT.json", required=True, help="The layout now.")


def read_text(path: str) -> str:
    """A file's text; "-" is stdin.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})", path=path) from error


def write_text(path: str, text: str) -> None:
    """Write a file; "-" is stdout.

    Raises:
        InputError: it cannot be written.
    """
    if path == "-":
        click.echo(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}", path=path) from error


def read_json(path: str, kind: type[Document], expected: str) -> Document:
    """The JSON document of a file, which must be of a kind; ``expected`` says which, in words.

    Raises:
        InputError: it is no JSON, or of another kind.
    """
    try:
        document = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}", path=path) from error
    if not isinstance(document, kind):
        raise InputError(f"{path}: $: expected {expected}, got {type(document).__name__}", path=path)
    return document


def read_brokers(path: str) -> list[Broker]:
    """The brokers of a ``B.json``.

    Raises:
        InputError: not a list of brokers; names file, place and reason.
    """
    entries: list[Any] = read_json(path, list, "a list of brokers")
    return [_broker(path, f"$[{i}]", entry) for i, entry in enumerate(entries)]


def _broker(path: str, place: str, entry: Any) -> Broker:
    if not isinstance(entry, dict):
        raise InputError(f"{path}: {place}: expected an object with an id, got {json.dumps(entry)}", path=path)
    unknown = sorted(set(entry) - {"id", "rack", "capacity", "state"})
    if unknown or "id" not in entry:
        problem = f"unknown field {unknown[0]!r}" if unknown else "the id is missing"
        raise InputError(f"{path}: {place}: {problem}; a broker has id, rack, capacity and state", path=path)
    try:
        return Broker(**entry)
    except PlacementError as error:
        raise InputError(f"{path}: {place}: {error}", path=path) from error


def read_assignment(path: str) -> Assignment:
    """The layout of a file in Kafka's reassignment JSON.

    Raises:
        InputError: it is none; names file, place and reason.
    """
    try:
        return Assignment.from_json(read_text(path))
    except PlacementError as error:
        raise InputError(f"{path}: {error}", path=path) from error


@click.command()
@_brokers
@click.option("--partitions", type=int, required=True)
@click.option("--replication-factor", type=int, required=True)
@click.option("--strategy", type=click.Choice(list(STRATEGIES)), default="adminutils", show_default=True)
@click.option("--fixed-start-index", type=int, help="adminutils: start here instead of drawing.")
@click.option("--start-partition-id", type=int, default=0, show_default=True)
@click.option("--disable-rack-aware", is_flag=True, help="adminutils: ignore racks.")
@click.option("--topic", default="topic", show_default=True, help="The topic's name; it seeds the draw.")
@click.option("--seed", type=int, help="Seeds the draw instead of the topic's name.")
@click.option("--current", "current_file", metavar="CURRENT.json", help="balanced: the layout that is there already.")
def place(
    brokers_file: str,
    partitions: int,
    replication_factor: int,
    strategy: str,
    fixed_start_index: int | None,
    start_partition_id: int,
    disable_rack_aware: bool,
    topic: str,
    seed: int | None,
    current_file: str | None,
) -> None:
    """Place a new topic and print its assignment as Kafka's reassignment JSON.

    \b
    Examples:
      replica-planner place --brokers B.json --partitions 12 --replication-factor 3 --topic orders
      replica-planner place --brokers B.json --partitions 6 --replication-factor 2 --fixed-start-index 0
    """
    brokers = read_brokers(brokers_file)
    request = Request(
        brokers=brokers,
        partitions=partitions,
        replication_factor=replication_factor,
        topic=topic,
        current=read_assignment(current_file) if current_file else None,
        start_partition_id=start_partition_id,
        seed=seed,
        fixed_start_index=fixed_start_index,
        rack_aware=False if disable_rack_aware else None,
    )
    replicas = STRATEGIES[strategy].place(request)
    first = max(0, start_partition_id)
    click.echo(reassignment_json((topic, first + i, row) for i, row in enumerate(replicas.tolist())))


@click.command()
@_current
@_brokers
@click.option("--mode", type=click.Choice(["heal", "rebalance"]), default="heal", show_default=True)
@click.option("--max-moves", type=click.IntRange(min=0), help="Move at most so many replicas.")
@click.option(
    "--leaders",
    type=click.Choice(["even", "keep"]),
    default="even",
    show_default=True,
    help="Rebalancing, even out all preferred leaders, or only those of partitions that move.",
)
@click.option("--loads", "loads_file", metavar="LOADS.json", help="Plan by bytes: partitions' loads, brokers' limits.")
@click.option("--exclude-topic", "exclude_topics", multiple=True, metavar="T", help="Leave this topic as it is.")
@click.option("--exclude-broker", "exclude_brokers", multiple=True, type=int, metavar="B", help="Leave this broker.")
@click.option("--out", metavar="PLAN.json", required=True, help="The partitions that change.")
@click.option("--rollback", metavar="ROLLBACK.json", help="The same partitions as they are now.")
@click.option("--summary", metavar="SUMMARY.json", help="The plan's numbers.")
def replan(
    current_file: str,
    brokers_file: str,
    mode: str,
    max_moves: int | None,
    leaders: Literal["even", "keep"],
    loads_file: str | None,
    exclude_topics: tuple[str, ...],
    exclude_brokers: tuple[int, ...],
    out: str,
    rollback: str | None,
    summary: str | None,
) -> None:
    """Plan the least movement for a cluster's export, and prove it.

    \b
    Example:
      replica-planner replan --current CURRENT.json --brokers B.json --mode rebalance --out PLAN.json
    """
    from placement import replan as plan_moves
    from placement import verify as check
    from streaming.cli.offline.loads import read_loads
    from streaming.planning.decisions.decision import unhealed_text

    with working("planning"):
        current = read_assignment(current_file)
        plan = plan_moves(
            current,
            read_brokers(brokers_file),
            mode="heal" if mode == "heal" else "rebalance",
            max_moves=max_moves,
            leaders=leaders,
            exclude_topics=exclude_topics,
            exclude_brokers=exclude_brokers,
            loads=read_loads(loads_file, current) if loads_file else None,
        )
        checked = check(plan)
    if not checked:
        raise InputError(
            f"{current_file}: no plan is written, because it fails its own check: {checked.violations[0]}; that is a "
            "fault of the planner: report it with this file and the brokers",
            path=current_file,
        )
    write_text(out, _json(plan.moves, after=True) if plan.loads is None else _json_with_dirs(plan.moves, plan.loads))
    if rollback:
        write_text(rollback, _json(plan.moves, after=False))
    if summary:
        write_text(summary, json.dumps(plan.summary(), indent=2))
    proof = "proved least" if plan.optimal else f"lower bound {plan.lower_bound}"
    click.echo(
        f"{plan.moved_replicas} replicas move ({proof}), {plan.leader_changes} leaders change; "
        f"replicas per broker {plan.replicas_before.minimum}..{plan.replicas_before.maximum} before, "
        f"{plan.replicas_after.minimum}..{plan.replicas_after.maximum} after{unhealed_text(plan.unhealed)}",
        err=True,
    )
    if plan.loads is not None:
        bytes_ = plan.loads
        click.echo(
            f"{bytes_.moved_bytes} bytes move (certified lower bound {bytes_.lower_bound_bytes}); furthest outside the "
            f"band after: {max(bytes_.residuals().values()):.1%} of a share",
            err=True,
        )


def _json_with_dirs(moves: Moves, loads: LoadReport) -> str:
    pairs = zip(moves, loads.log_dirs, strict=True)
    return reassignment_with_dirs_json((m.topic, m.partition, m.after, dirs) for m, dirs in pairs)


def _json(moves: Moves, *, after: bool) -> str:
    return reassignment_json((m.topic, m.partition, m.after if after else m.before) for m in moves)


def check_plan(plan_file: str, current_file: str, brokers_file: str, *, partial: bool, as_json: bool) -> None:
    """Check a plan in files; exit code 1 where it is unsound or, without a budget, leaves undone what could be done."""
    from placement import verify_moves
    from placement.verification.claims import left_lost

    current, plan, brokers = read_assignment(current_file), read_assignment(plan_file), read_brokers(brokers_file)
    checked = verify_moves(changes_between(current, plan), brokers, partial=partial)
    violations = [str(violation) for violation in checked.violations]
    if not partial:
        violations += left_lost(_with(current, plan), brokers)
    if as_json:
        sound = {"sound": not violations, "checked": checked.checked, "violations": violations}
        click.echo(json.dumps(sound, indent=2))
    else:
        click.echo(f"{checked.checked} partitions checked: {'unsound' if violations else 'sound'}")
        for violation in violations:
            click.echo(f"  {violation}")
    if violations:
        raise click.exceptions.Exit(1)


def _with(current: Assignment, plan: Assignment) -> Assignment:
    """The layout with the plan carried out."""
    after = {(topic, partition): replicas for topic, partition, replicas in (*current.rows(), *plan.rows())}
    return Assignment.from_rows((*place, replicas) for place, replicas in after.items())


def changes_between(current: Assignment, plan: Assignment) -> Change:
    """The partitions of a plan, with their replicas in the layout as it is; none where they are not in it."""
    now = {(topic, partition): replicas for topic, partition, replicas in current.rows()}
    before = [now.get((topic, partition), ()) for topic, partition, _ in plan.rows()]
    width = max(map(len, before), default=0)
    padded = [[*replicas, *[NO_BROKER] * (width - len(replicas))] for replicas in before]
    old = np.array(padded, np.int32).reshape(len(before), width)
    return Change(plan.topics, plan.topic_index, plan.partition, old, plan.replicas)
