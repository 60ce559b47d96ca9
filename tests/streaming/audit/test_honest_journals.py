"""Journals that nobody has touched come out the same, whatever happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from streaming.audit.journal import _cuts, verify_clusters
from streaming.audit.rederive import Batch
from streaming.history.tables import History
from streaming.record.rows import versions_to_arrow
from tests.streaming.audit.random_histories import BY_LOAD, KEPT_OFF, random_history
from tests.streaming.audit.test_rederive import verified
from tests.streaming.writing import project, write_batches

Row = dict[str, Any]


@pytest.mark.parametrize("seed", range(12))
def test_an_honest_journal_comes_out_the_same(tmp_path: Path, seed: int) -> None:
    driver, results = random_history(seed, 60)
    write_batches(tmp_path, *results)
    project(tmp_path, driver.journal)
    assert verified(tmp_path) is None
    assert len({version.kind for version in driver.journal}) >= 4


@pytest.mark.parametrize(("seed", "conf"), [(3, BY_LOAD), (8, BY_LOAD), (3, KEPT_OFF), (8, KEPT_OFF)])
def test_an_honest_journal_with_plans_by_load_comes_out_the_same(tmp_path: Path, seed: int, conf: str) -> None:
    driver, results = random_history(seed, 25, conf)
    write_batches(tmp_path, *results)
    project(tmp_path, driver.journal)
    assert verified(tmp_path) is None
    assert any(version.numbers.loads for version in driver.journal)
    assert sum(len(version.load_changes) for version in driver.journal) > 1


def test_parts_of_a_journal_cost_about_the_same() -> None:
    """Versions 1 to 60 create topics, 61 to 70 move replicas; a batch is never cut."""
    rows = [(("c", version, Batch("app", version // 2)), 1 if version <= 60 else 100) for version in range(1, 71)]
    assert _cuts(rows, 2) == [(0, 65), (65, None)]
    assert _cuts(rows[:60], 3) == [(0, 21), (21, 41), (41, None)]
    assert _cuts(rows[:1], 4) == [(0, None)]


@pytest.mark.parametrize("changed", [None, 3, 60])
def test_a_long_journal_is_verified_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: int | None
) -> None:
    """In any part the first difference of the whole is found, and every version is derived once."""
    monkeypatch.setattr("streaming.audit.journal._LONG", 10)
    driver, results = random_history(3, 120)
    count = len(driver.journal)
    assert count > 62
    versions = [v for result in results for v in result.versions]
    rows = [
        versions_to_arrow([replace(v, cause="another") if v.plan_version == changed else v], "app", result.batch_id)
        for result in results
        for v in result.versions
    ]
    write_batches(tmp_path, *(replace(result, versions=[]) for result in results))
    write_deltalake(tmp_path / "plans", pa.concat_tables(rows))
    (found,) = verify_clusters(History(str(tmp_path)), ["c"], processes=2)
    assert len(versions) == count
    if changed is None:
        assert (found.difference, found.versions) == (None, count)
        assert found.moves == sum(block.partitions.size for v in versions for block in v.moves)
    else:
        assert found.difference is not None
        assert found.difference.plan_version == changed
        assert found.versions < changed
