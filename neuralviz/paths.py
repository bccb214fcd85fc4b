"""Folders of the app and the sample data, in a checkout or a wheel, and of users' data."""

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
    """Folder of what neuralviz keeps for its user; ``NEURALVIZ_HOME`` overrides it."""
    return Path(os.environ.get("NEURALVIZ_HOME") or platformdirs.user_data_dir("neuralviz"))


def similarity_models_folder() -> Path:
    """Folder of the similarity models, a file each."""
    return home() / "similarity-models"


def licences() -> Path:
    """Folder of the licence of the bundled weights, and of the list of their training texts."""
    return app_folder() / "licences"


def sample_data() -> Path:
    """Folder of the corpora written for this project."""
    return app_folder() / "sample_data"
