"""Pages of the app without a browser."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).parents[2] / "pages"


def page_at(name: str, timeout: float = 90, **address: str | list[str]) -> AppTest:
    """The page ``pages/NAME.py`` at an address, before its first run.

    Args:
        name: of the file.
        timeout: seconds that a run may take.
        address: what follows the question mark; ``_`` in a name stands for ``-``.
    """
    page = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=timeout)
    for key, value in address.items():
        page.query_params[key.replace("_", "-")] = value
    return page
