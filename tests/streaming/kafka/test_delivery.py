"""Lines that are handed over arrive, and where they cannot, that is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.config import DeltaSource, FilesSource, KafkaSource, Source
from streaming.errors import InputError
from streaming.kafka.delivery import deliver, place_of

LINES = b"{}\n\xff\n"


def test_lines_become_a_file_that_is_whole_when_its_name_appears(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    deliver(FilesSource(str(folder)), LINES)
    deliver(FilesSource(str(folder)), b"second\n")
    files = sorted(folder.iterdir())
    assert [file.read_bytes() for file in files] == [LINES, b"second\n"]
    assert {file.suffix for file in files} == {".jsonl"}


def test_lines_become_rows_of_a_delta_table(tmp_path: Path) -> None:
    source = DeltaSource(str(tmp_path / "events"))
    deliver(source, LINES)
    assert DeltaTable(source.path).to_pyarrow_table()["value"].to_pylist() == ["{}", "\\xff"]


@pytest.mark.parametrize("make", [FilesSource, DeltaSource])
def test_a_place_that_cannot_be_written_to_is_said_in_one_sentence(tmp_path: Path, make: type[Source]) -> None:
    (tmp_path / "file").write_text("")
    source = make(str(tmp_path / "file" / "events"))
    with pytest.raises(InputError) as caught:
        deliver(source, LINES)
    assert str(caught.value).startswith(f"{source.path}: ")
    assert "\n" not in str(caught.value)
    assert caught.value.path == source.path


@pytest.mark.parametrize(
    ("source", "place"),
    [(FilesSource("in"), "in"), (DeltaSource("table"), "table"), (KafkaSource("a:1", "t"), "topic t")],
)
def test_a_source_has_a_name_for_people(source: Source, place: str) -> None:
    assert place_of(source).startswith(place)
