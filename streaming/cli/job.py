"""Commands that run the job, or submit events."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from streaming.cli.main import conf_option
from streaming.config import Config, load_config
from streaming.errors import InputError, JobError
from streaming.events import EVENT_TYPES, Line, decode, encode
from streaming.kafka.delivery import deliver, place_of

_PATIENCE: Final = 120.0


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
    from streaming.cli.screens.watching import report_batch, say
    from streaming.job.query import run_job
    from streaming.monitoring.logs import log_to_screen

    log_to_screen(config.monitoring.log)
    say(f"reading events from {place_of(config.source)}, tables under {config.tables.root}")
    run_job(config, once=once, observer=report_batch, started=lambda: say("running; Ctrl-C stops it"))
    say("stopped")


def wait_options(command: Any) -> Any:
    """``--wait`` and ``--timeout``; the command gets the ``patience`` in seconds, ``None`` where it is not to wait."""

    @wraps(command)
    def with_patience(*args: Any, wait: bool, timeout: float, **kwargs: Any) -> Any:
        return command(*args, patience=timeout if wait else None, **kwargs)

    seconds = click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        default=_PATIENCE,
        show_default=True,
        metavar="S",
        help="Seconds that --wait waits.",
    )
    wait = click.option("--wait", is_flag=True, help="Wait for the outcome; exit code 1 if it is a refusal, or late.")
    return wait(seconds(with_patience))


def hand_over(config: Config, data: bytes, said: str, patience: float | None = None) -> None:
    """Put lines where the job will find them, say so, and wait for what becomes of them if that is wanted.

    Raises:
        click.exceptions.Exit: they were refused, or have no outcome in time.
    """
    lines, awaited = lines_of(data), None
    if patience is not None:
        from streaming.cli.awaiting import Awaited

        awaited = Awaited(config.tables.root, lines)
    deliver(config.source, data)
    click.echo(f"{said} sent to {place_of(config.source)}")
    for line in lines:
        if line.event is None:
            click.echo(
                f"line {line.place} is not a valid event and will be kept in quarantine: {line.problem}", err=True
            )
    if awaited is not None and patience is not None and not awaited.wait(patience):
        raise click.exceptions.Exit(1)


def lines_of(data: bytes) -> list[Line]:
    """The lines as the job will read them, by their numbers."""
    return [decode(line, str(n)) for n, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1)]


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
@wait_options
@_event_options
def submit(
    events: str | None,
    conf: str | None,
    event_type: str | None,
    cluster: str | None,
    event_id: str | None,
    occurred_at: str | None,
    patience: float | None,
    **fields: str | None,
) -> None:
    """Hand events to the job's source: a file of them ("-" is stdin), or one made from options.

    Every field of an event is an option of the same name; lists and objects are written as JSON.

    \b
    Examples:
      replica-planner submit events.jsonl
      replica-planner submit events.jsonl --wait
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
    count = len(lines_of(data))
    hand_over(config, data, f"{count} line{'s' if count != 1 else ''}", patience)


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
    from streaming.history.tables import History

    if "://" not in config.tables.root:
        History(config.tables.root).clusters()  # where there are no tables this says so, before a JVM starts
    from streaming.job.maintenance import maintain as maintain_tables
    from streaming.job.tables import Tables
    from streaming.spark.failures import reason_of
    from streaming.spark.session import end_session, spark_session

    spark, tables = spark_session("replica-planner maintain", settings=config.spark), Tables(config.tables.root)
    try:
        tables.create(spark, config.tables.audit_window.time)  # those that an earlier release did not know
        for sentence in maintain_tables(spark, tables):
            click.echo(sentence)
    except Exception as error:
        raise JobError(
            f"{config.tables.root}: the tables cannot be maintained: {reason_of(error)}; plans are not harmed"
        ) from error
    finally:
        end_session(spark)
