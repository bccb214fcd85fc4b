"""The choice of the line that names the columns of an uploaded table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.reading.source import WITHOUT_NAMES

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.reading.source import Source

DETECTED = "detect automatically"
_LINES = 20
_CHOICES: dict[str, int | None] = {
    DETECTED: None,
    "none": 0,
    **{f"line {number}": number for number in range(1, _LINES + 1)},
}


def choose_header(source: Source, key: str, place: DeltaGenerator | None = None) -> Source:
    """Ask which line names the columns; nothing is asked where the format names them.

    Args:
        source: the file.
        key: of the widget.
        place: it is drawn; by default where the page is.

    Returns:
        The file to be read so.
    """
    if source.ending not in WITHOUT_NAMES:
        return source
    chosen = (place or st).selectbox(
        "Header",
        list(_CHOICES),
        key=key,
        help="The line with the names of the columns; in a workbook, the row.",
    )
    return replace(source, header=_CHOICES.get(chosen))
