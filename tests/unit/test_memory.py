"""The peak of a process's memory, wherever the system tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import memory


@pytest.mark.parametrize("status", ["Name:\tpython\nVmRSS:\t10 kB\n", None])
def test_a_system_whose_status_does_not_tell_the_peak(
    status: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "STATUS", tmp_path / "status")
    if status is not None:
        memory.STATUS.write_text(status)
    assert memory.peak_memory() > 2**20
