"""What every test shares: no network, a home of its own, the bundled model loaded once."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports the hub's client
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["STREAMLIT_BROWSER_GATHER_USAGE_STATS"] = "false"
# Else each process compiles all the packages it imports, which are installed as mere source.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
if "PYTEST_XDIST_WORKER" in os.environ:  # several at work: threads would only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Numba hands its number of threads on to torch, in whose small steps they would do nothing
    # but wait: after the first map everything took thirty times as long.
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
# Less optimised, what maps need is compiled in some four fifths of the time.
os.environ.setdefault("NUMBA_OPT", "1")
_home = tempfile.TemporaryDirectory(prefix="neuralviz-tests-")
os.environ["NEURALVIZ_HOME"] = _home.name

import pytest  # noqa: E402
from xdist.remote import Producer  # noqa: E402
from xdist.scheduler import LoadScopeScheduling  # noqa: E402

import neuralviz  # noqa: E402  # before torch, which reads how threads wait

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel

WAITING = ("cluster", "browser")  # folders of tests that mostly wait, and begin first
# Numba compiles for these, a quarter of a minute once a process.
COMPILED = ("test_maps", "test_neighbours", "test_projecting", "test_readme")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: half of the time, tests wait for servers and browsers."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before what is not asked for is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a sweep, all cases but the first few are slow; files with many slow tests run first."""
    cases: Counter[str] = Counter()
    slow: Counter[Path] = Counter()
    for item in items:
        if sweep := item.get_closest_marker("sweep"):
            function = item.nodeid.partition("[")[0]
            cases[function] += 1
            if cases[function] > sweep.args[0]:
                item.add_marker(pytest.mark.slow)
        slow[item.path] += item.get_closest_marker("slow") is not None
    items.sort(key=lambda item: (item.path.parent.name not in WAITING, -slow[item.path]))


class GroupScheduling(LoadScopeScheduling):
    """One process runs a group: a file, all of Ray, of the browser, or what numba compiles for."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        if path.parent.name in WAITING:
            return path.parent.name
        return "numba" if path.stem in COMPILED else str(path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def bundled() -> LanguageModel:
    """The bundled model, on the CPU."""
    return neuralviz.load_model("bundled", device="cpu")


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data; the test is skipped where it is absent."""
    folder = os.environ.get("NEURALVIZ_DATA")
    if not folder:
        pytest.skip("needs real data: set NEURALVIZ_DATA to its folder")
    if not Path(folder).is_dir():
        pytest.skip(f"needs real data: NEURALVIZ_DATA is {folder}, which is no folder")
    return Path(folder)
