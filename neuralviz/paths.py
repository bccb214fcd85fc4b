"""Where the app and the sample data lie: in a checkout, or inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def app_folder() -> Path:
    """Folder of ``app.py``, ``pages/`` and ``.streamlit/``."""
    inside = _PACKAGE / "_app"
    return inside if inside.is_dir() else _PACKAGE.parent


def sample_data() -> Path:
    """Folder of the corpora written for this project."""
    return app_folder() / "sample_data"
