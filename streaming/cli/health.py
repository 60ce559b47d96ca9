"""The command that probes ask. It needs no JVM."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from streaming.amounts import duration_text
from streaming.cli.main import conf_option, json_option
from streaming.cli.screens.render import print_json, print_line
from streaming.config import Config, load_config
from streaming.errors import HistoryError, InputError
from streaming.guard import writer_of
from streaming.history.tables import History
from streaming.monitoring.heartbeat import heartbeat_path, read_heartbeat
from streaming.monitoring.judging import Health, judge
from streaming.monitoring.stops import stopped_clusters

_PATIENCE: Final = 60.0
_LONGEST_BATCH: Final = 1800.0
_TRIGGERS: Final = 3


@click.command()
@click.option("--max-silence", type=click.FloatRange(min=0), metavar="S", help="Seconds without progress; default 60.")
@click.option(
    "--max-batch",
    type=click.FloatRange(min=0),
    metavar="S",
    default=_LONGEST_BATCH,
    show_default=True,
    help="Seconds that one batch, or the start, may take.",
)
@click.option("--liveness", is_flag=True, help="Ignore stopped clusters: a restart does not help them.")
@conf_option
@json_option
@click.pass_context
def health(
    ctx: click.Context, max_silence: float | None, max_batch: float, liveness: bool, conf: str | None, as_json: bool
) -> None:
    """Tell whether the job is well: does its query make progress, how far behind is it, which clusters are stopped.

    Exit code 1 where it is not. Run it on the machine of the job: the lock on the tables is one of that machine.

    \b
    Examples:
      replica-planner health
      replica-planner health --liveness       for a probe that restarts the job
      replica-planner health --json
    """
    config = load_config(conf)
    found = _judged(config, max_silence, timedelta(seconds=max_batch))
    if as_json:
        print_json({"well": found.well, **asdict(found)})
    else:
        click.echo(found.state)
        if found.rows_behind is not None:
            click.echo(f"{found.rows_behind} lines wait in the source")
        if found.lag_seconds is not None:
            click.echo(f"the newest planned event occurred {duration_text(found.lag_seconds)} ago")
        for cluster, cause in found.stopped.items():
            print_line(f"{cluster} is not planned: {cause}; once that is fixed: replica-planner resume {cluster}")
    if not (found.alive if liveness else found.well):
        ctx.exit(1)


def _judged(config: Config, max_silence: float | None, longest_batch: timedelta) -> Health:
    path = heartbeat_path(config)
    if path is None:
        raise InputError(
            f"{config.tables.root}: beside tables behind a URL there is no heartbeat; "
            "name a file for it in [monitoring] heartbeat, for the job and for this command",
            path=config.tables.root,
        )
    folder = "://" not in config.tables.root
    patience = max(timedelta(seconds=_PATIENCE), _TRIGGERS * config.job.interval.time)
    return judge(
        read_heartbeat(path),
        writer_of(config.tables.root) if folder else None,
        _stopped(config),
        datetime.now(UTC),
        patience=patience if max_silence is None else timedelta(seconds=max_silence),
        longest_batch=longest_batch,
        ends_by_itself=config.job.trigger == "available-now",
        locks=folder,
    )


def _stopped(config: Config) -> dict[str, str]:
    try:
        return stopped_clusters(History(config.tables.root).plans(["kind", "cause"]))
    except HistoryError:
        return {}
