"""Commands that run the job, or hand it events."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import click
import msgspec

from streaming.cli.main import conf_option
from streaming.config import Config, load_config
from streaming.errors import InputError
from streaming.events import EVENT_TYPES, decode, encode
from streaming.kafka.delivery import deliver, place_of


@click.command()
@conf_option
@click.option("--once", is_flag=True, help="Take what is there, plan it, and stop.")
def run(conf: str | None, once: bool) -> None:
    """Run the streaming job: events in, versioned plans out.

    \b
    Examples:
      replica-planner run
      replica-planner run --once --conf conf/local.toml
    """
    config = load_config(conf)
    from streaming.cli.watching import report_batch, say
    from streaming.job.query import run_job
    from streaming.monitoring.logs import log_to_screen

    log_to_screen(config.monitoring.log)
    say(f"reading events from {place_of(config.source)}, tables under {config.tables.root}")
    run_job(config, once=once, observer=report_batch, started=lambda: say("running; Ctrl-C stops it"))
    say("stopped")


def _event_options(command: Any) -> Any:
    """One option a field of any event, so that ``--type broker_left --broker-id 3`` needs no file."""
    common = {"event_id", "cluster_id", "occurred_at"}
    names = {name for event in EVENT_TYPES.values() for name in event.__struct_fields__} - common
    for name in sorted(names, reverse=True):
        command = click.option(f"--{name.replace('_', '-')}", name, metavar="VALUE", hidden=True)(command)
    return command


@click.command(context_settings={"max_content_width": 100})
@click.argument("events", required=False, metavar="[EVENTS.jsonl]")
@conf_option
@click.option("--type", "event_type", type=click.Choice(sorted(EVENT_TYPES)), help="Make one event from options.")
@click.option("--cluster", help="The event's cluster_id.")
@click.option("--event-id", help="Default: a random one.")
@click.option("--occurred-at", help="RFC 3339; default: now.")
@_event_options
def submit(
    events: str | None,
    conf: str | None,
    event_type: str | None,
    cluster: str | None,
    event_id: str | None,
    occurred_at: str | None,
    **fields: str | None,
) -> None:
    """Hand events to the job's source: a file of them ("-" is stdin), or one made from options.

    Every field of an event is an option of the same name; lists and objects are written as JSON.

    \b
    Examples:
      replica-planner submit events.jsonl
      replica-planner submit --type broker_left --cluster east --broker-id 3 --reason failed
      replica-planner submit --type topic_created --cluster east --topic t --partitions 6 --replication-factor 3
    """
    config = load_config(conf)
    if (events is None) == (event_type is None):
        raise click.UsageError("give a file of events, or --type and the fields of one event")
    if events is not None:
        data = _read_bytes(events)
    else:
        given = {"event_id": event_id, "cluster_id": cluster, "occurred_at": occurred_at} | fields
        data = make_event(str(event_type), given) + b"\n"
    hand_over(config, data)
    lines = [decode(line, str(n)) for n, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1)]
    click.echo(f"{len(lines)} line{'s' if len(lines) != 1 else ''} handed over to {place_of(config.source)}")
    for line in lines:
        if line.event is None:
            click.echo(f"line {line.place} is no event and will be kept in quarantine: {line.problem}", err=True)


def _read_bytes(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", path=path) from error


def make_event(event_type: str, given: Mapping[str, str | None]) -> bytes:
    """One event as a line of JSON, from texts.

    Raises:
        InputError: a field is missing, unknown to this type, or has a value that it cannot have.
    """
    fields: dict[str, Any] = {name: _value(text) for name, text in given.items() if text is not None}
    cls = EVENT_TYPES[event_type]
    foreign = sorted(set(fields) - set(cls.__struct_fields__))
    if foreign:
        raise InputError(
            f"{event_type} has no field {foreign[0]}: there are {', '.join(cls.__struct_fields__)}",
            path="--" + foreign[0].replace("_", "-"),
        )
    fields.setdefault("event_id", str(uuid.uuid4()))
    fields.setdefault("occurred_at", datetime.now(UTC))
    try:
        event = msgspec.convert({"type": event_type, **fields}, cls, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{event_type}: {str(error).replace('`$.', '`')}", path=event_type) from error
    return encode(event)


def _value(text: str) -> Any:
    """Lists and objects are JSON; everything else is left to the field's own type."""
    if text[:1] in "[{":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"{text!r} is not JSON: {error}", path=text) from error
    return text


