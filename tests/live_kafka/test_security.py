"""Over TLS and SASL everything works as without, and the password is seen nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from examples.local_kafka import LocalKafka, Security
from streaming.cli.main import cli
from streaming.config import load_config
from streaming.errors import JobError
from streaming.history.tables import History
from streaming.job.query import run_job
from streaming.kafka.connection import PASSWORD_VARIABLE
from tests.live_kafka.cluster import PASSWORD, RACKS, USER
from tests.live_kafka.watched import create

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

COMMAND = Path(sys.executable).parent / "replica-planner"
TOPIC = "events"
CONF = """\
[source]
type = "kafka"
bootstrap_servers = "{servers}"
topic = "{topic}"

[kafka]
{kafka}

[collect]
state = "{folder}/collect"

[tables]
root = "{folder}/tables"

[job]
checkpoint = "{folder}/checkpoint"
projection_interval = "1ms"
"""
SASL = """\
security_protocol = "SASL_SSL"
sasl_mechanism = "{mechanism}"
sasl_username = "{user}"
"""
TLS = """\
security_protocol = "SSL"
"""
FILES = """\
ssl_ca_file = "{ca}"
ssl_certificate_file = "{certificate}"
ssl_key_file = "{key}"
"""
# What Spark and Kafka's clients say of their settings and plans, they say at these levels.
TALKATIVE = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
logger.clients.name = org.apache.kafka
logger.clients.level = info
logger.source.name = org.apache.spark.sql.kafka010
logger.source.level = debug
logger.streaming.name = org.apache.spark.sql.execution.streaming
logger.streaming.level = debug
"""


class Secured:
    """Commands whose conf says how the cluster is talked to."""

    def __init__(self, folder: Path, cluster: LocalKafka, mechanism: str, more: str = "") -> None:
        security = cluster.security
        assert security
        settings = TLS if mechanism == "TLS" else SASL
        kafka = (settings + FILES).format(
            mechanism=mechanism,
            user=USER,
            ca=security.ca,
            certificate=security.client_certificate,
            key=security.client_key,
        )
        self.servers = cluster.bootstrap_servers("SSL" if mechanism == "TLS" else "SASL_SSL")
        self.folder = folder
        self.conf = folder / "conf.toml"
        self.conf.write_text(CONF.format(servers=self.servers, topic=TOPIC, kafka=kafka, folder=folder) + more)

    def command(self, *arguments: str) -> Result:
        done = CliRunner().invoke(cli, [*arguments, "--conf", str(self.conf)], catch_exceptions=False)
        (self.folder / "said.txt").open("a").write(done.output)
        return done

    def collect(self) -> Result:
        return self.command("collect", "--bootstrap-server", self.servers, "--cluster", "east", "--once")

    def submit(self) -> Result:
        asked = ("--type", "topic_created", "--cluster", "east", "--topic", "t", "--partitions", "3")
        return self.command("submit", *asked, "--replication-factor", "2")

    def files_with(self, *texts: str) -> list[Path]:
        """Files below the folder in which one of these stands."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        assert len(files) > 10
        return [path for path in files if any(text.encode() in path.read_bytes() for text in texts)]


@pytest.fixture
def topic(kafka: LocalKafka, admin: KafkaAdminClient) -> str:
    create(admin, TOPIC, [1, 2, 3])
    return TOPIC


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    yield PASSWORD


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "TLS"])
def test_collect_submit_and_the_source_get_through(
    kafka: LocalKafka, topic: str, password: str, spark: SparkSession, tmp_path: Path, mechanism: str
) -> None:
    secured = Secured(tmp_path, kafka, mechanism)
    assert secured.collect().exit_code == secured.submit().exit_code == 0
    config = load_config(secured.conf)
    run_job(config, once=True, spark=spark)
    state = History(config.tables.root).state("east")
    assert sorted(state.brokers) == list(RACKS)
    assert {"t", topic} <= set(state.topics)
    assert secured.files_with(password, private_key(kafka)) == []


def private_key(kafka: LocalKafka) -> str:
    """A line of the client's key."""
    assert isinstance(kafka.security, Security)
    return kafka.security.client_key.read_text().splitlines()[1]


def test_nothing_that_the_job_writes_or_says_shows_a_secret(kafka: LocalKafka, topic: str, tmp_path: Path) -> None:
    """Not even when all settings are logged: screen, event log, tables and checkpoint are searched."""
    logging, events = tmp_path / "log4j2.properties", tmp_path / "spark-events"
    logging.write_text(TALKATIVE)
    events.mkdir()
    spark = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
    }
    settings = "".join(f'"{name}" = "{value}"\n' for name, value in spark.items())
    secured = Secured(tmp_path, kafka, "SCRAM-SHA-512", f"[spark]\n{settings}")
    environment = os.environ | {PASSWORD_VARIABLE: PASSWORD}
    collect = ["collect", "--bootstrap-server", secured.servers, "--cluster", "east", "--once"]
    with (tmp_path / "screen.txt").open("wb") as screen:
        for arguments in (collect, ["run", "--once"]):
            command = [COMMAND, *arguments, "--conf", secured.conf]
            subprocess.run(command, env=environment, stdout=screen, stderr=screen, check=True, timeout=180)

    said = (tmp_path / "screen.txt").read_text()
    assert "sasl.jaas.config = [hidden]" in said  # Kafka's clients
    assert "(sasl.jaas.config,org.apache.kafka.common.security.scram.ScramLoginModule required" in said  # Spark
    assert "(ssl.keystore.key,*********(redacted))" in said
    assert any(events.rglob("*"))
    assert len(History(str(tmp_path / "tables")).state("east").brokers) == len(RACKS)
    assert secured.files_with(PASSWORD, private_key(kafka)) == []


def test_a_wrong_password_is_refused_in_one_sentence_without_it(
    kafka: LocalKafka, topic: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "not-the-password-0451"
    monkeypatch.setenv(PASSWORD_VARIABLE, wrong)
    secured = Secured(tmp_path, kafka, "SCRAM-SHA-256")
    refused = secured.submit()
    assert refused.exit_code == 2
    assert refused.output.count("\n") == 1
    assert "cannot be reached: Authentication failed" in refused.output
    assert wrong not in refused.output
    with pytest.raises(JobError, match="Authentication failed") as caught:
        run_job(load_config(secured.conf), once=True, spark=spark)
    assert wrong not in str(caught.value)
