"""Folders of the app, the sample data and the user's data, in a checkout or a wheel."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).parent


def app_folder() -> Path:
    """Folder of ``app.py``, ``pages/`` and ``.streamlit/``."""
    inside = _PACKAGE / "_app"
    return inside if inside.is_dir() else _PACKAGE.parent


def home() -> Path:
    """Folder of the user's data; ``NEURALVIZ_HOME`` overrides it."""
    return Path(os.environ.get("NEURALVIZ_HOME") or platformdirs.user_data_dir("neuralviz"))


def similarity_models_folder() -> Path:
    return home() / "similarity-models"


def licences() -> Path:
    """Folder of the bundled weights' licence and the list of their training texts."""
    return app_folder() / "licences"


def sample_data() -> Path:
    return app_folder() / "sample_data"
