"""The JARs that Spark needs: resolved once, kept, and checked on every start against the manifest.

They are kept in ``$REPLICA_PLANNER_CACHE/jars``, or in the user's cache directory. A JAR that is missing
or damaged is fetched again; with all of them in place no network is needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from streaming.errors import JarError
from streaming.spark.download import download
from streaming.spark.jar_manifest import Jar, fault

CACHE_VARIABLE = "REPLICA_PLANNER_CACHE"
UNUSABLE_IN_PATHS = "[]{}*?,"


def cache_directory() -> Path:
    """Return the directory that keeps the JARs; it need not exist yet.

    Raises:
        JarError: Spark could not load JARs from there.
    """
    chosen = os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("replica-planner", appauthor=False)
    directory = Path(chosen).expanduser().absolute() / "jars"
    if set(UNUSABLE_IN_PATHS) & set(str(directory)):
        raise JarError(
            f"Spark cannot load JARs from {directory}, because it reads {' '.join(UNUSABLE_IN_PATHS)} in a path as"
            f" patterns: set {CACHE_VARIABLE} to another directory.",
            path=directory,
        )
    return directory


def kept_jars(jars: Iterable[Jar]) -> list[Path]:
    """Return the paths of these JARs, each exactly as in the manifest; fetch those that are not yet kept.

    Raises:
        JarError: a JAR cannot be fetched or kept, or what was fetched is not what the manifest says.
    """
    jars = tuple(jars)
    directory = cache_directory()
    wanted = [jar for jar in jars if fault(jar, directory / jar.file_name) is not None]
    if wanted:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _fetch(wanted, directory)
        except OSError as error:
            raise JarError(
                f"Spark's JARs cannot be kept in {directory} ({error.strerror}):"
                f" set {CACHE_VARIABLE} to a directory that you can write to.",
                jar=wanted[0].file_name,
                path=directory,
                details=str(error),
            ) from error
    return [directory / jar.file_name for jar in jars]


def _fetch(jars: list[Jar], directory: Path) -> None:
    """Fetch into a directory of our own, check, and move into place: two jobs at once do not disturb each other."""
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=directory) as temporary:
        fetched = Path(temporary)
        download(jars, fetched, kept_in=directory)
        for jar in jars:
            wrong = fault(jar, fetched / jar.file_name)
            if wrong is not None:
                raise JarError(
                    f"The downloaded {jar.file_name} {wrong}: it was not kept; look at the proxy or mirror in between.",
                    jar=jar.file_name,
                    details=wrong,
                )
        for jar in jars:
            (fetched / jar.file_name).replace(directory / jar.file_name)
