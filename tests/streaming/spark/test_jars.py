"""The JARs that are kept are those of the manifest, byte for byte, and no network is needed to know it."""

from __future__ import annotations

import hashlib
import os
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from streaming.errors import JarError
from streaming.spark import download
from streaming.spark.jar_manifest import Jar, fault, listed_jars
from streaming.spark.jars import kept_jars

CERTIFICATE = Path(__file__).parents[2] / "cases" / "localhost.pem"

Publish = Callable[[str, bytes], Jar]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to keep JARs, with a space in its path."""
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "jars"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository in a folder."""
    folder = tmp_path / "a mirror"
    folder.mkdir()
    monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", folder.as_uri())
    return folder


@pytest.fixture
def publish(mirror: Path) -> Publish:
    def publish(name: str, content: bytes) -> Jar:
        jar = Jar("org.example", name, "1.0", len(content), hashlib.sha256(content).hexdigest())
        (mirror / jar.path).parent.mkdir(parents=True, exist_ok=True)
        (mirror / jar.path).write_bytes(content)
        return jar

    return publish


@contextmanager
def served(folder: Path, *, login: str = "", busy: int = 0, tls: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The folder over HTTP: for this login alone, and busy for so many requests; its URL, and the paths asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def do_GET(self) -> None:
            asked.append(self.path)
            given = b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            if len(asked) <= busy:
                self.send_error(503)
            elif given != login:
                self.send_error(401)
            else:
                super().do_GET()

        def log_message(self, *args: object) -> None:
            """Says nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_fetches_once_and_needs_no_network_after(
    cache: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jars = [publish("one", b"1" * 1000), publish("two", b"2" * 2000)]
    expected = [cache / "one-1.0.jar", cache / "two-1.0.jar"]
    assert kept_jars(jars) == expected
    assert capfd.readouterr().err == f"Downloading 2 JARs for Spark (0.0 MB), once, into {cache}\n"
    assert sorted(cache.iterdir()) == expected, "nothing else is left behind"
    monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", "https://127.0.0.1:1")
    assert kept_jars(jars) == expected
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("damage", [b"", b"1" * 999, b"x" * 1000], ids=["empty", "cut off", "altered"])
def test_a_damaged_jar_is_refused_and_fetched_again(cache: Path, publish: Publish, damage: bytes) -> None:
    jar = publish("one", b"1" * 1000)
    cache.mkdir(parents=True)
    kept = cache / "one-1.0.jar"
    kept.write_bytes(damage)
    assert fault(jar, kept) is not None
    assert kept_jars([jar]) == [kept]
    assert kept.read_bytes() == b"1" * 1000


def test_what_a_mirror_has_altered_is_not_kept(cache: Path, publish: Publish) -> None:
    jar = publish("one", b"1" * 1000)
    publish("one", b"x" * 1000)
    with pytest.raises(JarError, match=r"one-1\.0\.jar has 1000 bytes and sha256 \w+, not .*: it was not kept") as no:
        kept_jars([jar])
    assert no.value.jar == "one-1.0.jar"
    assert list(cache.iterdir()) == []


def test_says_which_jar_is_not_to_be_had(
    cache: Path, publish: Publish, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present, missing = publish("one", b"1"), Jar("org.example", "three", "1.0", 1, "0" * 64)
    with served(mirror) as (place, asked):
        monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", f"http://{place}")
        with pytest.raises(JarError) as no:
            kept_jars([present, missing])
    assert str(no.value) == (
        "three-1.0.jar could not be downloaded (the repository answered 404 File not found): the first start of Spark"
        " needs the network; behind a proxy it needs HTTPS_PROXY, and SSL_CERT_FILE where the proxy has a certificate"
        " of its own; for a mirror, name its URL in REPLICA_PLANNER_MAVEN_REPOSITORY."
    )
    assert asked == ["/org/example/one/1.0/one-1.0.jar", "/org/example/three/1.0/three-1.0.jar"]
    assert list(cache.iterdir()) == []


def test_a_busy_mirror_is_asked_again_with_the_login_of_its_url(
    cache: Path, publish: Publish, mirror: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(download, "_PAUSES", (0.0, 0.0))
    jar = publish("one", b"1" * 1000)
    with served(mirror, login="me:p@ss", busy=2) as (place, asked):
        monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", f"http://me:p%40ss@{place}/")
        assert kept_jars([jar]) == [cache / "one-1.0.jar"]
    assert asked == [f"/{jar.path}"] * 3
    assert "p@ss" not in (said := capfd.readouterr().err) and "p%40ss" not in said


def test_a_login_that_is_refused_is_not_told(
    cache: Path, publish: Publish, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = publish("one", b"1")
    with served(mirror, login="me:secret") as (place, asked):
        monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", f"http://me:wrong@{place}")
        with pytest.raises(JarError, match="the repository answered 401 Unauthorized") as no:
            kept_jars([jar])
    assert len(asked) == 1
    assert "wrong" not in str(no.value) + no.value.details


def test_a_certificate_of_ssl_cert_file_is_trusted_and_no_other(
    cache: Path, publish: Publish, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PAUSES", ())
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    jar = publish("one", b"1" * 1000)
    with served(mirror, tls=True) as (place, _):
        monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", f"https://{place}")
        with pytest.raises(JarError, match=r"one-1\.0\.jar could not be downloaded \(.*CERTIFICATE_VERIFY_FAILED"):
            kept_jars([jar])
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert kept_jars([jar]) == [cache / "one-1.0.jar"]


def test_a_proxy_is_asked_where_one_is_named(
    cache: Path, publish: Publish, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PAUSES", ())
    jar = publish("one", b"1" * 1000)
    with served(mirror) as (place, asked):
        monkeypatch.setenv("http_proxy", f"http://{place}")
        monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", "http://jars.example")
        with pytest.raises(JarError, match="404"):  # this one takes the whole URL for a path
            kept_jars([jar])
    assert asked == [f"http://jars.example/{jar.path}"]


def test_a_mirror_that_is_no_url_is_named(cache: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = publish("one", b"1")
    monkeypatch.setenv("REPLICA_PLANNER_MAVEN_REPOSITORY", "repo.example/maven")
    with pytest.raises(JarError, match="REPLICA_PLANNER_MAVEN_REPOSITORY must be a URL with https://"):
        kept_jars([jar])


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "file"))
    with pytest.raises(JarError, match=r"Spark's JARs cannot be kept in .*/file/jars .*: set REPLICA_PLANNER_CACHE"):
        kept_jars([publish("one", b"1")])


def test_a_cache_from_which_spark_cannot_load_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICA_PLANNER_CACHE", str(tmp_path / "a,b"))
    with pytest.raises(JarError, match="set REPLICA_PLANNER_CACHE to another directory"):
        kept_jars([])


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
