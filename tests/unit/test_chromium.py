"""Without Chromium the browser tests are skipped; where CI is set, that is a failure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.conftest import no_browser
from tests.support.waiting import run_command

SCRIPT = Path(__file__).parents[2] / "scripts" / "get_chromium.sh"


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail), ("", pytest.skip)])
def test_tests_without_a_browser(ci: str, outcome, monkeypatch) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome.Exception, match="no Chromium"):
        no_browser("no Chromium")


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_a_chromium_that_cannot_be_installed(ci: str, status: int, tmp_path: Path) -> None:
    for name in ("python", "playwright"):  # that find and bring none
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    done = run_command(
        shutil.which("bash"), SCRIPT, tmp_path, env={"PATH": str(tmp_path), "CI": ci}
    )
    assert done.returncode == status, done.stderr
    assert "Could not install Chromium" in done.stdout + done.stderr
