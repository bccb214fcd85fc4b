"""The command line: the same work without a browser.

What needs torch is imported when a command runs, so that ``--help`` answers at once.
"""

from neuralviz.cli.common import app, main
from neuralviz.cli.corpus import corpora
from neuralviz.cli.embed import embed
from neuralviz.cli.evaluate import evaluate
from neuralviz.cli.methods import list_methods
from neuralviz.cli.models import models
from neuralviz.cli.open_app import open_app
from neuralviz.cli.project import project
from neuralviz.cli.similarity import similarity
from neuralviz.cli.tune import tune

__all__ = [
    "app",
    "corpora",
    "embed",
    "evaluate",
    "list_methods",
    "main",
    "models",
    "open_app",
    "project",
    "similarity",
    "tune",
]