def hand_over(config: Config, data: bytes) -> None:
    """Put lines where the job will find them."""
    deliver(config.source, data)


def _decision(event_type: str, cluster: str, version: int, digest: str | None, conf: str | None) -> None:
    config = load_config(conf)
    from streaming.history.tables import History

    found = History(config.tables.root)
    plan = found.version(found.cluster(cluster), version)
    given = {"cluster_id": cluster, "plan_version": str(version), "digest": digest or plan.digest, "by": getuser()}
    hand_over(config, make_event(event_type, given) + b"\n")
    click.echo(f"{event_type} of version {version} of {cluster} handed over to {place_of(config.source)}")


_cluster = click.argument("cluster")
_version = click.argument("version", type=click.IntRange(min=1))
_digest = click.option("--digest", required=True, help="The digest that `show` prints: you decide on that plan only.")


@click.command()
@_cluster
@_version
@_digest
@conf_option
def approve(cluster: str, version: int, digest: str, conf: str | None) -> None:
    """Let a proposed plan take effect.

    \b
    Example:
      replica-planner approve east 6 --digest 83bb0c0536e25f9a...    the whole digest, as show prints it
    """
    _decision("plan_approved", cluster, version, digest, conf)


@click.command()
@_cluster
@_version
@_digest
@conf_option
def reject(cluster: str, version: int, digest: str, conf: str | None) -> None:
    """Put on record that a proposed plan must not take effect.

    \b
    Example:
      replica-planner reject east 6 --digest 83bb0c0536e25f9a...    the whole digest, as show prints it
    """
    _decision("plan_rejected", cluster, version, digest, conf)


@click.command()
@_cluster
@_version
@conf_option
def rollback(cluster: str, version: int, conf: str | None) -> None:
    """Undo the moves of a version by a new one.

    \b
    Example:
      replica-planner rollback east 6
    """
    _decision("plan_rolled_back", cluster, version, None, conf)


@click.command()
@_cluster
@conf_option
def resume(cluster: str, conf: str | None) -> None:
    """Plan a stopped cluster again: resume it and hand over once more what was held meanwhile.

    \b
    Example:
      replica-planner resume east
    """
    config = load_config(conf)
    from streaming.history.tables import History
    from streaming.record.version import HELD

    history = History(config.tables.root)
    name = history.cluster(cluster)
    held = [row for row in history.quarantine(name).to_pylist() if row["reason"].startswith(HELD)]
    # What was handed over by an earlier resume is known by now, and comes out as a duplicate.
    lines = [make_event("cluster_resumed", {"cluster_id": name}), *dict.fromkeys(r["payload"].encode() for r in held)]
    hand_over(config, b"".join(line + b"\n" for line in lines))
    click.echo(f"{name} is to be resumed, with {len(lines) - 1} held events handed over to {place_of(config.source)}")


@click.command()
@conf_option
def maintain(conf: str | None) -> None:
    """Merge small files and remove old ones; time travel inside the audit window goes on working.

    The job does it by itself, once a day by default.

    \b
    Example:
      replica-planner maintain --conf conf/local.toml
    """
    config = load_config(conf)
    from streaming.job.maintenance import maintain as maintain_tables
    from streaming.job.tables import Tables
    from streaming.spark.session import spark_session

    spark = spark_session("replica-planner maintain", settings=config.spark)
    try:
        for sentence in maintain_tables(spark, Tables(config.tables.root)):
            click.echo(sentence)
    finally:
        spark.stop()
