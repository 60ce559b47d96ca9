"""The Java that Spark will start, found the way Spark finds it: ``JAVA_HOME`` first, then ``PATH``.

Run as ``python -m streaming.spark.java``, it prints what it found, or one sentence on what to install.
It needs nothing but the standard library, so that it can run before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.errors import JavaError

SUPPORTED_VERSIONS = ("17", "21")
ADVICE = (
    "install Java 17 or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
    " or point JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use: where it is, and its specification version (``"17"``)."""

    executable: Path
    version: str


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the Java that Spark would start in this environment.

    Raises:
        JavaError: there is none, it does not run, or Spark cannot use its version.
    """
    executable = _executable(environ)
    version = _specification_version(executable, environ)
    if version not in SUPPORTED_VERSIONS:
        raise JavaError(
            f"{executable} is Java {version}, and Spark needs 17 or 21: {ADVICE}.",
            executable=executable,
            version=version,
        )
    return Java(executable, version)


def _executable(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise JavaError(
                f"JAVA_HOME is {home}, but {executable} cannot be run: unset JAVA_HOME, or {ADVICE}.",
                executable=executable,
            )
        return executable
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise JavaError(f"Spark needs Java, and there is none in JAVA_HOME or on PATH: {ADVICE}.")
    return Path(found)


def _specification_version(executable: Path, environ: Mapping[str, str]) -> str:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{executable} does not run ({error}): {ADVICE}.", executable=executable) from error
    found = re.search(r"^\s*java\.specification\.version = (\S+)$", done.stderr + done.stdout, re.MULTILINE)
    if found is None:
        raise JavaError(
            f"{executable} does not say which version it is (exit code {done.returncode}): {ADVICE}.",
            executable=executable,
        )
    return found.group(1)


def main() -> int:
    """Print the Java found, or the sentence that says what is wrong; 0 or 2."""
    try:
        java = find_java()
    except JavaError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Java {java.version}: {java.executable}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
