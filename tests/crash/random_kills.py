"""A job on a history drawn from a seed, killed at a random moment, perhaps twice, and compared with one left alone.

As a program, ``python -m tests.crash.random_kills CONF`` runs the job once over what is there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streaming.config import load_config
from streaming.job.query import run_job
from tests.histories import random_history
from tests.job_folder import JobFolder

_OF_A_CUT = ("plan_version", "sequence")
"""Columns that count within versions or batches."""

TABLES = ("plans", "quarantine", "plan_progress", "brokers", "assignments")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one history ended: in which batches the job was killed, and what came out different."""

    seed: int
    lines: int
    killed_in: tuple[int, ...]
    differences: tuple[str, ...]


def strike(seed: int, spark: SparkSession, folder: Path) -> Outcome:
    """Play the history of this seed twice, once with kills, and compare."""
    draw = random.Random(seed)
    history = random_history(seed)
    calm, struck = (_job(folder / name, history) for name in ("calm", "struck"))
    calm.run(spark)
    kills = draw.choice([1, 1, 2])
    killed = [_kill(struck, draw.randrange(len(history)), draw) for _ in range(kills)]
    struck.run(spark)
    sent = sorted(f"{n:02}.jsonl:{line}" for n, lines in enumerate(history) for line in range(1, len(lines) + 1))
    # After a restart there may be a batch in which nothing but time passes, and then later ones have other numbers.
    look = partial(JobFolder.rows, batches=False) if _batches(struck) == _batches(calm) else _uncut
    differences = [table for table in TABLES if look(struck, table) != look(calm, table)]
    if [place for place, _, _ in struck.received()] != sent:
        differences.append("lines without exactly one outcome")
    if struck.received() != calm.received():
        differences.append("outcomes")
    return Outcome(seed, len(sent), tuple(batch for batch in killed if batch is not None), tuple(differences))


def _batches(job: JobFolder) -> list[set[str]]:
    """The files of each batch that had any, in order."""
    found: dict[int, set[str]] = {}
    for table in ("plans", "quarantine"):
        for row in job.rows(table):
            events = row["events"] if table == "plans" else [row]
            found.setdefault(row["batch_id"], set()).update(event["place"].partition(":")[0] for event in events)
    return [files for _, files in sorted(found.items()) if files]


def _uncut(job: JobFolder, table: str) -> list[Any]:
    """What a table says wherever its versions begin and end.

    Spark's file source notes what it has seen before Spark notes what belongs to a batch. Killed in between, it gives
    two files to one batch, and what events of both bring together is one version instead of two.
    """
    rows = job.rows(table, batches=False)
    if table == "plans":
        rows.sort(key=lambda row: (row["cluster_id"], row["plan_version"]))
        return [
            (row["cluster_id"], name, {key: value for key, value in part.items() if key not in _OF_A_CUT})
            for name in ("events", "broker_changes", "topic_changes", "moves")
            for row in rows
            for part in row[name]
            if part.get("outcome") in (None, "applied")
        ]
    kept = [{name: value for name, value in row.items() if name not in _OF_A_CUT} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def _job(folder: Path, history: list[list[bytes]]) -> JobFolder:
    job = JobFolder(folder, policy="approval = []", source="max_files_per_trigger = 1")
    for lines in history:
        job.send(*lines)
    return job


def _kill(job: JobFolder, batch: int, draw: random.Random) -> int | None:
    """Kill the job somewhere in a batch, with all that it started; the batch, or ``None`` if it had ended before."""
    command = [sys.executable, "-m", __spec__.name, str(job.conf)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        began = time.monotonic()
        while run.poll() is None and not (job.checkpoint / "offsets" / str(batch)).exists():
            time.sleep(0.005)
        # A batch takes about as long as the start took, divided by ten, however busy the machine is.
        time.sleep(draw.uniform(0, (time.monotonic() - began) / 8))
        if run.poll() is not None:
            return None
        os.killpg(run.pid, signal.SIGKILL)
    return batch


if __name__ == "__main__":
    run_job(load_config(sys.argv[1]), once=True)
