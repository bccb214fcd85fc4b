"""A process that loads more and more of the project, and says after each step what that loaded.

``python -m tests.support.without_torch`` prints JSON: of each step its name, what it was to show,
and the heavy packages that are loaded behind it.
"""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOADS_RAY = "neuralviz.cli.ray_work"
HEAVY = (
    "lancedb", "pandas", "plotly", "scipy.stats", "sklearn", "streamlit", "torch",
    "transformers", "umap",
)  # fmt: skip


def every_module(package: str) -> None:
    """Import a package and all that is in it, but for what is there to load Ray."""
    folder = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(folder, f"{package}."):
        if module.name != LOADS_RAY:
            importlib.import_module(module.name)


def core() -> str:
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
    return neuralviz.__version__


def command(*words: str) -> Callable[[], str]:
    """What ``neuralviz WORDS`` prints."""

    def run() -> str:
        from neuralviz.cli import app

        with redirect_stdout(io.StringIO()) as printed:
            app(list(words), standalone_mode=False)
        return printed.getvalue()

    return run


def modules(package: str) -> Callable[[], str]:
    return lambda: every_module(package) or ""


def page(name: str) -> Callable[[], str]:
    """The headings and sentences of a page at its first visit."""

    def run() -> str:
        from streamlit.testing.v1 import AppTest

        opened = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=60).run()
        assert not opened.exception, opened.exception
        return " | ".join(text.value for text in [*opened.subheader, *opened.markdown])

    return run


STEPS: dict[str, Callable[[], str]] = {
    "core": core,
    "version": command("--version"),
    "help": command("--help"),
    "command line": modules("neuralviz.cli"),
    "figures": modules("neuralviz.plots"),
    "user interface": modules("neuralviz.ui"),
    "blueprints": page("blueprints"),
    "micro-tuning": page("micro_tuning"),
    "evaluation": page("evaluation"),
}


if __name__ == "__main__":
    steps = []
    for name, step in STEPS.items():
        shown = step()
        steps.append([name, shown, [heavy for heavy in HEAVY if heavy in sys.modules]])
    print(json.dumps(steps))
