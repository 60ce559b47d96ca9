"""``foreachBatch``: one micro-batch becomes plan versions, in one append that is the commit point."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.config import Config
from streaming.errors import JobError
from streaming.events import Line
from streaming.job.checkpoint import check_reached, check_repeated, check_tables, checkpoint_identity, digest_of, note
from streaming.job.executors import plan_on_executors
from streaming.job.folder import Folder, folder_of
from streaming.job.garbage import few_collections
from streaming.job.projections import Projector, Rebuilt, brought
from streaming.job.recovery import find_version, load_memory, ticks_of
from streaming.job.tables import Tables
from streaming.job.write_behind import Behind
from streaming.monitoring.measures import Measures, Upkeep, measure, measures_to_arrow
from streaming.planning.batch import BatchResult, Memory, plan_batch
from streaming.record.lines import decode_batch
from streaming.record.rows import batch_to_arrow, progress_to_arrow, quarantine_to_arrow
from streaming.record.schemas import METRICS, PROGRESS, QUARANTINE, Table
from streaming.record.version import PlanVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


NO_BATCH: Final = 2**62
"""Stands after every batch of a query: whatever is in quarantine counts."""

UNWRITTEN: Final = 10_000
"""Batches whose numbers wait while ``metrics`` cannot be written."""


Observer = Callable[[BatchResult], None]
Meter = Callable[[Measures], None]


@dataclass(slots=True)
class MicroBatches:
    """The function that ``foreachBatch`` calls.

    Only what it was told is pickled; memory is reloaded where it is missing. ``failure`` is what ended a batch: what
    Spark makes of it names everything but the reason.
    """

    config: Config
    observer: Observer | None = None
    meter: Meter | None = None
    begun: Callable[[int], None] | None = None
    failure: BaseException | None = None
    _app_id: str = ""
    _memory: Memory | None = None
    _projector: Projector | None = None
    _metrics: Behind[Measures] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: bool = False
    _folder: Folder | None = None
    _tables: Mapping[str, str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without memory, threads and locks."""
        return (MicroBatches, (self.config,))

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Plan a batch and commit it. A batch that the journal has already is a no-op."""
        while not self._lock.acquire(timeout=0.1):
            if self._stopping:
                raise JobError("the job was asked to stop; this batch is taken up at the next start")
        self._alone(lambda: self._run(batch.sparkSession, batch, batch_id))

    def _alone(self, work: Callable[[], None]) -> None:
        """Do what changes memory and tables, under the lock, which ends here. After a failure memory is read again."""
        try:
            with few_collections():
                work()
        except BaseException as error:
            self._memory = None
            self.failure = error
            raise
        finally:
            self._lock.release()

    def stop(self, end_query: Callable[[], None]) -> None:
        """Wait for the batch in hand, and end the query before the next one."""
        with self._lock:
            self._stopping = True
            end_query()

    def close(self) -> None:
        """Write what is written behind: the projections and the metrics."""
        if self._projector is not None:
            self._projector.stop()
            self._projector = None
        if self._metrics is not None:
            self._metrics.stop()
            self._metrics = None

    def write_failures(self) -> int:
        """How often writing the projections or the metrics failed; it is tried again each time."""
        return sum(each.failures for each in (self._projector, self._metrics) if each is not None)

    def tick(self, spark: SparkSession, now: datetime) -> None:
        """Let time pass once the source is used up. Not a batch of the query, so it has transactions of its own."""
        self._lock.acquire()
        self._alone(lambda: self._tick(spark, now))

    def _tick(self, spark: SparkSession, now: datetime) -> None:
        tables = Tables(self.config.tables.root)
        memory = self._remembered(spark, tables, NO_BATCH)
        began = time.monotonic()
        result = plan_batch(memory, [], now, NO_BATCH, self.config, partial(find_version, spark, tables))
        if result.versions:
            result = replace(result, batch_id=memory.ticked + 1)
            commit(spark, tables, memory, result, ticks_of(self._app_id))
            memory.ticked += 1
            self._publish(spark, tables, memory, result, began)

    def _run(self, spark: SparkSession, batch: DataFrame, batch_id: int) -> None:
        if self.begun is not None:
            self.begun(batch_id)
        tables = Tables(self.config.tables.root)
        memory = self._remembered(spark, tables, batch_id)
        table = batch.toArrow()
        if not table.num_rows:
            return
        began = time.monotonic()
        lines = list(decode_batch(table))
        if batch_id <= memory.reached:
            read, empty = self._digest(lines, batch_id), not lines and not self._parts(batch_id)
            check_repeated(spark, tables, self._app_id, batch_id, read, empty=empty)
        if batch_id <= memory.committed:
            return
        read = self._take(lines, batch_id)
        batch_time = pc.max(table["batch_time"]).as_py()
        result = plan_batch(
            memory,
            lines,
            batch_time,
            batch_id,
            self.config,
            partial(find_version, spark, tables),
            partial(
                plan_on_executors,
                spark,
                at_least=self.config.job.executors_from,
                app_id=self._app_id,
                batch_id=batch_id,
            ),
        )
        commit(spark, tables, memory, result, self._app_id, read)
        memory.committed = batch_id
        if lines:
            memory.reached = batch_id
            if "://" not in self.config.job.checkpoint:
                note(spark, self.config.job.checkpoint, self._tables, batch_id)
        memory.shrink(self.config.job.memory.bytes)
        self._publish(spark, tables, memory, result, began)

    def _take(self, lines: list[Line], batch_id: int) -> str:
        """Add the lines that the folder has for the batch, and say what is read."""
        given = len(lines)
        if self._folder is not None:
            lines += self._folder.take(batch_id)
        return self._digest(lines[:given], batch_id)

    def _digest(self, lines: Sequence[Line], batch_id: int) -> str:
        return digest_of(lines, self._parts(batch_id))

    def _parts(self, batch_id: int) -> str:
        """What the folder has given to the batch; empty where that is nothing."""
        return "" if self._folder is None else self._folder.log.identity(batch_id)

    def _remembered(self, spark: SparkSession, tables: Tables, batch_id: int) -> Memory:
        if self._memory is None:
            checkpoint = self.config.job.checkpoint
            self._app_id = self._app_id or checkpoint_identity(spark, checkpoint)
            self._tables = check_tables(spark, tables, checkpoint)  # before projections of others are mended
            journal = tables.journal_version(spark)
            memory = load_memory(spark, tables, self._app_id, batch_id, partial(self._rebuild, spark, tables))
            memory.journal = journal
            check_reached(spark, tables, checkpoint, self._tables, memory.reached)
            self._folder = folder_of(self.config)
            self._memory = memory
            # First of all: a projection counts as complete up to the newest version in it.
            self._project(spark, tables, self._memory.behind)
            self._memory.behind = []
        return self._memory

    def _publish(self, spark: SparkSession, tables: Tables, memory: Memory, result: BatchResult, began: float) -> None:
        """Tell those who watch, now that the journal has it."""
        self._project(spark, tables, result.versions)
        if self.observer is not None:
            self.observer(result)
        if result.versions or result.unplanned:
            measures = measure(result, datetime.now(UTC), time.monotonic() - began, self._upkeep(memory))
            self._keep(spark, tables, measures)
            if self.meter is not None:
                self.meter(measures)

    def _upkeep(self, memory: Memory) -> Upkeep:
        held = memory.clusters.values()
        return Upkeep(len(held), sum(state.size() for state in held), self.write_failures())

    def _keep(self, spark: SparkSession, tables: Tables, measures: Measures) -> None:
        """Put the numbers into ``metrics``, behind the batch: they are no part of what it commits."""
        if self._metrics is None:
            append = partial(append_metrics, spark, tables, self._app_id)
            interval = self.config.monitoring.metrics_interval.seconds
            self._metrics = Behind("metrics", interval, append, UNWRITTEN)
        self._metrics.add([measures])

    def _rebuild(self, spark: SparkSession, tables: Tables, rebuilt: Rebuilt) -> None:
        self._project(spark, tables, [rebuilt])

    def _project(self, spark: SparkSession, tables: Tables, versions: Sequence[PlanVersion | Rebuilt]) -> None:
        if not versions:
            return
        if self._projector is None:
            job = self.config.job
            seconds = job.projection_interval.seconds, job.maintenance_interval.seconds
            self._projector = Projector(spark, tables, *seconds)
        self._projector.add(versions)


def commit(
    spark: SparkSession, tables: Tables, memory: Memory, result: BatchResult, app_id: str, read: str = ""
) -> None:
    """Append what the batch brought, the journal last: before it nothing has happened, after it everything has.

    ``read`` is a digest of what the batch has read.

    What an interrupted attempt at the same batch has appended is not appended again: lines that it put into quarantine
    were passed over, and reports of executors are the same whatever the policy.
    """
    about = {"app": app_id, "batch": result.batch_id, "read": read, "plans": brought(result.versions)}
    metadata = json.dumps(about)
    batch_id = result.batch_id

    def append(table: Table, rows: pa.Table) -> None:
        if rows.num_rows:
            tables.append(spark, table, rows, user_metadata=metadata, app_id=app_id, batch_id=batch_id)

    if not memory.left_by(batch_id).progress:
        append(PROGRESS, progress_to_arrow(result.progress, app_id, batch_id))
    append(QUARANTINE, quarantine_to_arrow(result.unplanned, app_id, batch_id, result.batch_time))
    rows = batch_to_arrow(result.versions, result.encoded, app_id, batch_id)
    if rows.num_rows:
        memory.journal = tables.append_to_journal(spark, rows, known=memory.journal, user_metadata=metadata)


def append_metrics(spark: SparkSession, tables: Tables, app_id: str, measures: Sequence[Measures]) -> None:
    """Append the numbers of some batches in one commit."""
    rows = measures_to_arrow(measures, app_id)
    moment = int(measures[-1].finished_at.timestamp() * 1000)  # ticks are no batches, so batch ids are not ascending
    tables.append(spark, METRICS, rows, app_id=f"{app_id}/metrics", batch_id=moment, user_metadata="")
