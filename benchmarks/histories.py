"""Random histories on the pure planner beside a model of it: none stops a cluster or breaks what must hold.

``python -m benchmarks.histories [HISTORIES [EVENTS [FOLDER]]]``; 10,000 histories of 200 events unless told. Two
processes play them; FOLDER, ``build/histories`` unless told, remembers how far they are, so that an interrupted run
goes on, and keeps the shortest form found of histories that broke something.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.model.history import play, shrunk, told

_AT_ONCE = 4
_PROCESSES = 2


def _play(events: int, seeds: range) -> tuple[int, float, list[tuple[int, str, str]]]:
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    played = [play(seed, events) for seed in seeds]
    broken = [(one.seed, one.broken, told(shrunk(one.steps))) for one in played if one.broken]
    return sum(one.events for one in played), time.process_time() - began, broken


def main(count: int = 10_000, events: int = 200, folder: str = "build/histories") -> None:
    """Raises SystemExit if a history broke something."""
    kept = Path(folder)
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"progress-{events}.json"
    done = {"histories": 0, "events": 0, "seconds": 0.0, "broken": 0}
    if file.exists():
        done |= json.loads(file.read_text(encoding="utf-8"))
    first = int(done["histories"])
    shares = [range(seed, min(seed + _AT_ONCE, count)) for seed in range(first, count, _AT_ONCE)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        for seeds, (played, seconds, broken) in zip(shares, pool.map(partial(_play, events), shares), strict=True):
            for seed, sentence, steps in broken:
                print(f"seed {seed}: {sentence[:300]}", flush=True)
                (kept / f"broken-{seed}.json").write_text(steps, encoding="utf-8")
            done["histories"] = seeds.stop
            done["events"] += played
            done["seconds"] += seconds
            done["broken"] += len(broken)
            file.write_text(json.dumps(done), encoding="utf-8")
    print(
        f"{done['histories']:,} histories of {done['events']:,} events: {done['broken']:,} broke something; "
        f"{done['seconds'] / 60:.1f} minutes of CPU, {1000 * done['seconds'] / max(1, done['events']):.2f} ms an event"
    )
    if done["broken"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
