"""A folder of files as a source: each file is read once or named with the reason, whatever it is called and has."""

from __future__ import annotations

import bz2
import gzip
import os
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.config import Config, parse_config
from streaming.errors import ConfigError, JobError
from streaming.job import folder as module
from streaming.job.folder import Folder, folder_of

CONF = """
source = {{type = "files", path = "{path}/events", max_files_per_trigger = {files}, max_bytes_per_trigger = "{size}"}}
job = {{checkpoint = "{path}/checkpoint"}}
"""


def config(tmp_path: Path, files: int = 1000, size: str = "16MiB") -> Config:
    return parse_config(CONF.format(path=tmp_path, files=files, size=size), "test")


def opened(tmp_path: Path, files: int = 1000, size: str = "16MiB") -> Folder:
    """The folder as a job that has just started sees it."""
    found = folder_of(config(tmp_path, files, size))
    assert found is not None
    return found


def put(tmp_path: Path, name: str, content: bytes, second: float = 1.7e9) -> Path:
    path = tmp_path / "events" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (second, second))
    return path


def took(folder: Folder, batch: int) -> list[str]:
    """The lines of a batch by place; of what is not read, the reason."""
    return [
        f"{line.place}: {line.problem}" if "read" in line.problem or "again" in line.problem
        else f"{line.place} {line.raw.decode()}"
        for line in folder.take(batch)
    ]  # fmt: skip


def test_files_are_taken_by_time_then_name_and_once(tmp_path: Path) -> None:
    put(tmp_path, "b", b"b1\nb2\n", 5)
    put(tmp_path, "later", b"l1", 4_102_444_800)
    put(tmp_path, "a", b"a1\r\n", 5)
    put(tmp_path, "first", b"f1\n", 0)
    folder = opened(tmp_path)
    assert took(folder, 0) == ["first:1 f1", "a:1 a1", "b:1 b1", "b:2 b2", "later:1 l1"]
    put(tmp_path, "old", b"o1\n", 1)
    assert took(folder, 3) == ["old:1 o1"]
    assert took(folder, 4) == took(opened(tmp_path), 5) == []


def test_a_batch_that_comes_again_reads_the_same(tmp_path: Path) -> None:
    put(tmp_path, "a", b"a1\na2\n")
    first = took(opened(tmp_path, files=1), 7)
    put(tmp_path, "earlier", b"e1\n", 1)
    again = opened(tmp_path, files=1)
    assert took(again, 7) == first == ["a:1 a1", "a:2 a2"]
    assert took(again, 8) == ["earlier:1 e1"]
    with pytest.raises(JobError, match="batch 8 has read files already, and Spark has come to batch 7"):
        took(again, 7)


def test_files_and_bytes_limit_a_batch_and_large_files_are_cut_between_lines(tmp_path: Path) -> None:
    lines = [b"%06d" % n for n in range(1000)]
    put(tmp_path, "large", b"\n".join(lines), 1)
    for name in ("a", "b", "c"):
        put(tmp_path, name, name.encode(), 2)
    folder = opened(tmp_path, files=2, size="1KiB")
    at_once = [took(folder, batch) for batch in range(20)]
    (tmp_path / "checkpoint" / "files.jsonl").unlink()
    restarted = [took(opened(tmp_path, files=2, size="1KiB"), batch) for batch in range(20)]
    assert restarted == at_once
    assert list(chain(*at_once)) == [
        *(f"large:{n} {line.decode()}" for n, line in enumerate(lines, 1)), "a:1 a", "b:1 b", "c:1 c"]  # fmt: skip
    assert [len(batch) for batch in at_once] == [*[146] * 6, 125, 2, *[0] * 12]


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".zst"])
def test_a_line_longer_than_the_limit_is_taken_whole(tmp_path: Path, ending: str) -> None:
    content = b"x" * 3_000_000 + b"\nshort\n" + b"y" * 5000
    packed = {"": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}[ending](content)
    put(tmp_path, f"a{ending}", packed)
    sizes = []
    for batch in range(9):
        sizes += [len(line.raw) for line in opened(tmp_path, size="1KiB").take(batch)]
    assert sizes == [3_000_000, 5, 5000]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


HOSTILE = ["a:b.jsonl", "*.jsonl", "a{1,2}[x]?.jsonl", "_x.jsonl", "sp ace", "ünï", "new\nline", "tab\t", "%41", "-",
           "~", "\udcff\udc80", "a\\b", "'\"", "part-1.c000.txt", "x" * 255]  # fmt: skip


