"""A job on a history drawn from a seed, killed at a random moment, perhaps twice, and compared with one left alone.

As a program, ``python -m tests.crash.random_kills CONF`` runs the job once over what is there.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from streaming.config import load_config
from streaming.job.query import run_job
from tests.histories import random_history
from tests.job_folder import JobFolder

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
    differences = [table for table in TABLES if struck.rows(table) != calm.rows(table)]
    if [place for place, _, _ in struck.received()] != sent:
        differences.append("lines without exactly one outcome")
    if struck.received() != calm.received():
        differences.append("outcomes")
    return Outcome(seed, len(sent), tuple(batch for batch in killed if batch is not None), tuple(differences))


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
