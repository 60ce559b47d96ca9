"""Downloads JARs from a Maven repository, with progress.

The proxy variables and ``SSL_CERT_FILE`` apply, as they do to every client in Python.
``REPLICA_PLANNER_MAVEN_REPOSITORY`` names a mirror: a URL, with ``user:password@`` where it asks for a login, or a
folder as ``file:///...``.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, build_opener

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from streaming.errors import JarError
from streaming.spark.jar_manifest import REPOSITORY, Jar

MIRROR_VARIABLE: Final = "REPLICA_PLANNER_MAVEN_REPOSITORY"
ADVICE: Final = (
    "the first start of Spark needs the network; behind a proxy it needs HTTPS_PROXY, and SSL_CERT_FILE where the proxy"
    f" has a certificate of its own; for a mirror, name its URL in {MIRROR_VARIABLE}"
)
_TIMEOUT: Final = 60.0
"""Seconds without a byte after which a server is given up."""
_PIECE: Final = 1 << 18
_PAUSES: Final = (1.0, 4.0)
"""Seconds before a server that was busy, or a connection that broke, is tried again."""
_BUSY: Final = (408, 429, 500, 502, 503, 504)


def download(jars: Sequence[Jar], directory: Path, *, kept_in: Path) -> None:
    """Download these JARs into ``directory``, unchecked. Progress is shown on stderr; ``kept_in`` is named there.

    Raises:
        JarError: one of them cannot be had.
    """
    repository, headers = _repository()
    total = sum(jar.size for jar in jars)
    console = Console(stderr=True)
    console.print(
        f"Downloading {len(jars)} JARs for Spark ({total / 1e6:.1f} MB), once, into {kept_in}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar, before = progress.add_task("JARs", total=total), 0
        for jar in jars:
            _persist(
                Request(f"{repository}/{jar.path}", headers=headers), directory / jar.file_name, progress, bar, before
            )
            before += jar.size


def _repository() -> tuple[str, dict[str, str]]:
    """The URL that paths are appended to, without the login that may stand in it, and the headers that bring it.

    Raises:
        JarError: the mirror's URL is none.
    """
    named = os.environ.get(MIRROR_VARIABLE) or REPOSITORY
    parts = urlsplit(named)
    if parts.scheme not in ("https", "http", "file"):
        raise JarError(f"{MIRROR_VARIABLE} must be a URL with https://, http:// or file:// in front.")
    login, _, place = parts.netloc.rpartition("@")
    url = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    return url, {"Authorization": "Basic " + b64encode(unquote(login).encode()).decode()} if login else {}


def _persist(request: Request, target: Path, progress: Progress, bar: TaskID, before: int) -> None:
    """Download one file; what may pass is tried again.

    Raises:
        JarError: it cannot be had.
    """
    for pause in (*_PAUSES, None):
        try:
            with closing(build_opener().open(request, timeout=_TIMEOUT)) as answer, target.open("wb") as file:
                while piece := answer.read(_PIECE):
                    file.write(piece)
                    progress.update(bar, completed=before + file.tell())
        except (OSError, HTTPException) as error:
            if pause is None or (isinstance(error, HTTPError) and error.code not in _BUSY):
                raise JarError(
                    f"{target.name} could not be downloaded ({_reason(error)}): {ADVICE}.",
                    jar=target.name,
                    details=f"{request.full_url}: {error!r}",
                ) from error
            time.sleep(pause)
        else:
            return


def _reason(error: Exception) -> str:
    """What went wrong, without the addresses that were tried."""
    if isinstance(error, HTTPError):
        return f"the repository answered {error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) else error
    return str(cause) or type(cause).__name__
