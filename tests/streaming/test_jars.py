"""The JARs that are kept are those of the manifest, byte for byte, and no network is needed to know it."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.errors import JarError
from streaming.spark.jar_manifest import Jar, fault, listed_jars
from streaming.spark.jars import kept_jars
from streaming.spark.java import find_java
from streaming.spark.trust_store import trust_options

A_CERTIFICATE = Path(__file__).parents[1] / "cases" / "proxy-certificate.pem"
REPOSITORY_SETTINGS = """<ivysettings>
  <settings defaultResolver="folder"/>
  <resolvers><filesystem name="folder" checkmodified="true">
    <artifact pattern="{folder}/[artifact]-[revision].[ext]"/>
  </filesystem></resolvers>
</ivysettings>"""

Publish = Callable[[str, bytes], Jar]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to keep JARs, with a space in its path."""
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "jars"


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Put a JAR into a folder that the real Ivy resolves from, as it would from a company's mirror."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(REPOSITORY_SETTINGS.format(folder=folder), "utf-8")
    monkeypatch.setenv("REPLICA_PLANNER_IVY_SETTINGS", str(settings))

    def publish(name: str, content: bytes) -> Jar:
        (folder / f"{name}-1.0.jar").write_bytes(content)
        return Jar("org.example", name, "1.0", len(content), hashlib.sha256(content).hexdigest())

    return publish


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is fetched from now on cannot be had."""
    monkeypatch.setenv("REPLICA_PLANNER_IVY_SETTINGS", "/no/such/settings.xml")


def test_fetches_once_and_needs_no_network_after(
    cache: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jars = [publish("one", b"1" * 1000), publish("two", b"2" * 2000)]
    expected = [cache / "one-1.0.jar", cache / "two-1.0.jar"]
    assert kept_jars(jars, find_java()) == expected
    assert capfd.readouterr().err == f"Downloading 2 JARs for Spark (0.0 MB), once, into {cache}\n"
    assert sorted(cache.iterdir()) == expected, "nothing else is left behind"
    offline(monkeypatch)
    assert kept_jars(jars, find_java()) == expected
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("damage", [b"", b"1" * 999, b"x" * 1000], ids=["empty", "cut off", "altered"])
def test_a_damaged_jar_is_refused_and_fetched_again(cache: Path, publish: Publish, damage: bytes) -> None:
    jar = publish("one", b"1" * 1000)
    cache.mkdir(parents=True)
    kept = cache / "one-1.0.jar"
    kept.write_bytes(damage)
    assert fault(jar, kept) is not None
    assert kept_jars([jar], find_java()) == [kept]
    assert kept.read_bytes() == b"1" * 1000


def test_what_a_mirror_has_altered_is_not_kept(cache: Path, publish: Publish) -> None:
    jar = publish("one", b"1" * 1000)
    publish("one", b"x" * 1000)
    with pytest.raises(JarError, match=r"one-1\.0\.jar has 1000 bytes and sha256 \w+, not .*: it was not kept") as no:
        kept_jars([jar], find_java())
    assert no.value.jar == "one-1.0.jar"
    assert list(cache.iterdir()) == []


def test_says_which_jar_is_not_to_be_had(cache: Path, publish: Publish) -> None:
    publish("one", b"1")
    missing = Jar("org.example", "three", "1.0", 1, "0" * 64)
    with pytest.raises(JarError, match=r"three-1\.0\.jar could not be downloaded \(.*module not found") as no:
        kept_jars([missing], find_java())
    assert "\n" not in str(no.value)
    assert "UNRESOLVED DEPENDENCIES" in no.value.details
    assert list(cache.iterdir()) == []


def test_java_trusts_what_ssl_cert_file_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(A_CERTIFICATE))
    store, kind, password = (option.partition("=")[2] for option in trust_options(tmp_path))
    keytool = find_java().executable.resolve().with_name("keytool")
    command = [keytool, "-list", "-keystore", store, "-storetype", kind, "-storepass", password]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Your keystore contains 1 entry" in listed
    der = ssl.PEM_cert_to_DER_cert(A_CERTIFICATE.read_text("ascii"))
    assert hashlib.sha256(der).hexdigest() in listed.replace(":", "").lower()


def test_java_keeps_its_own_trust_without_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "no such bundle"))
    assert trust_options(tmp_path) == []
    monkeypatch.delenv("SSL_CERT_FILE")
    assert trust_options(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "file"))
    with pytest.raises(JarError, match=r"Spark's JARs cannot be kept in .*/file/jars .*: set REPLICA_PLANNER_CACHE"):
        kept_jars([publish("one", b"1")], find_java())


def test_a_cache_from_which_spark_cannot_load_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "a,b"))
    with pytest.raises(JarError, match="set REPLICA_PLANNER_CACHE to another directory"):
        kept_jars([], find_java())


def test_the_manifest_lists_what_pyspark_does_not_ship() -> None:
    import pyspark

    shipped = {jar.rpartition("-")[0] for jar in os.listdir(Path(pyspark.__file__).parent / "jars")}  # noqa: PTH208
    listed = listed_jars(["delta", "kafka"], "4.0.5")
    assert not shipped & {jar.name for jar in listed}
    assert len({jar.file_name for jar in listed}) == len(listed) == 6


@pytest.mark.parametrize(
    ("spark", "found"),
    [
        ("4.0.5", ["delta-spark_4.0_2.13-4.1.0.jar", "delta-storage-4.1.0.jar"]),
        ("4.2.0", ["delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar"]),
    ],
)
def test_each_line_of_spark_has_the_jars_of_its_own(spark: str, found: list[str]) -> None:
    assert [jar.file_name for jar in listed_jars(["delta"], spark)] == found


def test_a_spark_without_jars_is_refused_with_what_to_do() -> None:
    with pytest.raises(JarError, match=r"has no JARs of kafka for Spark 4\.2: install pyspark 4\.0"):
        listed_jars(["delta", "kafka"], "4.2.0")
