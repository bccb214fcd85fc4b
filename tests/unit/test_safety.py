"""What no code of the project may do with a user's files and texts."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNSAFE = re.compile(
    r"(trust_remote_code|allow_pickle|unsafe_allow_html)\s*=\s*(?!False)"
    r"|torch\.load\((?!.*weights_only=True)|joblib\.load|(?<!def )\bexec\("
)


def test_nothing_unsafe_is_written() -> None:
    folders = ("neuralviz", "pages", "scripts", "benchmarks", "bundled_model")
    files = [ROOT / "app.py", *(path for name in folders for path in (ROOT / name).rglob("*.py"))]
    assert len(files) > 100
    assert [str(path) for path in files if UNSAFE.search(path.read_text("utf-8"))] == []


def test_what_is_unsafe_is_found() -> None:
    calls = ("f(trust_remote_code=True)", "np.load(p, allow_pickle=flag)", "torch.load(path)")
    assert all(map(UNSAFE.search, calls))
    assert not UNSAFE.search("torch.load(path, weights_only=True)")
