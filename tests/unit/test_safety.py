"""What no code of the project may do, with a user's files and texts or with figures."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNSAFE = re.compile(
    r"(trust_remote_code|allow_pickle|unsafe_allow_html)\s*+=\s*+(?!False)"
    r"|torch\.load\((?!.*weights_only=True)|joblib\.load|(?<!def )\bexec\("
)

FIGURES = re.compile(r"\b(go|px|plt|alt)\.[A-Z]\w*\(")
WRITES_ADDRESS = re.compile(
    r"del st\.query_params|query_params(\[.*\] =(?!=)|\.(update|clear))|st\.rerun\("
)
NOT_UI = re.compile(r"^\s*(from|import) (neuralviz(?!\.ui\b| import ui$)|pages)", re.MULTILINE)


def files_with(pattern: re.Pattern[str], *names: str, but: str = "-") -> list[str]:
    """Files of the project, or of its folders, in which a pattern is found."""
    roots = [ROOT / name for name in names]
    files = [path for root in roots for path in (root.rglob("*.py") if root.is_dir() else [root])]
    assert files
    written = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in files}
    return [name for name, text in written.items() if pattern.search(text) and but not in name]


def test_nothing_unsafe_is_written() -> None:
    folders = ("neuralviz", "pages", "scripts", "benchmarks", "bundled_model")
    assert files_with(UNSAFE, "app.py", *folders) == []


def test_one_module_makes_figures_one_writes_the_address_and_pages_import_only_ui() -> None:
    assert files_with(WRITES_ADDRESS, "app.py", "pages", "neuralviz", but="ui/address.py") == []
    assert files_with(FIGURES, "neuralviz", but="neuralviz/plots/") == []
    assert files_with(NOT_UI, "app.py", "pages") == []


def test_what_is_unsafe_is_found() -> None:
    calls = ("f(trust_remote_code=True)", "np.load(p, allow_pickle=flag)", "torch.load(path)")
    assert all(map(UNSAFE.search, calls))
    assert not UNSAFE.search("torch.load(path, weights_only=True)")
    assert FIGURES.search("figure = go.Figure(data)")
    assert NOT_UI.search("import streamlit\nfrom neuralviz.models import load_model")
