"""The rules of the house: kept by the project, and broken by each violation that is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import architecture
from tests.support.architecture import RULES, Rule

ROOT = Path(__file__).parents[2]

# A house of few files in which nothing is wrong: planted beside every violation, and clean alone.
SOUND = {
    "app.py": "import streamlit as st\n\nfrom neuralviz.ui.page import body\n\nst.navigation([])\n",
    "pages/compare.py": "from neuralviz.ui.page import body\n\nbody()\n",
    "neuralviz/__init__.py": '__version__ = "1"\n',
    "neuralviz/__main__.py": "from neuralviz.cli import main\n\nmain()\n",
    "neuralviz/cli/__init__.py": "from neuralviz import __version__\n\n\ndef main() -> None: ...\n",
    "neuralviz/errors.py": "class NeuralvizError(Exception): ...\n",
    "neuralviz/models/__init__.py": "from neuralviz.models.loading import load_model\n",
    "neuralviz/models/loading.py": (
        "from neuralviz.errors import NeuralvizError\n\n\n"
        "def load_model(): import torch; return torch.load('x', weights_only=True)\n"
    ),
    "neuralviz/plots/theme.py": "import plotly.graph_objects as go\n\nfigure = go.Figure()\n",
    "neuralviz/ui/page.py": (
        "import threading\n\nimport streamlit as st\n\n"
        "from neuralviz.models import load_model\n\n\n"
        "def work(job):\n    load_model()\n    job.add(1)\n\n\n"
        "def body():\n    st.title('Compare')\n    queue().submit('Compare', work, lambda: True)\n"
        "    threading.Thread(target=work, args=(st.session_state['job'],)).start()\n"
    ),
}

SUBMIT = "import streamlit as st\n\n\ndef start(queue):\n    queue.submit('x', {}, None)\n\n\n"
SHOW = "def show():\n    st.write('done')\n"

# What is planted, by the rule that has to find it: files, and a part of what it says of them.
PLANTED: list[tuple[Rule, str, dict[str, str], str]] = [
    (
        architecture.every_room_has_its_place,
        "a folder without a place",
        {"neuralviz/attic/__init__.py": ""},
        "neuralviz/attic",
    ),
    (
        architecture.every_room_has_its_place,
        "a module without a place",
        {"neuralviz/things.py": ""},
        "neuralviz/things",
    ),
    *(
        (architecture.imports_point_down, f"{low} imports {high}", {
            f"neuralviz/{low}.py" if low in ("errors", "paths") else f"neuralviz/{low}/one.py":
                f"from neuralviz.{high}.two import name\n",
            f"neuralviz/{high}/two.py": "",
        }, f"neuralviz.{high}.two")
        for low, high in [
            ("cli", "ui"), ("plots", "cli"), ("jobs", "plots"), ("evaluation", "jobs"),
            ("training", "evaluation"), ("maps", "training"), ("store", "maps"),
            ("reading", "store"), ("embedders", "reading"), ("layers", "embedders"),
            ("micro_tuning", "layers"), ("models", "micro_tuning"), ("errors", "models"),
            ("paths", "ui"),
        ]
    ),
    (
        architecture.imports_point_down,
        "inside a function",
        {"neuralviz/store/kept.py": "def late():\n    import neuralviz.maps.spread\n",
         "neuralviz/maps/spread.py": ""},
        "neuralviz/store/kept.py:2",
    ),
    (
        architecture.imports_point_down,
        "for type checkers",
        {"neuralviz/store/kept.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
                                    "    from neuralviz.maps import spread\n",
         "neuralviz/maps/spread.py": ""},
        "neuralviz/store/kept.py:4",
    ),
    (
        architecture.imports_point_down,
        "by a relative name",
        {"neuralviz/store/kept.py": "from ..maps.spread import name\n",
         "neuralviz/maps/spread.py": ""},
        "neuralviz.maps.spread",
    ),
    (
        architecture.imports_point_down,
        "by a string",
        {"neuralviz/store/kept.py": "from importlib import import_module\n\n"
                                    "import_module('neuralviz.maps.spread')\n",
         "neuralviz/maps/spread.py": ""},
        "neuralviz.maps.spread",
    ),
    (
        architecture.imports_point_down,
        "of the entry",
        {"neuralviz/store/kept.py": "from neuralviz import __main__\n"},
        "__main__",
    ),
    (
        architecture.the_package_is_imported_for_its_version_alone,
        "a name of the package",
        {"neuralviz/store/kept.py": "from neuralviz import load_model\n"},
        "neuralviz.load_model",
    ),
    (
        architecture.the_package_is_imported_for_its_version_alone,
        "the package",
        {"neuralviz/store/kept.py": "def late():\n    import neuralviz\n"},
        "neuralviz/store/kept.py:2",
    ),
    (
        architecture.no_circles_within_a_room,
        "two files",
        {"neuralviz/maps/one.py": "from neuralviz.maps.two import name\n",
         "neuralviz/maps/two.py": "import neuralviz.maps.one\n"},
        "neuralviz.maps.one, neuralviz.maps.two",
    ),
    (
        architecture.no_circles_within_a_room,
        "three files, relative names",
        {"neuralviz/maps/one.py": "from . import two\n",
         "neuralviz/maps/two.py": "from .three import x\n",
         "neuralviz/maps/three.py": "from neuralviz.maps import one\n"},
        "one, neuralviz.maps.three, neuralviz.maps.two",
    ),
    (
        architecture.no_circles_within_a_room,
        "a file and its folder",
        {"neuralviz/maps/__init__.py": "from neuralviz.maps.one import name\n",
         "neuralviz/maps/one.py": "from neuralviz.maps import name\n"},
        "neuralviz/maps/__init__.py",
    ),
    *(
        (
            architecture.only_the_app_imports_streamlit,
            f"in {path}",
            {path: "def late():\n    from streamlit import session_state\n"},
            path,
        )
        for path in ("neuralviz/cli/show.py", "neuralviz/plots/show.py", "setup_script.py")
    ),
    *(
        (
            architecture.pages_import_only_ui,
            f"{name} in {path}",
            {path: f"def late():\n    {name}\n"},
            path,
        )
        for path in ("pages/layers.py", "app.py")
        for name in ("import neuralviz.plots.theme", "from neuralviz.models import load_model",
                     "from neuralviz import errors", "from pages import compare")
    ),
    (
        architecture.pages_are_short,
        "a page that does it all",
        {"pages/layers.py": "\n" * 61},
        "61 lines",
    ),
    (
        architecture.files_are_short,
        "a long file",
        {"neuralviz/maps/one.py": "\n" * 401, "CONTRIBUTING.md": "neuralviz/maps/two.py is long."},
        "neuralviz/maps/one.py has 401 lines",
    ),
    (
        architecture.few_imports_are_inside_functions,
        "more than sixty of them",
        {"neuralviz/maps/one.py": "".join(f"def f{n}():\n    import torch\n" for n in range(32)),
         "pages/layers.py": "".join(f"class A:\n  f{n} = lambda: __import__('a')\n"
                                    f"  def f{n}(self):\n    from torch import nn, cuda\n"
                                    for n in range(30))},
        "63 imports",
    ),
    *(
        (
            architecture.only_plots_build_figures,
            text.splitlines()[-1],
            {"neuralviz/ui/draw.py": text},
            "neuralviz/ui/draw.py",
        )
        for text in (
            "import plotly.graph_objects as go\n\ngo.Figure()\n",
            "from plotly.graph_objects import Scatter\n\nScatter()\n",
            "from plotly import express\n\nexpress.bar()\n",
            "import matplotlib.pyplot\n\nmatplotlib.pyplot.plot()\n",
            "import altair as charts\n\ncharts.Chart()\n",
        )
    ),
    *(
        (
            architecture.the_core_draws_nothing,
            f"in {room}",
            {f"neuralviz/{room}/draw.py": "def late():\n    import plotly.express\n"},
            room,
        )
        for room in ("jobs", "evaluation", "training", "maps", "store", "reading", "embedders",
                     "layers", "micro_tuning", "models")
    ),
    *(
        (
            architecture.nothing_unsafe_is_written,
            f"{call} in {path}",
            {path: f"{call}\n"},
            path,
        )
        for path in ("neuralviz/models/files.py", "scripts/make.py", "tests/unit/test_x.py")
        for call in ("pickle.load(file)", "pickle.loads(value)", "joblib.load(path)",
                     "load(trust_remote_code=True)", "load(trust_remote_code=remote)",
                     "st.markdown(text, unsafe_allow_html=True)", "np.load(f, allow_pickle=True)",
                     "run(line, shell=True)", "torch.load(path)",
                     "torch.load(path, weights_only=False)")
    ),
    *(
        (architecture.nothing_unsafe_is_written, call, {"pages/run.py": f"{call}\n"}, call[:4])
        for call in ("eval(text)", "exec(text)")
    ),
    *(
        (
            architecture.workers_never_call_streamlit,
            title,
            {"neuralviz/ui/start.py": text, **more},
            "which calls st",
        )
        for title, text, more in [
            ("a function", SUBMIT.format("show") + SHOW, {}),
            ("a lambda", SUBMIT.format("lambda job: st.write(1)"), {}),
            ("a method", SUBMIT.format("queue.work") + "class Run:\n    def work(self):\n"
                                                       "        st.write(1)\n", {}),
            ("a partial", SUBMIT.format("functools.partial(show, 1)") + SHOW, {}),
            ("a function of a module", "import neuralviz.ui.shown\n" + SUBMIT.format(
                "neuralviz.ui.shown.show"), {"neuralviz/ui/shown.py": "import streamlit as st\n\n\n"
                                             + SHOW}),
            ("an imported function", "from neuralviz.ui.shown import show as work\n"
             + SUBMIT.format("work"), {"neuralviz/ui/shown.py": "import streamlit as st\n" + SHOW}),
            ("an imported function, handed on", "from neuralviz.ui.shown import show as work\n"
             + SUBMIT.format("work"),
             {"neuralviz/ui/shown.py": "from neuralviz.ui.deep import show\n",
              "neuralviz/ui/deep.py": "import streamlit as st\n" + SHOW}),
            ("what a function calls", SUBMIT.format("work") + "def work(job):\n    show()\n\n\n"
             + SHOW, {}),
            ("what a function hands down", SUBMIT.format("work") + "def work(job):\n"
             "    embed(on_event=show)\n\n\n" + SHOW, {}),
            ("a function within", "import streamlit as st\n\n\ndef start(queue):\n"
             "    def work(job):\n        st.write(1)\n\n    queue.submit('x', work, None)\n", {}),
            ("what is made for it", SUBMIT.format("make()") + "def make():\n"
             "    return lambda: st.write(1)\n", {}),
            ("a class", SUBMIT.format("Run()") + "class Run:\n    def __call__(self):\n"
             "        st.write(1)\n", {}),
            ("another name of Streamlit", "import streamlit\n\n\ndef start(queue):\n"
             "    queue.submit('x', show, None)\n\n\ndef show():\n    streamlit.write(1)\n", {}),
            ("a part of Streamlit", "from streamlit import session_state as st_\n\n\n"
             "def start(queue):\n    queue.submit('x', show, None)\n\n\n"
             "def show():\n    st_['a'] = 1\n", {}),
            ("a timer", "import threading\n\nimport streamlit as st\n\n"
             "threading.Timer(1, show)\n\n\n" + SHOW, {}),
            ("a thread", "from threading import Thread\n\nimport streamlit as st\n\n"
             "Thread(target=show)\n\n\n" + SHOW, {}),
            ("what the room of jobs is given", "import streamlit as st\n\n"
             "from neuralviz.jobs.run import start\n\nstart(events=show)\n\n\n" + SHOW, {}),
            ("a job of one's own", "import streamlit as st\n\nfrom neuralviz.jobs.run import Run\n"
             "\n\nclass Tuning(Run[int]):\n    def events(self):\n        st.write(1)\n", {}),
        ]
    ),
]  # fmt: skip


def build(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule: Rule) -> None:
    assert rule(ROOT) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_house_keeps_the_rule(rule: Rule, tmp_path: Path) -> None:
    assert rule(build(tmp_path, SOUND)) == []


@pytest.mark.parametrize(
    ("rule", "files", "told"),
    [pytest.param(rule, files, told, id=f"{rule.__name__}: {title}")
     for rule, title, files, told in PLANTED],
)  # fmt: skip
def test_a_planted_violation_is_found(rule: Rule, files, told: str, tmp_path: Path) -> None:
    found = rule(build(tmp_path, {**SOUND, **files}))
    assert len(found) == 1
    assert told in found[0]


def test_a_violation_of_every_rule_is_planted() -> None:
    assert {rule for rule, *_ in PLANTED} == set(RULES)


def test_a_long_file_may_be_named_with_its_reason(tmp_path: Path) -> None:
    files = {
        "neuralviz/maps/one.py": "\n" * 500,
        "CONTRIBUTING.md": "`neuralviz/maps/one.py` is a table.",
    }
    assert architecture.files_are_short(build(tmp_path, files)) == []


def test_a_worker_may_ask_whether_the_session_is_there(tmp_path: Path) -> None:
    files = {
        "neuralviz/ui/start.py": "from streamlit import runtime\n\n\ndef start(queue):\n"
        "    queue.submit('x', print, lambda: runtime.get_instance().is_active_session('a'))\n"
    }
    assert architecture.workers_never_call_streamlit(build(tmp_path, files)) == []


def test_the_projects_files_and_workers_are_found() -> None:
    names = {file.path for file in architecture.files_of(ROOT)}
    assert {"app.py", "pages/compare.py", "neuralviz/models/loading.py"} <= names
    assert {"load_bundled", "_set_aside"} <= architecture.worker_functions(ROOT)
