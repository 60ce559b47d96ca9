"""The manifest ``jars.toml``: which JARs Spark needs, and what each must be to the byte."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = Path(__file__).with_name("jars.toml")


@dataclass(frozen=True, slots=True)
class Jar:
    """One JAR; ``size`` is in bytes."""

    organisation: str
    name: str
    revision: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of the file, as Maven repositories have it."""
        return f"{self.name}-{self.revision}.jar"


def listed_jars(groups: Iterable[str]) -> tuple[Jar, ...]:
    """Return the JARs of these groups of the manifest, in its order."""
    groups_of_jars = tomllib.loads(MANIFEST.read_text("utf-8"))
    return tuple(Jar(**jar) for group in groups for jar in groups_of_jars[group])


def fault(jar: Jar, path: Path) -> str | None:
    """Say how the file at ``path`` differs from ``jar``; ``None`` if it is that JAR."""
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if (size, sha256) != (jar.size, jar.sha256):
        return f"has {size} bytes and sha256 {sha256}, not {jar.size} bytes and sha256 {jar.sha256}"
    return None
