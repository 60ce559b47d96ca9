"""100,000 fuzzed lines through the real job: each accounted for, good events applied, memory bounded.

``python -m benchmarks.fuzz [LINES]``; one line in 10,000 has 10 MB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from streaming.spark.session import spark_session
from tests.fuzzed import fuzzed_lines, good_lines
from tests.job_folder import JobFolder

_GOOD = 1_000
_LINES_A_FILE = 10_000


def main(count: int = 100_000) -> None:
    """Raises SystemExit if a line has no outcome, or two, or a good event was not applied."""
    spark = spark_session("fuzz", settings={"spark.driver.memory": "4g"})
    good = good_lines(_GOOD)
    per_file = _GOOD * _LINES_A_FILE // count
    with tempfile.TemporaryDirectory() as folder:
        job = JobFolder(Path(folder), policy="default_partitions = 1", source="max_files_per_trigger = 1")
        sent = 0
        for number in range(count // _LINES_A_FILE):
            bad = list(fuzzed_lines(number, _LINES_A_FILE, long=1))
            for place, line in enumerate(good[number * per_file : (number + 1) * per_file]):
                bad.insert(place * (len(bad) // per_file), line)
            sent += len(bad)
            job.send(*bad)
            if number == 0:
                job.run(spark)
                first = _resident()
        began = time.monotonic()
        job.run(spark)
        seconds, after = time.monotonic() - began, _resident()
        received = job.received()
        applied = len(job.history.state("good").topics)
        spark.stop()
    places = {place for place, _, _ in received}
    print(f"{sent:,} lines sent, {len(received):,} outcomes at {len(places):,} places, in {seconds:.0f} s")
    print(f"{applied} of {_GOOD - 2} good topics created")
    print(f"driver's Python: {first:.0f} MB after the first {_LINES_A_FILE:,} lines, {after:.0f} MB after all")
    if not len(places) == len(received) == sent or applied != _GOOD - 2:
        raise SystemExit(1)


def _resident() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
