"""A first backlog in a folder, with the default conf: a million lines of 200 clusters in ten files, and one of 600 MB.

``python -m benchmarks.backlog [LINES [MEGABYTES]]``. Each is a job of its own, ``run --once`` on a new checkpoint. CPU
and memory are those of all its processes, workers included; the heap is Spark's default, 1 GB.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from deltalake import DeltaTable

from tests.events_for import EventsFor

CLUSTERS = 200
FILES = 10
CONF = """
source = {{type = "files", path = "{folder}/events"}}
tables = {{root = "{folder}/tables"}}
job = {{checkpoint = "{folder}/checkpoint"}}
"""


def changes() -> Iterator[bytes]:
    """Brokers join, then topics come, grow and go, cluster by cluster in turn."""
    draw = random.Random(1)
    clusters = [EventsFor(f"c{n:03}") for n in range(CLUSTERS)]
    for broker in range(6):
        yield from (cluster.joined(broker, "abc"[broker % 3]) for cluster in clusters)
    live: list[list[str]] = [[] for _ in clusters]
    count = 0
    while True:
        for cluster, topics in zip(clusters, live, strict=True):
            count += 1
            minute = count / 1000
            kind = draw.random()
            if len(topics) < 20 or kind < 0.4:
                topics.append(f"t{count}")
                yield cluster.created(topics[-1], 3, 2, minute)
            elif kind < 0.8:
                yield cluster.deleted(topics.pop(draw.randrange(len(topics))), minute)
            else:
                yield cluster.grown(draw.choice(topics), 3 + draw.randrange(3), minute)


def sights() -> Iterator[bytes]:
    """Each cluster is looked at again and again: 200 partitions a line, two of them moved since the last time."""
    draw = random.Random(2)
    clusters = [EventsFor(f"c{n:03}") for n in range(CLUSTERS)]
    for broker in range(6):
        yield from (cluster.joined(broker, "abc"[broker % 3]) for cluster in clusters)
    layouts = [{(f"t{p // 10}", p % 10): draw.sample(range(6), 2) for p in range(200)} for _ in clusters]
    count = 0
    while True:
        for cluster, layout in zip(clusters, layouts, strict=True):
            count += 1
            for at in draw.sample(list(layout), 2):
                layout[at] = draw.sample(range(6), 2)
            yield cluster.observed(layout, count / 1000)


def measure(folder: Path) -> None:
    """Run the job once over what is in the folder, and print what it took."""
    (folder / "conf.toml").write_text(CONF.format(folder=folder))
    size = sum(path.stat().st_size for path in (folder / "events").iterdir())
    began = time.monotonic()
    command = [
        str(Path(sys.executable).with_name("replica-planner")),
        "run",
        "--once",
        "--conf",
        str(folder / "conf.toml"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        peaks: dict[str, int] = {}
        cpu: dict[int, int] = {}
        watch = threading.Thread(target=_watch, args=(job, peaks, cpu), daemon=True)
        watch.start()
        assert job.stderr is not None
        said = job.stderr.read().splitlines()[-1:]
    seconds = time.monotonic() - began
    commits = [commit["timestamp"] / 1000 for commit in DeltaTable(folder / "tables" / "plans").history()]
    rows = {name: DeltaTable(folder / "tables" / name).to_pyarrow_table().num_rows for name in ("plans", "quarantine")}
    print(
        f"{size / 2**20:.0f} MB: exit {job.returncode}, {seconds:.0f} s, {sum(cpu.values())} s of CPU, peak of Python "
        f"{peaks.get('python', 0) >> 10} MB and of the JVM {peaks.get('java', 0) >> 10} MB "
        f"(load {os.getloadavg()[0]:.0f}); "
        f"{len(commits)} commits, {rows['plans']} plans, {rows['quarantine']} rows in quarantine; {' '.join(said)}",
        flush=True,
    )


def _watch(job: subprocess.Popen[str], peaks: dict[str, int], seconds: dict[int, int]) -> None:
    """Keep what the processes of the job were seen to take: the most memory in KB, of all Pythons together; and CPU."""
    while job.poll() is None:
        listed = subprocess.run(
            ["ps", "-eo", "pid,ppid,rss,times,comm"], capture_output=True, text=True, check=False
        ).stdout
        rows = {int(row[0]): row for line in listed.splitlines()[1:] if (row := line.split(None, 4))}
        mine = {job.pid}
        for pid, row in sorted(rows.items()):  # parents have smaller numbers, but for a wrap that a run will not see
            if int(row[1]) in mine:
                mine.add(pid)
        held = {"java": 0, "python": 0}
        for pid in mine & rows.keys():
            held["java" if "java" in rows[pid][4] else "python"] += int(rows[pid][2])
            seconds[pid] = int(rows[pid][3])
        for kind, kilobytes in held.items():
            peaks[kind] = max(peaks.get(kind, 0), kilobytes)
        time.sleep(0.5)


def main(lines: int = 1_000_000, megabytes: int = 600) -> None:
    with tempfile.TemporaryDirectory() as name:
        events = Path(name) / "events"
        events.mkdir()
        drawn = changes()
        for n in range(FILES):
            with (events / f"{n:02}.jsonl").open("wb") as file:
                file.writelines(line + b"\n" for line in islice(drawn, lines // FILES))
        print(f"{lines} lines in {FILES} files, ", end="", flush=True)
        measure(Path(name))
    with tempfile.TemporaryDirectory() as name:
        events = Path(name) / "events"
        events.mkdir()
        with (events / "large.jsonl").open("wb") as file:
            for line in sights():
                file.write(line + b"\n")
                if file.tell() >= megabytes << 20:
                    break
        print("one file, ", end="", flush=True)
        measure(Path(name))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
