"""How Kafka is reached: what conf and environment say, and that nothing shows the password."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidReplicationFactorError,
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from streaming.apply.kafka.cluster import _refusal
from streaming.config import Kafka, KafkaSource, parse_config
from streaming.errors import ClusterError, ConfigError
from streaming.kafka.connection import PASSWORD_VARIABLE, Connection, Secret, reason_of

PASSWORD = "only-we-know-this"
SASL = Kafka("SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_username="planner")
ENVIRONMENT = {PASSWORD_VARIABLE: PASSWORD}


@pytest.mark.parametrize("servers", ["a:1", "a:1,b:2", "a.example.org:9092, 10.0.0.1:9093", "[::1]:9092"])
def test_addresses_are_taken(servers: str) -> None:
    assert Connection.to(servers, Kafka()).bootstrap_servers == servers


@pytest.mark.parametrize("servers", ["", "a", "a:", "a:b", ":1", "a:1,", "a:1;b:2", "kafka://a:1", "a:1/x"])
def test_what_is_no_address_is_refused(servers: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a broker: write host:port"):
        Connection.to(servers, Kafka())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('security_protocol = "TLS"', "'TLS'"),
        ('security_protocol = "SASL_SSL"', "SASL_SSL needs sasl_mechanism and sasl_username"),
        ('sasl_username = "u"', "PLAINTEXT takes no sasl_ settings"),
        ('ssl_ca_file = "ca.pem"', "PLAINTEXT takes no ssl_ settings"),
        ('security_protocol = "SSL"\nssl_key_file = "k"', "ssl_certificate_file and ssl_key_file go together"),
        ('sasl_password = "p"', "unknown field `sasl_password`"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"[kafka]\n{text}", "x.toml")
    assert str(caught.value).startswith("x.toml: kafka")
    assert reason in str(caught.value)


def test_the_source_takes_its_settings_from_the_section_kafka_unless_it_has_its_own() -> None:
    general = '[kafka]\nsecurity_protocol = "SSL"\n[source]\ntype = "kafka"\nbootstrap_servers = "a:1"\ntopic = "t"\n'
    shared, own = (parse_config(general + more, "x.toml").source for more in ("", "[source.kafka]\n"))
    assert isinstance(shared, KafkaSource)
    assert isinstance(own, KafkaSource)
    assert (shared.kafka, own.kafka) == (Kafka("SSL"), Kafka())


def test_the_password_is_in_a_file_or_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("in the file\n")
    named = Kafka("SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="planner", sasl_password_file=str(file))
    assert Connection.to("a:1", SASL, ENVIRONMENT).password == PASSWORD
    assert Connection.to("a:1", named, ENVIRONMENT).password == "in the file"
    assert Connection.to("a:1", Kafka(), ENVIRONMENT).password is None


def test_no_password_and_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no password for planner: .* or set {PASSWORD_VARIABLE}"):
        Connection.to("a:1", SASL, {})
    missing = str(tmp_path / "no.pem")
    for settings in (Kafka("SSL", ssl_ca_file=missing), Kafka("SSL", ssl_certificate_file=missing, ssl_key_file="k")):
        with pytest.raises(ConfigError, match=f"kafka.ssl_.*_file: {missing} cannot be read: No such file"):
            Connection.to("a:1", settings)


def test_nothing_shows_the_password(caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection.to("localhost:1", SASL, ENVIRONMENT)
    with caplog.at_level(logging.DEBUG, logger="kafka"), pytest.raises(ClusterError) as caught:
        connection.admin(timeout=0.3)
    assert "Starting KafkaAdminClient with configuration" in caplog.text
    for shown in (repr(connection), f"{connection}", str(caught.value), repr(caught.value), caplog.text):
        assert PASSWORD not in shown
    assert repr({"password": Secret("x")}) == "{'password': '[hidden]'}"
    assert pickle.loads(pickle.dumps(Secret("x"))) == "x"


def test_an_address_where_nobody_listens_is_said_with_the_reason() -> None:
    with pytest.raises(ClusterError, match=r"localhost:1 cannot be reached: .*ECONNREFUSED; check the address"):
        Connection.to("localhost:1", Kafka()).admin(timeout=0.3)


def test_spark_is_told_the_same_in_its_own_words(tmp_path: Path) -> None:
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text("CERTIFICATE")
    key.write_text("KEY")
    assert Connection.to("a:1,b:2", Kafka()).spark_options() == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.security.protocol": "PLAINTEXT",
    }
    tls = Kafka("SSL", ssl_ca_file=str(certificate), ssl_certificate_file=str(certificate), ssl_key_file=str(key))
    assert Connection.to("a:1", tls).spark_options() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(certificate),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CERTIFICATE",
        "kafka.ssl.keystore.key": "KEY",
    }
    awkward = {PASSWORD_VARIABLE: 'only "we" know\\this'}
    assert Connection.to("a:1", SASL, awkward).spark_options() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="planner" password="only \\"we\\" know\\\\this";',
    }


def test_databricks_names_the_login_modules_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runtimes have Kafka's client under another package."""
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    login = Connection.to("a:1", SASL, ENVIRONMENT).spark_options()["kafka.sasl.jaas.config"]
    assert login.startswith("kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required ")


DUMP = "Request 'AlterPartitionReassignmentsRequest(version=1, t=1)' failed with response 'Response(error=31)'."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ClusterAuthorizationFailedError(DUMP), "the principal lacks a right on the cluster: collect needs Describe"),
        (TopicAuthorizationFailedError(DUMP), "the principal lacks a right on a topic: collect needs Describe on all"),
        (TopicAuthorizationFailedError("topic t"), "topic t; the principal lacks a right on a topic"),
        (TopicAuthorizationFailedError(), "the principal lacks a right on a topic"),
        (SaslAuthenticationFailedError("X: Authentication failed."), "Authentication failed; see sasl_username"),
        (UnsupportedSaslMechanismError(), "see sasl_mechanism in section [kafka]"),
        (InvalidReplicationFactorError(DUMP), InvalidReplicationFactorError.description.rstrip(".")),
        (KafkaError("Error: nobody is there"), "nobody is there"),
        (OSError(), "OSError"),
    ],
)
def test_what_is_refused_names_the_right_or_setting_and_no_dump(error: Exception, said: str) -> None:
    assert reason_of(error).startswith(said)
    assert "Request" not in reason_of(error)


def test_a_refused_config_names_the_right() -> None:
    """The client makes a text of that error before anybody sees it."""
    found = _refusal(str(TopicAuthorizationFailedError("Topic authorization failed.")))
    assert isinstance(found, TopicAuthorizationFailedError)
    assert reason_of(found).startswith("Topic authorization failed; the principal lacks a right on a topic")
    assert reason_of(_refusal("Unknown config")) == "Unknown config"
