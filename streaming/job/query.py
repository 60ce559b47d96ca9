"""The streaming job: starts the query, watches it, and stops it between two batches."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streaming.config import Config, KafkaSource
from streaming.errors import JobError
from streaming.guard import only_writer
from streaming.job.checkpoint import damaged_file
from streaming.job.folder import folder_of
from streaming.job.folder_log import NEW_CHECKPOINT
from streaming.job.microbatch import MicroBatches, Observer
from streaming.job.sources import read_lines
from streaming.job.tables import Tables
from streaming.kafka.delivery import place_of
from streaming.monitoring.monitor import Monitor, monitored
from streaming.monitoring.progress import Listener
from streaming.monitoring.stops import stopped_clusters
from streaming.record.schemas import PLANS
from streaming.spark.failures import reason_of
from streaming.spark.session import end_session, hushed, jvm_is_lost, spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log: Final = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.1
QUIET_SECONDS: Final = 5.0
QUIET_POLL_SECONDS: Final = 0.02
QUERY_NAME: Final = "replica-planner"


def run_job(
    config: Config,
    *,
    once: bool = False,
    spark: SparkSession | None = None,
    observer: Observer | None = None,
    started: Callable[[], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Run the job until its source is used up (``once``), or until it is asked to stop.

    Args:
        config: the conf.
        once: take what is there, then stop, whatever trigger the conf says.
        spark: a session to use; one is started, and stopped at the end, where none is given.
        observer: called after every committed batch.
        started: called when the query runs.
        stop: set it to stop the job; SIGINT and SIGTERM do the same.

    Raises:
        StreamingError: the job cannot start, or the query failed; says why.
    """
    with (
        only_writer(config.tables.root) as lock,
        monitored(config) as monitor,
        _own_session(config, lock) if spark is None else nullcontext(spark) as session,
    ):
        batches = MicroBatches(config, observer, monitor.batch, monitor.begin)
        monitor.exporter.write_failures(batches.write_failures)
        with _listened_to(session, monitor):
            _run(config, session, batches, monitor, started, stop or threading.Event(), once=once)


@contextmanager
def _own_session(config: Config, lock: int | None) -> Iterator[SparkSession]:
    session = spark_session(
        QUERY_NAME,
        kafka=isinstance(config.source, KafkaSource),
        settings=config.spark,
        log=config.monitoring.log,
        inherited=lock,
    )
    lost = False
    try:
        yield session
    except Exception as failure:
        lost = jvm_is_lost()
        if lost:
            raise JobError(
                "the JVM in which Spark runs is gone: it was killed, or had too little memory; nothing is lost: start "
                "the job again, if that was the reason with more spark.driver.memory, in [spark] of the conf"
            ) from failure
        raise
    finally:
        if not lost:
            end_session(session)


def _run(
    config: Config,
    session: SparkSession,
    batches: MicroBatches,
    monitor: Monitor,
    started: Callable[[], None] | None,
    wish: threading.Event,
    *,
    once: bool,
) -> None:
    with _signals(wish):
        try:
            tables = Tables(config.tables.root)
            tables.create(session, config.tables.audit_window.time)
            plans = tables.read(session, PLANS, ["cluster_id", "plan_version", "kind", "cause"])
            monitor.exporter.stopped(list(stopped_clusters(plans)))
            left = _waiting(config)
        except Exception as failure:
            raise _stopped(config, failure) from failure
        drain = once or config.job.trigger == "available-now"
        query = _start(session, config, batches, drain=drain)
        if started is not None:
            started()
        try:
            _watch(query, batches, wish, config)
            # With this trigger Spark has one tick to give, so one batch of a folder's files.
            while drain and not wish.is_set() and (left := left & _waiting(config)):
                _watch(_start(session, config, batches, drain=drain), batches, wish, config)
            # Asked to stop, it may have left events unread that say how the time went by.
            if drain and not wish.is_set():
                _let_time_pass(batches, session, config)
        finally:
            batches.close()


@contextmanager
def _listened_to(session: SparkSession, monitor: Monitor) -> Iterator[None]:
    listener = Listener(QUERY_NAME, monitor.trigger)
    session.streams.addListener(listener)
    try:
        yield
    finally:
        session.streams.removeListener(listener)


def _waiting(config: Config) -> set[str]:
    """The files that wait in the source, if it is a folder.

    Raises:
        JobError: it cannot be read, or the checkpoint does not belong to it.
    """
    folder = folder_of(config)
    return set() if folder is None else folder.waiting()


def _start(spark: SparkSession, config: Config, batches: MicroBatches, *, drain: bool) -> StreamingQuery:
    try:
        if "://" not in config.job.checkpoint:
            Path(config.job.checkpoint).mkdir(parents=True, exist_ok=True)
        writer = (
            read_lines(spark, config)
            .writeStream.queryName(QUERY_NAME)
            .option("checkpointLocation", config.job.checkpoint)
            .foreachBatch(batches)
        )
        if drain:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(config.job.interval.seconds * 1000)} milliseconds").start()
    except Exception as failure:
        raise _stopped(config, failure) from failure


def _watch(query: StreamingQuery, batches: MicroBatches, wish: threading.Event, config: Config) -> None:
    while query.isActive and not wish.wait(POLL_SECONDS):
        pass
    if wish.is_set():
        _wait_for_quiet(query)
        # However well the moment is chosen, the next batch may have begun; what the JVM says of its end is no news.
        with hushed():
            batches.stop(query.stop)
    else:
        batches.stop(query.stop)
    failure = batches.failure or query.exception()
    if failure is not None and not wish.is_set():
        raise _stopped(config, failure) from failure


def _let_time_pass(batches: MicroBatches, session: SparkSession, config: Config) -> None:
    try:
        batches.tick(session, datetime.now(UTC))
    except Exception as failure:
        raise _stopped(config, failure) from failure


def _stopped(config: Config, failure: BaseException) -> JobError:
    places = f"reading {place_of(config.source)}, writing {config.tables.root}"
    reason, damaged = reason_of(failure), damaged_file(config.job.checkpoint)
    if damaged and not isinstance(failure, JobError):
        reason = f"{damaged}{reason}; {NEW_CHECKPOINT}"
    return JobError(f"the job stopped ({places}): {reason}; nothing is lost: fix that, then start it again")


def _wait_for_quiet(query: StreamingQuery) -> None:
    """Wait for the moment after a batch: a query that is stopped inside one fills the screen with a stack overflow."""
    pause = threading.Event()
    busy = False
    for _ in range(int(QUIET_SECONDS / QUIET_POLL_SECONDS)):
        active = query.isActive and bool(query.status["isTriggerActive"])
        if not query.isActive or (busy and not active):
            return
        busy = active
        pause.wait(QUIET_POLL_SECONDS)


@contextmanager
def _signals(wish: threading.Event) -> Iterator[None]:
    """While this lasts, SIGINT and SIGTERM ask for a clean stop; only the main thread can listen to them."""

    def ask(*_: object) -> None:
        if not wish.is_set():
            _log.info("stopping; the batch in hand ends first")
        wish.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
