"""Texts of users as markdown."""

from __future__ import annotations

import pytest

from neuralviz.ui.page import WORD_JOINER, plain


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("all-MiniLM-L6-v2, 1.5 of 10", "all-MiniLM-L6-v2, 1.5 of 10"),
        ("**x** [a](b)", r"\*\*x\*\* \[a\]\(b\)"),
        ("www.evil.csv", f"www{WORD_JOINER}.evil.csv"),
        ("https://e.co", rf"https{WORD_JOINER}\://e.co"),
        ("me@e.co", f"me@{WORD_JOINER}e.co"),
        ("- a", r"\- a"),
        ("12. a", r"12\. a"),
        ("a->b", rf"a-{WORD_JOINER}\>b"),
        ("", ""),
    ],
)
def test_markdown_that_shows_a_text_as_it_is(text: str, markdown: str) -> None:
    assert plain(text) == markdown
