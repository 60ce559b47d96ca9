"""JARs from Maven: fetched once, kept in the user's cache directory beside those of Spark."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from streaming.spark.jars import cache_directory


def kept_jars(pom: Path) -> Path:
    """The directory with the dependencies of ``pom``; another ``pom`` has another one.

    Raises:
        RuntimeError: there is no Maven, or it fails; with what it printed.
    """
    content = pom.read_bytes()
    kept = cache_directory().with_name(f"maven-{sha256(content).hexdigest()[:12]}")
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=kept.parent) as temporary:
            fetched = Path(temporary) / "jars"
            _fetch(pom, fetched)
            try:
                fetched.replace(kept)  # whole or not at all
            except OSError:
                if not kept.exists():  # else another process was faster
                    raise
    return kept


def _fetch(pom: Path, into: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(
            "Kafka is fetched with Maven, and there is no mvn on PATH: install it (apt-get install maven)"
        )
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={into}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mvn could not fetch Kafka:\n{done.stdout}{done.stderr}")
