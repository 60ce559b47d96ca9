"""Commands that ask the journal why. They need no JVM."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from streaming.cli.main import conf_option, json_option
from streaming.cli.screens.render import print_json, print_line, print_table
from streaming.cli.screens.working import working
from streaming.config import load_config
from streaming.history.changes import Difference, difference, partition_changes
from streaming.history.tables import History, parse_as_of
from streaming.record.version import MEMBERS, BrokerRecord


def _ids(replicas: list[int]) -> str:
    return ",".join(map(str, replicas)) or "-"


@click.command()
@click.argument("cluster")
@click.argument("topic")
@click.argument("partition", type=int)
@conf_option
@json_option
def why(cluster: str, topic: str, partition: int, conf: str | None, as_json: bool) -> None:
    """Every change of a partition and its cause, oldest first.

    \b
    Examples:
      replica-planner why east orders 3
      replica-planner why east orders 3 --json
    """
    history = History(load_config(conf).tables.root)
    changes = partition_changes(history, history.cluster(cluster), topic, partition)
    if as_json:
        print_json(changes)
        return
    weighed = any(change.bytes is not None for change in changes)
    header = ["version", "at", "kind", "before", "after", "reason", "cause", "events", "approval"]
    header += ["bytes"] if weighed else []
    rows = [
        [
            str(change.plan_version),
            f"{change.created_at:%Y-%m-%dT%H:%M:%SZ}",
            change.kind,
            _ids(change.before),
            _ids(change.after),
            change.reason,
            change.cause,
            ", ".join(str(event["event_id"]) for event in change.events) or "-",
            "-" if change.approval == "not_required" else change.approval,
            *(["-" if change.bytes is None else str(change.bytes)] if weighed else []),
        ]
        for change in changes
    ]
    print_table((header, rows))


@click.command()
@click.argument("cluster")
@click.argument("first", metavar="V1")
@click.argument("second", metavar="V2")
@conf_option
@json_option
def diff(cluster: str, first: str, second: str, conf: str | None, as_json: bool) -> None:
    """What is different at V2 from what was at V1: partitions, brokers, and the versions that did it.

    V1 and V2 are plan versions or times; V2 may be the earlier one.

    \b
    Examples:
      replica-planner diff east 3 17
      replica-planner diff east 2026-11-19T10:00:00Z 17 --json
    """
    history = History(load_config(conf).tables.root)
    name = history.cluster(cluster)
    one, other = (history.version_at(name, parse_as_of(text)) for text in (first, second))
    found = difference(history, name, one, other)
    if as_json:
        print_json(_document(found))
    else:
        _show(found)


def _document(found: Difference) -> dict[str, Any]:
    document: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    document["brokers"] = [
        {"broker_id": known.broker_id, "before": old, "after": new}
        for old, new in found.brokers
        if (known := new or old)
    ]
    return document


def _show(found: Difference) -> None:
    appeared = sum(not p.before for p in found.partitions)
    gone = sum(not p.after for p in found.partitions)
    print_line(
        f"{found.cluster_id} from version {found.first} to version {found.second}: "
        f"{len(found.partitions) - appeared - gone} partitions changed ({found.moved_replicas} replicas moved, "
        f"{found.leader_changes} preferred leaders changed), {appeared} appeared, {gone} gone"
    )
    for old, new in found.brokers:
        known = new or old
        assert known is not None
        print_line(f"broker {known.broker_id}: {_broker(old)} → {_broker(new)}")
    if found.partitions:
        rows = [
            [p.topic, str(p.partition), _ids(p.before), _ids(p.after), ",".join(map(str, p.versions))]
            for p in found.partitions
        ]
        print_table((["topic", "partition", "before", "after", "versions"], rows))


def _broker(broker: BrokerRecord | None) -> str:
    if broker is None or broker.state not in MEMBERS:
        return "not there"
    return f"{broker.state}, rack {broker.rack or '-'}, capacity {broker.capacity:g}"


@click.command()
@click.argument("cluster")
@click.option("--version", type=click.IntRange(min=1), help="Default: the newest that moves replicas.")
@click.option("--out", metavar="FILE", required=True, help='The HTML file to write; "-" is stdout.')
@conf_option
def report(cluster: str, version: int | None, out: str, conf: str | None) -> None:
    """Write one HTML file to look at: a plan before and after, what moves, and the cluster's history.

    It loads nothing from anywhere, so it can be sent by mail and opened offline.

    \b
    Example:
      replica-planner report east --version 4 --out report.html
    """
    from streaming.cli.offline.offline import write_text
    from streaming.report import write_report

    history = History(load_config(conf).tables.root)
    with working("drawing"):
        page = write_report(history, history.cluster(cluster), version)
    write_text(out, page)
    if out != "-":
        click.echo(f"{out} written")
