"""How many files of neuralviz/ a user's data pass on their way to a figure.

    python scripts/count_files.py         # the numbers
    python scripts/count_files.py --list  # the files, too

A file counts if one of its functions takes or returns a value that holds the data: the text that
was pasted, or a cell of the table. Values are searched through containers and the attributes of
neuralviz's own classes, four deep. Functions are watched from the press of the button, or from the
command, until the page hands its first figure to the browser. What sees numbers alone does not
count: they do not hold the data.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "neuralviz") + os.sep
DEPTH = 4  # containers and objects within each other
WIDTH = 50  # items of a container
WAIT = 120  # seconds for a run
MARK = "zebra"  # a word of the data that occurs nowhere else
TEXT = f"The {MARK} drank from the river. Lions watched it from the shade."
TABLE = "text,topic\n" + "".join(f"The {MARK} met animal {i}.,{'ab'[i % 2]}\n" for i in range(24))
PAIRS = "sentence1,sentence2,score\n" + "".join(
    f"The {MARK} met animal {i}.,It met a {MARK} and {i * 7 % 5}.,{i / 4}\n" for i in range(20)
)

_thread = threading.local()


class Counter:
    """Names of the files through which the data pass, while it is active."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_active = False

    def profile(self, frame: FrameType, event: str, returned: Any) -> None:
        """Look at the arguments or the value of a function: for `sys.setprofile`."""
        path = frame.f_code.co_filename
        if (
            not self.is_active
            or not path
            or not path.startswith(PACKAGE)
            or getattr(_thread, "is_busy", False)
        ):
            return
        name = path[len(PACKAGE) :]
        if name in self.files or event not in ("call", "return"):
            return
        values = list(frame.f_locals.values()) if event == "call" else [returned]
        _thread.is_busy = True  # looking at values calls functions, too
        try:
            if any(holds_data(value) for value in values):
                self.files.add(name)
        finally:
            _thread.is_busy = False

    def run_to_figure(self, page: AppTest) -> None:
        """Run a page, and count until it shows its first figure."""
        import streamlit

        for name in ("plotly_chart", "_bidi_component"):
            setattr(streamlit, name, self._stopping(getattr(streamlit, name)))
        page.run()
        assert not self.is_active, "the page showed no figure"

    def _stopping(self, show: Callable[..., Any]) -> Callable[..., Any]:
        def show_and_stop(*args: Any, **options: Any) -> Any:
            self.is_active = False
            return show(*args, **options)

        return show_and_stop


def holds_data(value: Any, depth: int = DEPTH) -> bool:
    """Whether a value is or contains a text with the mark."""
    if isinstance(value, str | bytes):
        return (MARK.encode() if isinstance(value, bytes) else MARK) in value
    if depth == 0 or value is None or isinstance(value, int | float | type):
        return False
    if isinstance(value, dict):
        items = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(value)
    elif type(value).__module__.startswith("neuralviz"):
        slots = getattr(type(value), "__slots__", ())
        items = [*getattr(value, "__dict__", {}).values()]
        items += [getattr(value, slot, None) for slot in slots]
    else:
        return False
    return any(holds_data(item, depth - 1) for item in items[:WIDTH])


def wait_for(page: AppTest, runs: str) -> None:
    """Wait until a page's last run is over."""
    if runs in page.session_state:
        assert page.session_state[runs][-1].wait(WAIT)


def tune_pasted_text(counter: Counter) -> None:
    """A text that is pasted on Micro-tuning."""
    from tests.support.pages import page_at

    page = page_at("micro_tuning").run()
    page.segmented_control(key="micro-tuning-source").set_value("Paste").run()
    page.text_area(key="micro-tuning-pasted").set_value(TEXT).run()
    counter.is_active = True
    next(button for button in page.button if button.label == "Tune").click().run()
    wait_for(page, "micro-tuning-runs")
    counter.run_to_figure(page)


def map_table(counter: Counter) -> None:
    """A CSV through `corpus add` and `project` to the Corpus map."""
    from typer.testing import CliRunner

    from neuralviz import cli
    from neuralviz.store.corpora import CorpusStore
    from tests.support.pages import page_at

    folder = Path(tempfile.mkdtemp())
    path = folder / "animals.csv"
    path.write_text(TABLE, encoding="utf-8")
    counter.is_active = True
    commands = (
        ["corpus", "add", str(path), "--name", "animals"],
        ["project", "animals", "--output", str(folder / "map.html")],
    )
    for words in commands:
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code == 0, result.output
    (corpus,) = CorpusStore().corpora()
    counter.run_to_figure(page_at("corpus_map", corpus=corpus.id, map_b="none"))


def evaluate_pairs(counter: Counter) -> None:
    """A table of pairs through Evaluation."""
    from neuralviz.reading.source import Source
    from tests.support.pages import page_at

    page = page_at("evaluation", example="Scored pairs", methods=["mean", "cls"]).run()
    wait_for(page, "evaluation-runs")
    counter.is_active = True
    page.session_state["evaluation-kept"] = Source("own.csv", PAIRS.encode())
    page.segmented_control(key="evaluation-source").set_value("Upload").run()
    next(button for button in page.button if button.label == "Evaluate").click().run()
    wait_for(page, "evaluation-runs")
    counter.run_to_figure(page)


JOURNEYS = (tune_pasted_text, map_table, evaluate_pairs)


def main() -> None:
    """Print the number of files of each journey."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the files, too")
    asks_list = parser.parse_args().list
    os.environ["NEURALVIZ_HOME"] = tempfile.mkdtemp(prefix="neuralviz-count-")
    sys.path.insert(0, str(ROOT))
    import neuralviz

    neuralviz.load_model("bundled", device="cpu")
    for journey in JOURNEYS:
        counter = Counter()
        threading.setprofile(counter.profile)
        sys.setprofile(counter.profile)
        journey(counter)
        sys.setprofile(None)
        print(f"{len(counter.files):4}  {journey.__doc__}")
        for name in sorted(counter.files) if asks_list else ():
            print(f"      {name}")


if __name__ == "__main__":
    main()
