"""The Spark session of the job: Java and JARs checked first, Delta switched on, the screen kept clean.

Where something else started Spark (Databricks, Spark Connect, ``spark-submit``), that session is used as it is.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from streaming.spark.jar_manifest import listed_jars
from streaming.spark.jars import kept_jars
from streaming.spark.java import find_java

DEFAULT_MASTER = "local[2]"
STDERR = 2
SILENCE_SECONDS = 0.3
REAPED_SECONDS = 0.5
LOGGING = Path(__file__).with_name("log4j2.properties")
_hushed = threading.Event()
STARTED_ELSEWHERE = ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")

ALWAYS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # From Spark 4.1 on Delta's parser forgets the parameters of a query (delta-io/delta#7640), unless they are bound by
    # the analyser, as they were before.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark's own pattern, and what it lacks: the login and the private key of a Kafka source.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas[.]config|keystore[.]key",
    # The heap would grow with every batch, even with the UI off.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedQueries": "5",
    "spark.sql.streaming.ui.retainedProgressUpdates": "20",
}

# For a laptop and small tables: with Spark's defaults an append takes four times as long.
LOCAL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# A local job lives by how soon it is warm: the first two save a quarter of the first minute. With the first one Java
# keeps 48 MB of compiled code, which a job fills after some dozens of batches; from then on it throws code away and
# compiles it again. The third is what Java keeps otherwise.
LOCAL_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# A laptop without a network, or one that changes it, still talks to itself.
LOCAL_ADDRESS = ("SPARK_LOCAL_IP", "127.0.0.1")


def spark_session(
    app_name: str,
    *,
    kafka: bool = False,
    settings: Mapping[str, str] | None = None,
    log: str = "text",
    inherited: int | None = None,
) -> SparkSession:
    """Return the active session, or start one with Delta, and with Kafka if asked for.

    ``log`` is the form of what Spark says, ``text`` or ``json``. ``settings`` are Spark's own and win over the defaults
    here; the master is ``local[2]`` unless they say another. ``inherited`` is a descriptor that stays open for as long
    as a JVM that is started here lives.

    Raises:
        JavaError: Spark cannot be started with the Java that is there.
        JarError: a JAR that Spark needs is neither kept nor to be had.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    wanted = settings or {}
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it repeats on the screen what is raised anyway
    if any(variable in os.environ for variable in STARTED_ELSEWHERE):
        builder = SparkSession.builder.appName(app_name)
        for key, value in wanted.items():
            builder.config(key, value)
        return builder.getOrCreate()
    find_java()
    groups = ("delta", "kafka") if kafka else ("delta",)
    jars = kept_jars(listed_jars(groups))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return _start(app_name, _settings(jars, wanted, log), inherited)


def end_session(session: SparkSession) -> None:
    """Stop a session, unless it is the notebook's or the platform's, which others go on using."""
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        session.stop()


def jvm_is_lost() -> bool:
    """Whether this process had started a JVM, and it has ended by itself."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return False
    try:
        gateway.proc.wait(REAPED_SECONDS)  # what it was asked fails a moment before it is gone
    except subprocess.TimeoutExpired:
        return False
    return True


def beside(session: SparkSession) -> SparkSession:
    """A session with settings of its own for what is written beside the batches.

    Spark Connect has none to give; there it is the same one, whose settings no append of a batch depends on.
    """
    return session if is_remote() else session.newSession()


def _settings(jars: list[Path], wanted: Mapping[str, str], log: str) -> dict[str, str]:
    """Return every setting of a new session: the defaults here, then what is wanted."""
    settings = {"spark.master": DEFAULT_MASTER, **ALWAYS, **wanted}
    scratch = _scratch_directory()
    java_options = [
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        f"-Dreplica.planner.log={log}",
        f"-Dderby.system.home={scratch}",
    ]
    if settings["spark.master"].startswith("local"):
        settings = LOCAL | settings
        java_options.append(LOCAL_JAVA_OPTIONS)
        os.environ.setdefault(*LOCAL_ADDRESS)
    settings.setdefault("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    settings["spark.jars"] = _joined(",", *map(str, jars), wanted.get("spark.jars"))
    # Of two Java options that disagree, the last one wins.
    settings["spark.driver.extraJavaOptions"] = _joined(" ", *java_options, wanted.get("spark.driver.extraJavaOptions"))
    return settings


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)


def _scratch_directory() -> Path:
    """What Spark would leave in the working directory goes here, and away with the process."""
    scratch = Path(tempfile.mkdtemp(prefix="replica-planner-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _calm_log() -> logging.Handler:
    """What Python prints where nobody has set up a log, without the stacks that py4j writes when its JVM is gone."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: "py4j" not in Path(record.pathname).parts)
    return handler


def _start(app_name: str, settings: Mapping[str, str], inherited: int | None) -> SparkSession:
    # A Connect client may have none of these: they belong to a JVM in this process.
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(_calm_log())
    conf = SparkConf().setAppName(app_name).setAll(list(settings.items()))
    if SparkContext._gateway is None:  # a JVM outlives the session that was stopped in it
        descriptors = () if inherited is None else (inherited,)
        options = {"stderr": subprocess.PIPE, "bufsize": 0, "pass_fds": descriptors}
        gateway = launch_gateway(conf, popen_kwargs=options)  # type: ignore[no-untyped-call]
        threading.Thread(target=_pass_on, args=(gateway.proc.stderr,), name="spark-stderr", daemon=True).start()
        SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _pass_on(lines: Iterable[bytes]) -> None:
    """Pass on what the JVM says, without its warning about a module that Spark itself asks for.

    Unbuffered on both sides: a daemon thread that holds a buffer's lock would abort Python at its end.
    """
    for line in lines:
        if b"WARNING: Using incubator modules: jdk.incubator.vector" not in line and not _hushed.is_set():
            os.write(STDERR, line)


@contextmanager
def hushed() -> Iterator[None]:
    """Keep what the JVM says off the screen for as long as this lasts, and until it has stopped talking."""
    _hushed.set()
    try:
        yield
    finally:
        time.sleep(SILENCE_SECONDS)
        _hushed.clear()
