"""The manifest ``jars.toml``: which JARs Spark needs, and what each must be to the byte."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from streaming.errors import JarError

MANIFEST = Path(__file__).with_name("jars.toml")
REPOSITORY: Final = "https://repo1.maven.org/maven2"
"""Maven Central."""
_LINE: Final = "4.0"
"""The line of Spark that plain groups are for."""


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

    @property
    def path(self) -> str:
        """Where a Maven repository has the file."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.revision}/{self.file_name}"


def listed_jars(groups: Iterable[str], spark: str | None = None) -> tuple[Jar, ...]:
    """Return the JARs of these groups of the manifest, in its order.

    A group that is named with a line of Spark, such as ``delta-4.2``, stands for the plain one on that line. ``spark``
    is the version to list for, by default the installed one.

    Raises:
        JarError: a group has no JARs for this Spark.
    """
    manifest = tomllib.loads(MANIFEST.read_text("utf-8"))
    line = ".".join((spark or version("pyspark")).split(".")[:2])
    found = []
    for group in groups:
        jars = manifest.get(f"{group}-{line}") or (manifest.get(group) if line == _LINE else None)
        if jars is None:
            raise JarError(
                f"{MANIFEST.name} has no JARs of {group} for Spark {line}: install pyspark {_LINE}, or list them there."
            )
        found += [Jar(**jar) for jar in jars]
    return tuple(found)


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
