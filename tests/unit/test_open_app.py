"""`neuralviz app`: what of its options reaches Streamlit, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from neuralviz.paths import app_folder
from neuralviz.ui import start
from tests.support.waiting import free_port, wait_until


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--no-browser"], "no option --no-browser. `neuralviz app --help` lists"),
        (["-p", "8600"], "no option -p."),
        (["--server.headles", "true"], "Did you mean --server.headless?"),
        (["--server.headless"], "'--server.headless' requires an argument."),
        (["--server.headless", "perhaps"], "'perhaps' is not a valid boolean."),
        (["--server.headless", "true", "topics.csv"], "does not know what “topics.csv” means."),
        (["--", "--demo"], "does not know what “--demo” means."),
        (["--server.cookieSecret", "x"], "using the CLI flag is not allowed."),
        (["--server.headless", "true", "--server.baseUrlPath=nv", "--theme.base", "dark"], ""),
    ],
)
def test_an_option_that_streamlit_does_not_know_is_refused_with_a_sentence(
    words: list[str], sentence: str, monkeypatch, capsys
):
    served = []
    monkeypatch.setattr(start.cli, "main", lambda words, **_: served.append(words))
    monkeypatch.setattr(sys, "argv", ["start.py", *words])
    if not sentence:
        start.main()
        assert served == [["run", str(app_folder() / "app.py"), *words]]
        assert Path(served[0][1]).is_file()
        return
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Usage" not in said
    assert len(said.splitlines()) == 1
    assert not served


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
