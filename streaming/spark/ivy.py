"""Fetches JARs with the Ivy that pyspark ships, so that nothing else has to be installed.

Each run has an Ivy cache of its own: a cache that an interrupted run left half filled makes Ivy fail.
Java's own settings apply (``JAVA_TOOL_OPTIONS``), and so do ``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY`` and
``SSL_CERT_FILE``.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies
from xml.sax.saxutils import quoteattr

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from streaming.errors import JarError
from streaming.spark.jar_manifest import Jar
from streaming.spark.java import Java
from streaming.spark.trust_store import trust_options

SETTINGS_VARIABLE = "REPLICA_PLANNER_IVY_SETTINGS"
ADVICE = (
    "the first start of Spark needs the network; behind a proxy it needs HTTPS_PROXY, and SSL_CERT_FILE where the proxy"
    f" has a certificate of its own; for a mirror, name an Ivy settings file in {SETTINGS_VARIABLE}"
)
STALLED_AFTER = 120.0  # seconds without a new byte
POLL_INTERVAL = 0.1  # seconds


def retrieve(jars: Sequence[Jar], work: Path, java: Java, *, settings: str | None, kept_in: Path) -> Path:
    """Fetch exactly these JARs, and none that they depend on, below ``work``; return the directory they are in.

    ``settings`` is the path of an Ivy settings file (default: ``$REPLICA_PLANNER_IVY_SETTINGS``, then Ivy's own
    settings). Progress is shown on stderr; ``kept_in`` is named there.

    Raises:
        JarError: Ivy did not bring every one of them.
    """
    settings = settings or os.environ.get(SETTINGS_VARIABLE)
    if settings and not Path(settings).is_file():
        raise JarError(f"The Ivy settings file {settings} does not exist.", jar=jars[0].file_name, path=Path(settings))
    (work / "ivy.xml").write_text(_ivy_module(jars), "utf-8")
    log = work / "ivy.log"
    with log.open("wb") as output:
        job = subprocess.Popen(
            _command(java, work, settings), cwd=work, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _watch(job, jars, work, kept_in)
        finally:
            job.kill()
            job.wait()
    missing = [jar.file_name for jar in jars if not (work / "jars" / jar.file_name).is_file()]
    if missing:
        details = log.read_text("utf-8", errors="replace")
        raise JarError(
            f"{missing[0]} could not be downloaded ({_reason(details)}): {ADVICE}.", jar=missing[0], details=details
        )
    return work / "jars"


def _reason(log: str) -> str:
    """Return the first of the problems that Ivy sums up at its end, errors first, without the address it tried."""
    before, _, problems = log.partition(":: problems summary ::")
    _, _, errors = problems.partition(":::: ERRORS")
    lines = [line.strip() for line in (errors + problems or before).splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(":")), "nothing arrived")
    return re.sub(r" (at )?url[ =]\S+", "", first).rstrip(".")


def _command(java: Java, work: Path, settings: str | None) -> list[str]:
    """The pattern is relative to the working directory, because Ivy would read brackets in its path as well."""
    return [
        str(java.executable),
        f"-Divy.default.ivy.user.dir={work}",
        *_proxy_options(),
        *trust_options(work),
        "-cp",
        str(_shipped_ivy()),
        "org.apache.ivy.Main",
        "-verbose",  # without it, Ivy keeps to itself why a server was not reached
        *(["-settings", str(Path(settings).absolute())] if settings else []),
        *("-cache", str(work / "cache"), "-ivy", "ivy.xml", "-retrieve", "jars/[artifact]-[revision].[ext]"),
    ]


def _ivy_module(jars: Sequence[Jar]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.revision)}"
        ' transitive="false" conf="default->default"/>'
        for jar in jars
    )
    info = '<info organisation="replica-planner" module="jars"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{dependencies}</dependencies></ivy-module>'


def _shipped_ivy() -> Path:
    spec = find_spec("pyspark")
    directories = [Path(place) / "jars" for place in (spec and spec.submodule_search_locations) or ()]
    found = [jar for directory in directories for jar in sorted(directory.glob("ivy-*.jar"))]
    if not found:
        raise JarError(f"pyspark ships Ivy, but there is no ivy-*.jar in {directories}: install pyspark again.")
    return found[0]


def _proxy_options() -> list[str]:
    """Java does not read the proxy variables that every other tool reads."""
    proxies = getproxies()
    options = [
        option
        for scheme in ("http", "https")
        if (proxy := urlsplit(proxies.get(scheme, ""))).hostname
        for option in (f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}")
    ]
    direct = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    if options and direct:
        options.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{h}" if h.startswith(".") else h for h in direct))
    return options


def _watch(job: subprocess.Popen[bytes], jars: Sequence[Jar], work: Path, kept_in: Path) -> None:
    """Show progress by bytes until Ivy ends, or until nothing has arrived for ``STALLED_AFTER`` seconds."""
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
        bar = progress.add_task("JARs", total=total)
        arrived, since = 0, time.monotonic()
        while job.poll() is None and time.monotonic() - since < STALLED_AFTER:
            time.sleep(POLL_INTERVAL)
            seen = _bytes_below(work / "cache")
            if seen != arrived:
                arrived, since = seen, time.monotonic()
            progress.update(bar, completed=min(seen, total))


def _bytes_below(directory: Path) -> int:
    """Ivy moves files while it works, so one that was listed may be gone."""
    total = 0
    for file in directory.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total
