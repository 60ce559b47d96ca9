"""The job killed with SIGKILL at random moments, 50 histories in one run, under load.

``python -m benchmarks.faults [KILLS [FIRST_SEED]]``. Beside the job one process of pure arithmetic takes a core.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from streaming.spark.session import spark_session
from tests.crash.random_kills import strike


def main(count: int = 50, first: int = 100) -> None:
    """Raises SystemExit if any history ended otherwise than undisturbed."""
    spark = spark_session("faults")
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    wrong = kills = lines = 0
    try:
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as folder:
                outcome = strike(seed, spark, Path(folder))
            wrong += bool(outcome.differences)
            kills += len(outcome.killed_in)
            lines += outcome.lines
            ended = f"differs in {', '.join(outcome.differences)}" if outcome.differences else "as undisturbed"
            print(f"seed {seed}: {outcome.lines} lines, killed in batch {outcome.killed_in}: {ended}", flush=True)
    finally:
        burner.kill()
        spark.stop()
    print(
        f"{count} histories with {lines} lines, {kills} kills: {count - wrong} ended as undisturbed, {wrong} otherwise"
    )
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
