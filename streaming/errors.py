"""Errors of the job and the command line: one base, each carrying what it is about.

``str(error)`` is one sentence for a person: the place, the value, the reason, and what to do.
"""

from __future__ import annotations

from pathlib import Path


class StreamingError(Exception):
    """Base of every error that the job or the command line reports to a person."""


class JavaError(StreamingError):
    """The Java that Spark would start is missing, does not run, or has a version that Spark cannot use."""

    def __init__(self, message: str, *, executable: Path | None = None, version: str | None = None) -> None:
        super().__init__(message)
        self.executable = executable
        self.version = version


class JarError(StreamingError):
    """A JAR that Spark needs could not be fetched, or is not the one that the manifest describes."""

    def __init__(self, message: str, *, jar: str, path: Path | None = None, details: str = "") -> None:
        super().__init__(message)
        self.jar = jar
        self.path = path
        self.details = details
