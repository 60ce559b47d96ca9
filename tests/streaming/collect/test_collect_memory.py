"""What a collector knows survives it, whole, and what cannot be used is said in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from streaming.collect.memory import Memory, MemoryFile
from streaming.errors import InputError
from streaming.kafka.snapshot import Broker, Partition, Snapshot, Topic

SNAPSHOT = Snapshot(
    "kafka-id",
    (Broker(1, "host", 9092, "a", False), Broker(2, "host", 9093, None, True)),
    (Topic("t", "topic-id", False, (Partition(0, (1, 2, 3), 1, 7, (1, 2), (3,), (1,)),)),),
)


def test_what_is_written_is_read_again_by_the_cluster_it_is_about(tmp_path: Path) -> None:
    memory = Memory(SNAPSHOT, datetime(2026, 3, 1, tzinfo=UTC), ('{"a": "ä"}', "{}"))
    for name in ("east", "a/b", "..", "ä b"):
        assert MemoryFile(tmp_path, name, Memory).read() == Memory()
        MemoryFile(tmp_path, name, Memory).write(memory)
        assert MemoryFile(tmp_path, name, Memory).read() == memory
    assert sorted(path.name for path in tmp_path.iterdir()) == ["%C3%A4%20b.json", "...json", "a%2Fb.json", "east.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"snapshot": 3}', '{"unsent": [1]}'])
def test_a_file_that_no_collector_wrote_is_refused(tmp_path: Path, text: str) -> None:
    file = MemoryFile(tmp_path, "east", Memory)
    file.path.write_text(text)
    with pytest.raises(InputError, match=r"is not what a collector writes .* remove it to begin anew") as caught:
        file.read()
    assert str(caught.value).startswith(str(file.path))


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written: "):
        MemoryFile(tmp_path / "file" / "x", "east", Memory).write(Memory())
