"""`neuralviz app`: what is refused, and that it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from neuralviz.ui import server
from tests.support.waiting import free_port, wait_until


def test_a_word_that_is_no_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "topics.csv"])
    with pytest.raises(SystemExit, match=r"what “topics\.csv” means"):
        server.check_settings()


@pytest.mark.slow
def test_the_command_serves_the_app(tmp_path: Path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, *f"-m neuralviz app --port {port} --server.headless true".split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "NEURALVIZ_WORKERS": "0"},
    )

    def is_alive() -> bool:
        with suppress(OSError), urlopen(f"http://localhost:{port}/livez") as answer:
            return answer.read() == b"ok"
        return False

    try:
        wait_until(is_alive, 60)
        process.terminate()
        assert process.wait(30) in (0, -15)
    finally:
        process.kill()
