"""Texts from what was pasted, and back."""

from __future__ import annotations

import re

from neuralviz.reading.cleaning import clean_texts
from neuralviz.reading.texts import Mode, ReadTexts


def split_pasted(text: str, mode: Mode = "line") -> ReadTexts:
    """Split what was pasted: a text a line, a blank line between texts, or all as one text.

    Nothing at all gives no texts and no notes.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if mode == "one":
        parts = [text]
    elif mode == "line":
        parts = text.split("\n")
    else:
        parts = re.split(r"\n[^\S\n]*\n\s*", text)
    return ReadTexts(*clean_texts(parts, range(1, len(parts) + 1))[:2])


def join_pasted(texts: list[str]) -> tuple[str, Mode]:
    """What to paste, and in which mode, to get ``texts`` from ``split_pasted`` again.

    Blank lines inside one of several texts are lost.
    """
    if len(texts) == 1 and "\n" in texts[0]:
        return texts[0], "one"
    if any("\n" in text for text in texts):
        return "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in texts), "blank line"
    return "\n".join(texts), "line"
