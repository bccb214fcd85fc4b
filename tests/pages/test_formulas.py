"""The formula in each page's "How to read this"."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "pages").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_displayed_formulas_are_paragraphs_of_their_own(page: Path) -> None:
    """Markdown shows a ``$$`` within a sentence as it is, and takes what follows for a formula."""
    (header,) = (
        node
        for node in ast.walk(ast.parse(page.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "show_page_header"
    )
    paragraphs = ast.literal_eval(header.args[2]).split("\n\n")
    displayed = [one for one in paragraphs if "$$" in one]
    assert displayed
    for one in displayed:
        assert one.startswith("$$") and one.endswith("$$") and one.count("$$") == 2
