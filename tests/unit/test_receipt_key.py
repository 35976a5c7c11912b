"""The key of the receipts: one for a state directory, whoever asks first, and nothing beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cenotaph.errors import ConfigError
from cenotaph.receipts import key_path, receipt_key


def names(state: Path) -> list[str]:
    return [path.name for path in key_path(state).parent.iterdir()]


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    """Killed before the key had its name, or after it while the other name was still there."""
    folder = key_path(tmp_path).parent
    folder.mkdir()
    (folder / ".cenotaph-0a1b2c3d.tmp").write_bytes(b"half of a")
    key = receipt_key(tmp_path, create=True)
    assert names(tmp_path) == ["receipts.key"]
    (folder / ".cenotaph-4e5f6a7b.tmp").hardlink_to(key_path(tmp_path))
    assert receipt_key(tmp_path, create=True) == key
    assert names(tmp_path) == ["receipts.key"]
    assert key_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_all_get_the_same_key(tmp_path: Path) -> None:
    for number in range(20):
        state = tmp_path / str(number)
        state.mkdir()
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(receipt_key, state, create=True) for _ in range(8)]
        keys = {each.result() for each in asked}
        assert len(keys) == 1
        assert names(state) == ["receipts.key"]


def test_who_only_reads_makes_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no receipt key"):
        receipt_key(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
