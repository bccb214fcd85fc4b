"""What answers at once: the package, the commands, and pages load none of the heavy packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_commands_figures_and_pages_load_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.without_torch"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = {name: set(heavy) for name, heavy in json.loads(done.stdout.splitlines()[-1]).items()}
    for name in ("core", "version", "help"):
        assert loaded[name] == set(), name
    assert loaded["command line"] <= {"plotly"}
    assert loaded["figures"] <= {"pandas", "plotly"}
    assert loaded["user interface"] <= {"pandas", "plotly", "streamlit"}
    for name in ("blueprints", "blueprints in German", "micro-tuning", "evaluation"):
        assert not {"torch", "transformers"} & loaded[name], name