def test_names_mean_nothing(tmp_path: Path) -> None:
    for n, name in enumerate(HOSTILE):
        put(tmp_path, name, b"%d\n" % n, n)
    folder = opened(tmp_path)
    places = [line.rpartition(":1 ") for line in took(folder, 0)]
    assert [n for _, _, n in places] == [str(n) for n in range(len(HOSTILE))]
    assert [place for place, _, _ in places][6:8] == ["new\\nline", "tab\\t"]
    assert all(place.encode() and place.isprintable() for place, _, _ in places)
    assert took(opened(tmp_path), 1) == []


def test_what_is_not_read_is_named_once_and_stops_nothing(tmp_path: Path) -> None:
    put(tmp_path, "below/x.jsonl", b"never\n")
    put(tmp_path, ".left-behind", b"never\n")
    put(tmp_path, ".part.crc", b"never\n")
    put(tmp_path, "broken.gz", gzip.compress(os.urandom(9000))[:-2000])
    put(tmp_path, "no.gz", b"plain\n")
    put(tmp_path, "cut.zst", zstd(os.urandom(9000))[:-2000])
    put(tmp_path, "packed.zip", b"PK")
    put(tmp_path, "empty", b"")
    (tmp_path / "events" / "dangling").symlink_to("nothing")
    (tmp_path / "events" / "linked").symlink_to(put(tmp_path, "../elsewhere", b"l1\n"))
    (tmp_path / "events" / ".being-written").write_bytes(b"later")
    os.mkfifo(tmp_path / "events" / "pipe")
    put(tmp_path, "good", b"g1\n")
    folder = opened(tmp_path)
    named = took(folder, 0)
    again = "it is not read; submit it under another name"
    assert sorted(named) == [
        f".left-behind: a leading dot means that the file is being written, so {again}",
        "below: this is a folder: files in folders below the source's own are not read",
        "broken.gz: the file cannot be read from here on: Compressed file ended before the end-of-stream marker was "
        f"reached; the rest of {again}",
        f"cut.zst: the file cannot be read from here on: Truncated compressed stream; the rest of {again}",
        f"dangling: the file cannot be read: No such file or directory; {again}",
        "good:1 g1",
        "linked:1 l1",
        f"no.gz: the file cannot be read from here on: Not a gzipped file (b'pl'); the rest of {again}",
        f"packed.zip: files are compressed as .gz, .bz2 or .zst, so {again}",
        "pipe: this is not a file, and is not read",
    ]  # fmt: skip
    assert took(folder, 1) == took(opened(tmp_path), 2) == []
    assert folder.waiting() == set()


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "secret", b"s1\n")

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module, "_opened", refuse)
    assert took(opened(tmp_path), 0) == [
        "secret: the file cannot be read: Permission denied; it is not read; submit it under another name"
    ]


def test_files_that_change_after_they_were_read_are_named_once(tmp_path: Path) -> None:
    for name in ("grown", "replaced", "deleted", "touched"):
        put(tmp_path, name, b"1\n", 5)
    folder = opened(tmp_path)
    assert len(took(folder, 0)) == 4
    put(tmp_path, "grown", b"1\n2\n", 6)
    put(tmp_path, "new", b"9\n", 6).replace(tmp_path / "events" / "replaced")
    (tmp_path / "events" / "deleted").unlink()
    reason = "the file has changed since it was read; what is new in it is not read; submit it under another name"
    assert took(folder, 1) == [f"grown: {reason}", f"replaced: {reason}"]
    assert took(folder, 2) == took(opened(tmp_path), 3) == []
    put(tmp_path, "deleted", b"2\n", 7)
    assert took(folder, 4) == [f"deleted: {reason}"]


def test_a_file_may_grow_while_it_is_read(tmp_path: Path) -> None:
    put(tmp_path, "a", b"x" * 1000 + b"\n" + b"y" * 1000 + b"\n" + b"y" * 1000 + b"\n")
    folder = opened(tmp_path, size="1KiB")
    assert len(took(folder, 0)) == 1
    with (tmp_path / "events" / "a").open("ab") as file:
        file.write(b"last\n")
    rest = [line for batch in range(1, 9) for line in took(opened(tmp_path, size="1KiB"), batch)]
    assert len(rest) == 3
    assert rest[-1] == "a:4 last"


def test_a_file_that_is_replaced_or_removed_while_it_is_read_is_named(tmp_path: Path) -> None:
    big = b"".join(b"%07d\n" % n for n in range(300_000))
    reason = "the file has changed while it was read; the rest of it is not read; submit it under another name"
    for name, change in (("other", big[::-1]), ("short", b"1\n")):
        put(tmp_path / name, "a", big)
        assert took(opened(tmp_path / name, size="1MiB"), 0)[-1] == "a:131072 0131071"
        put(tmp_path / name, "a", change)
        assert took(opened(tmp_path / name, size="1MiB"), 1) == [f"a:131073: {reason}"]
        assert took(opened(tmp_path / name, size="1MiB"), 2) == []
    path = put(tmp_path / "gone", "a", big)
    took(opened(tmp_path / "gone", size="1MiB"), 0)
    path.unlink()
    assert took(opened(tmp_path / "gone", size="1MiB"), 1) == [
        "a:131073: the file cannot be read: No such file or directory; it is not read; submit it under another name"
    ]
    assert took(opened(tmp_path / "gone", size="1MiB"), 2) == []


