"""Kafka's released code in a JVM beside this process, for benchmarks that take turns with it.

The artifacts come from Maven (``mvn`` and a JDK are needed), once.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.local_kafka.maven import kept_jars

HERE = Path(__file__).parent


class KafkaReference:
    """The JVM; use it in a ``with`` statement."""

    def __init__(self, heap: str = "3g") -> None:
        jars = kept_jars(HERE / "jvm" / "pom.xml")
        run = ["java", f"-Xmx{heap}", "-cp", f"{jars}/*", str(HERE / "jvm" / "KafkaReference.java")]
        self._process = subprocess.Popen(
            run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, line: str) -> tuple[float, int]:
        """Run one command; seconds spent in Kafka's code, and the checksum of its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        nanoseconds, checksum = self._process.stdout.readline().split()
        return int(nanoseconds) / 1e9, int(checksum)

    def __enter__(self) -> KafkaReference:
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)


@dataclass(frozen=True, slots=True)
class Compared:
    """Rounds of both, in seconds."""

    kafka: tuple[float, ...]
    ours: tuple[float, ...]

    def row(self, name: str) -> str:
        """A line of a Markdown table: best and median of both, and their ratios."""
        best = min(self.kafka), min(self.ours)
        median = statistics.median(self.kafka), statistics.median(self.ours)
        return (
            f"| {name} | {best[0] * 1e3:.1f} / {median[0] * 1e3:.1f} | {best[1] * 1e3:.1f} / {median[1] * 1e3:.1f} "
            f"| {best[0] / best[1]:.1f} | {median[0] / median[1]:.1f} |"
        )


_WARM_UP = 5
"""Rounds until the JVM has compiled what it will."""

HEADER = """\
| case | Kafka best / median, ms | ours best / median, ms | ratio of best | ratio of median |
| --- | --- | --- | --- | --- |"""


def take_turns(
    kafka: KafkaReference, command: str, ours: Callable[[], object], checksum: Callable[[object], int], rounds: int
) -> Compared:
    """Rounds in turn, after some of each that do not count; every answer must have Kafka's checksum."""
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(_WARM_UP + rounds):
        theirs, wanted = kafka.ask(command)
        begin = time.perf_counter()
        answer = ours()
        mine = time.perf_counter() - begin
        if checksum(answer) != wanted:
            raise SystemExit(f"{command}: the answers differ")
        spent[0].append(theirs)
        spent[1].append(mine)
    return Compared(tuple(spent[0][_WARM_UP:]), tuple(spent[1][_WARM_UP:]))
