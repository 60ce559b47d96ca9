"""The command that watches a real cluster."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from streaming.cli.main import conf_option
from streaming.config import Config, load_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.events import AnyEvent


@click.command()
@click.option("--bootstrap-server", metavar="HOST:PORT,...", required=True, help="Brokers of the cluster.")
@click.option("--cluster", help="What events call the cluster. Default: the id that Kafka gave it.")
@conf_option
@click.option("--once", is_flag=True, help="Send what has changed since the last poll, and stop.")
@click.option("--interval", type=click.FloatRange(min=0.05), metavar="S", help="Seconds between polls; default 0.4.")
def collect(bootstrap_server: str, cluster: str | None, conf: str | None, once: bool, interval: float | None) -> None:
    """Watch a real cluster, and hand what changes there to the job's source.

    The first look tells the whole cluster; later ones, also after a restart, what became different: brokers that join,
    fail or return, topics that come, grow or go, replicas, leaders and ISR. What Kafka asks for by way of security
    stands in the section [kafka] of the conf; the password may be in REPLICA_PLANNER_KAFKA_PASSWORD. Where the section
    [collect] says how often, loads are looked at as well: sizes, rates, disks.

    \b
    Examples:
      replica-planner collect --bootstrap-server localhost:9092 --cluster east
      replica-planner collect --bootstrap-server localhost:9092 --cluster east --once
    """
    config = load_config(conf)
    from streaming.cli.screens.render import print_line
    from streaming.cli.screens.watching import say
    from streaming.collect.collector import Collector, hidden_text, watch
    from streaming.collect.load_watch import LoadWatch
    from streaming.kafka.connection import Connection
    from streaming.kafka.delivery import deliver
    from streaming.monitoring.logs import log_to_screen

    log_to_screen(config.monitoring.log)
    connection = Connection.to(bootstrap_server, config.kafka)
    pause = interval or config.collect.interval.seconds
    hand_over = partial(deliver, config.source)
    loads = partial(LoadWatch, settings=config.collect, deliver=hand_over, say=say) if config.collect.loads else None
    with (
        _stopped_by_signals() as stop,
        Collector(connection, cluster, config.collect.state, hand_over, loads) as collector,
    ):
        if once:
            found = collector.poll()
            stop.wait(pause)  # a look alone does not prove that something is gone
            found += collector.poll()
            if collector.hidden:
                click.echo(hidden_text(collector.hidden), err=True)
            print_line(f"{collector.cluster_id}: {_summary(found, config)}")
            return
        say(f"watching {collector.cluster_id}; Ctrl-C stops it")
        watch(collector, pause, stop, lambda events: say(f"{collector.cluster_id}: {_summary(events, config)}"), say)
        say("stopped")


def _summary(events: list[AnyEvent], config: Config) -> str:
    from streaming.collect.telling import told
    from streaming.kafka.delivery import place_of

    return f"{told(events)}; sent to {place_of(config.source)}" if events else "nothing is different"


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Set by SIGINT and SIGTERM, which otherwise do nothing meanwhile."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