def test_lines_whose_file_is_gone_before_they_are_planned_keep_their_places(tmp_path: Path) -> None:
    path = put(tmp_path, "a", b"1\n2\n")
    put(tmp_path, "b", b"3\n")
    took(opened(tmp_path), 0)
    path.unlink()
    reason = "before this line was planned its file changed or was removed; submit it again"
    assert took(opened(tmp_path), 0) == [f"a:1: {reason}", f"a:2: {reason}", "b:1 3"]


def test_a_line_beyond_all_measure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 2 << 20)
    put(tmp_path, "a", b"1\n" + b"x" * (4 << 20) + b"\n2\n")
    put(tmp_path, "b", b"3\n")
    found = [line for batch in range(4) for line in took(opened(tmp_path, size="1KiB"), batch)]
    assert found == [
        "a:1 1",
        "a:2: this line is longer than 2.0 MiB; the rest of it is not read; submit it under another name",
        "b:1 3",
    ]


def test_two_checkpoints_read_the_same_folder(tmp_path: Path) -> None:
    put(tmp_path, "a", b"1\n")
    other = config(tmp_path)
    again = folder_of(
        parse_config(CONF.format(path=tmp_path, files=1, size="1MiB").replace("/checkpoint", "/2"), "test")
    )
    mine = folder_of(other)
    assert mine is not None
    assert again is not None
    assert took(mine, 0) == took(again, 0) == ["a:1 1"]


def test_a_half_written_note_was_never_used(tmp_path: Path) -> None:
    put(tmp_path, "a", b"1\n")
    took(opened(tmp_path), 0)
    put(tmp_path, "b", b"2\n")
    took(opened(tmp_path), 1)
    log = tmp_path / "checkpoint" / "files.jsonl"
    whole = log.read_bytes()
    for cut in range(whole.rfind(b"\n", 0, -1) + 1, len(whole)):
        log.write_bytes(whole[:cut])
        assert took(opened(tmp_path), 1) == ["b:1 2"]
        assert log.read_bytes() == whole


def test_the_log_stays_small_and_forgets_no_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.job.folder_log._SPARE", 0)
    monkeypatch.setattr("streaming.job.folder_log._GONE", 2)
    put(tmp_path, "stays", b"1\n")
    folder = opened(tmp_path)
    for batch in range(300):
        path = put(tmp_path, f"{batch}", b"1\n")
        assert len(took(folder, batch)) == (2 if batch == 0 else 1)
        path.unlink()
    assert (tmp_path / "checkpoint" / "files.jsonl").stat().st_size < 3_000
    again = opened(tmp_path)
    assert len(took(again, 299)) == 1
    assert took(again, 300) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda log: log.write_bytes(log.read_bytes().replace(b'"batch":0', b'"batch":x')), "line 2 is damaged"),
        (lambda log: log.write_bytes(log.read_bytes().replace(b"/events", b"/old")), "is of the folder .*/old, not"),
        (lambda log: log.write_bytes(log.read_bytes().replace(b'"version":1', b'"version":2')), "version 2 of the log"),
        (lambda log: (log.unlink(), (log.parent / "offsets").mkdir(), (log.parent / "offsets" / "0").touch()),
         "was not made by this release for a folder of files"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_does_not_fit_is_refused_with_what_to_do(tmp_path: Path, damage: object, said: str) -> None:
    put(tmp_path, "a", b"1\n")
    took(opened(tmp_path), 0)
    damage(tmp_path / "checkpoint" / "files.jsonl")  # type: ignore[operator]
    with pytest.raises(JobError, match=rf"checkpoint.*{said}.*name a new folder in \[job\] checkpoint"):
        opened(tmp_path)


def test_a_folder_that_cannot_be_listed_stops_the_job_with_its_name(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    (tmp_path / "events").rmdir()
    with pytest.raises(JobError, match=r"/events: the folder of events cannot be read: No such file or directory"):
        took(folder, 0)
    (tmp_path / "events").write_text("")
    with pytest.raises(JobError, match=r"/events: the folder of events cannot be read: File exists"):
        opened(tmp_path)


def test_limits_are_more_than_nothing() -> None:
    with pytest.raises(ConfigError, match="'0KiB' is nothing"):
        parse_config('source = {type = "files", max_bytes_per_trigger = "0KiB"}', "test")
