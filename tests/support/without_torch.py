"""A process that loads more and more of the project, and says what heavy packages each step loaded.

``python -m tests.support.without_torch`` prints JSON: packages by step.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from contextlib import redirect_stdout

HEAVY = (
    "lancedb", "pandas", "plotly", "scipy.stats", "sklearn", "streamlit", "torch",
    "transformers", "umap",
)  # fmt: skip
GERMAN = "Der Zug nach Hamburg hatte wieder einmal Verspätung."


def load_core() -> None:
    """What the README's first lines of Python and the blueprints page need."""
    import neuralviz
    import neuralviz.embedders
    import neuralviz.micro_tuning
    import neuralviz.models.bundled
    import neuralviz.models.hub
    import neuralviz.models.shared

    neuralviz.micro_tuning.mask_inputs(6, [(2, 1)])
    neuralviz.models.bundled.shapes()
    neuralviz.models.tokenize(neuralviz.models.bundled.text_reader(), ["A dog."])


def run_command(*words: str) -> None:
    from neuralviz.cli import app

    with redirect_stdout(sys.stderr):
        app(words, standalone_mode=False)


def load_modules(package: str) -> None:
    """Import a package and all that is in it, but for what is there to load Ray."""
    folder = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folder, f"{package}."):
        if module.name != "neuralviz.cli.ray_work":
            importlib.import_module(module.name)


def open_page(name: str, text: str = "") -> None:
    from tests.support.pages import page_at

    page = page_at(name).run()
    if text:
        page.text_area[0].set_value(text).run()
    assert not page.exception, page.exception


STEPS = [
    ("core", load_core),
    ("version", run_command, "--version"),
    ("help", run_command, "--help"),
    ("command line", load_modules, "neuralviz.cli"),
    ("figures", load_modules, "neuralviz.plots"),
    ("user interface", load_modules, "neuralviz.ui"),
    ("blueprints", open_page, "blueprints"),
    ("blueprints in German", open_page, "blueprints", GERMAN),
    ("micro-tuning", open_page, "micro_tuning"),
    ("evaluation", open_page, "evaluation"),
]

if __name__ == "__main__":
    loaded = {}
    for name, step, *words in STEPS:
        step(*words)
        loaded[name] = [heavy for heavy in HEAVY if heavy in sys.modules]
    print(json.dumps(loaded))
