"""What answers at once: the package, the commands, and pages load none of the heavy packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import neuralviz

ROOT = Path(__file__).parents[2]


def test_commands_figures_and_pages_load_without_torch() -> None:
    """One process takes all steps, so that each shows what it adds to those before it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.without_torch"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout.splitlines()[-1])
    shown = {name: what for name, what, _ in steps}
    loaded = {name: set(heavy) for name, _, heavy in steps}
    assert shown["version"] == f"neuralviz {neuralviz.__version__}\n"
    assert "Usage" in shown["help"]
    assert "What does it know now?" in shown["micro-tuning"]
    assert "every token is masked 7 times" in shown["blueprints"]
    for name in ("core", "version", "help"):
        assert loaded[name] == set(), name
    assert loaded["command line"] <= {"plotly"}
    assert loaded["figures"] <= {"pandas", "plotly"}
    assert loaded["user interface"] <= {"pandas", "plotly", "streamlit"}
    assert "More ways to look at it" in shown["evaluation"]  # of the recorded result
    for name in ("blueprints", "micro-tuning", "evaluation"):
        assert not {"torch", "transformers"} & loaded[name], name
