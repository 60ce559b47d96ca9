"""The command that carries plans out on a real cluster."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from streaming.cli.main import conf_option
from streaming.config import load_config
from streaming.errors import IncompleteError, RefusedError

if TYPE_CHECKING:
    from streaming.apply.ahead import Bounds
    from streaming.apply.carry_out import Screen
    from streaming.apply.journal.tasks import Task
    from streaming.apply.kafka.cluster import Cluster
    from streaming.config import Config

NOTHING: Final = "nothing is left to do"


@click.command("apply")
@click.option("--bootstrap-server", "servers", metavar="HOST:PORT,...", required=True, help="Brokers of the cluster.")
@click.argument("cluster")
@click.argument("version", type=click.IntRange(min=1), required=False)
@click.option("--dry-run", is_flag=True, help="Print the steps and touch nothing.")
@click.option(
    "--throttle",
    "rate",
    metavar="BYTES/S",
    type=click.IntRange(min=1),
    help="Copy at most so many bytes a second to and from each broker.",
)
@click.option(
    "--wave-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Divide into waves in which a broker receives, and sends, at most so many bytes.",
)
@click.option(
    "--cancel-others",
    is_flag=True,
    help="Restore also what somebody else is moving right now; without it that is left to them, and named.",
)
@conf_option
@click.pass_context
def apply(
    ctx: click.Context,
    servers: str,
    cluster: str,
    version: int | None,
    dry_run: bool,
    rate: int | None,
    wave_bytes: int | None,
    cancel_others: bool,
    conf: str | None,
) -> None:
    """Carry a plan out on a real cluster: one version, or without one all that wait for it.

    Killed and started again, it goes on where the cluster is. Ctrl-C cancels what is under way and removes throttles.
    Exit code 1: begun, and not all of it is carried out.

    \b
    Examples:
      replica-planner apply --bootstrap-server localhost:9092 east --dry-run
      replica-planner apply --bootstrap-server localhost:9092 east 4 --throttle 50000000
    """
    config = load_config(conf)
    # What Kafka's client has to say of brokers that come and go is said by the steps, once.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    from streaming.apply.ahead import Bounds
    from streaming.apply.journal.recorded import check_identity, read_tasks
    from streaming.apply.kafka.cluster import Cluster
    from streaming.cli.screens.progress import progress_screen
    from streaming.guard import only_executor
    from streaming.history.tables import History
    from streaming.kafka.connection import Connection

    connection = Connection.to(servers, config.kafka)
    history = History(config.tables.root)
    name = history.cluster(cluster)
    tasks = read_tasks(history, name, version)
    bounds = Bounds(rate, wave_bytes, cancel_others)
    with Cluster(connection) as real:
        if unsure := check_identity(history, name, servers, real.kafka_id()):
            click.echo(unsure, err=True)
        if dry_run:
            _explain(real, tasks, bounds)
            return
        with only_executor(config.tables.root, name), _stopped_by_signals() as stopped, progress_screen() as screen:
            try:
                _carry_out(real, tasks, bounds, config, screen, stopped)
            except IncompleteError as error:
                failure = error
            else:
                return
    click.echo(f"replica-planner: {failure}", err=True)
    ctx.exit(1)


def _explain(real: Cluster, tasks: Sequence[Task], bounds: Bounds) -> None:
    """Print the steps that carrying out would take."""
    from streaming.apply.ahead import leftovers, look, steps_ahead
    from streaming.apply.explain import explain
    from streaming.apply.steps import Refuse

    ahead = [(f"{task.name}: {task.version.cause}", task, steps) for task, steps in steps_ahead(real, tasks, bounds)]
    if not tasks and (steps := leftovers(look(real))):
        click.echo("\n".join(explain(steps[0])))
    elif not any(steps for _, _, steps in ahead):
        click.echo(NOTHING)
    refused = []
    for title, task, steps in ahead:
        if steps:
            click.echo(title)
        for step in steps:
            if isinstance(step, Refuse):
                refused.append(RefusedError(f"{task.name} is not carried out: {step.reason}"))
            else:
                click.echo("".join(f"  {line}\n" for line in explain(step)), nl=False)
    if refused:
        raise refused[0]


def _carry_out(
    real: Cluster, tasks: Sequence[Task], bounds: Bounds, config: Config, screen: Screen, stopped: threading.Event
) -> None:
    """Do the steps of one task after the other; those that do not fit the cluster do not hold up the others."""
    from streaming.apply.ahead import leftovers, look, steps_on
    from streaming.apply.carry_out import Run
    from streaming.apply.explain import headline
    from streaming.apply.journal.claims import Claim
    from streaming.apply.journal.reports import Reports
    from streaming.apply.kafka.throttles import unthrottle

    seen, idle, refused, overtaken = look(real, tasks), True, list[RefusedError](), list[Run]()
    for number, task in enumerate(tasks, start=1):
        reports = Reports(config.source, task.version.cluster_id, task.version.plan_version)
        steps = steps_on(real, task, seen, bounds)
        run = Run(real, task, reports, screen, stopped)
        if task.left_to_later:
            overtaken.append(run)
        if steps:
            idle = False
            claim = Claim(config, task.version.cluster_id, task.version.plan_version)
            if unsure := claim.take():
                screen.say(unsure)
            if claim.is_held:  # the answer took its time
                steps = steps_on(real, task, look(real, [task]), bounds)
            screen.say(f"{task.name}: {task.version.cause}")
            try:
                run.carry_out(steps, claim.keep)
                screen.say(f"{task.name} is carried out")
            except RefusedError as error:
                claim.give_up()
                refused.append(error)
            except BaseException:
                claim.give_up()
                raise
            seen = look(real, tasks[number:])
        elif not task.left_to_later:
            run.note_done()
    for step in leftovers(seen):
        screen.say(headline(step))
        unthrottle(real, seen.throttled_brokers, seen.throttled_topics)
    if refused:
        raise refused[0]
    for run in overtaken:
        run.note_done()
    if idle:
        screen.say(NOTHING)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, or a request to end, sets; the second one ends the process at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # others cannot listen to signals
        yield stopped
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _: object) -> None:
        click.echo("stopping: cancelling what is under way, removing throttles", err=True)
        for each, handler in before.items():
            signal.signal(each, handler)
        stopped.set()

    before = {each: signal.signal(each, stop) for each in signals}
    try:
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
