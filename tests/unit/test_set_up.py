"""The set-up script: where PyTorch is looked for, and what becomes of an environment half made."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.waiting import heed_interrupts, wait_until

ROOT = Path(__file__).parents[2]
VERSION = re.search(r"^torch==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"

# Stands for the environment's Python: notes what pip is asked to do, and answers as it is told.
PYTHON = """#!/bin/sh
case "$*" in
  *"version('torch')"*) [ -n "$TORCH_IS_INSTALLED" ]; exit ;;
  "-I -c "*) exit 0 ;;
esac
shift 3  # -m pip --disable-pip-version-check
echo "$*" >> "$PIP_LOG"
case "$*" in
  "index "*--index-url*) [ "$CPU_INDEX_HAS" = hangs ] && exec sleep 60
                         echo "Available versions: $CPU_INDEX_HAS" ;;
  "index "*) echo "Available versions: $CONFIGURED_HAS"
             echo "  INSTALLED: 1.0.0+cpu" ;;
  *--no-deps*) exit ${TORCH_FAILS:-0} ;;
  *) exit ${PIP_FAILS:-0} ;;
esac
"""
# Stands for Python's own module of that name, which takes seconds.
VENV = f"""
import sys
from pathlib import Path
if __name__ == "__main__":
    python = Path(sys.argv[1], "bin", "python")
    python.parent.mkdir()
    python.write_text({PYTHON!r})
    python.chmod(0o755)
"""
NVIDIA_SMI = "#!/bin/sh\necho '{}'\n"


class Checkout:
    """A folder with the set-up script, and programs of its own for it to call."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.venv = folder / "checkout", folder / "checkout" / ".venv"
        self.programs, self.log = folder / "bin", folder / "pip.log"
        modules = folder / "modules"
        for path in (self.folder / "scripts", self.programs, modules, self.venv / "bin"):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "set_up.py", self.folder / "scripts")
        for name in ("pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.folder)
        self.add_program(self.venv / "bin" / "python", PYTHON)
        (modules / "venv.py").write_text(VENV)
        self.has_gpu(False)
        self.environment = {
            "PYTHONPATH": str(modules),
            "PIP_LOG": str(self.log),
            "CONFIGURED_HAS": f"9.9.9, {VERSION}",
        }

    @staticmethod
    def add_program(path: Path, content: str) -> None:
        path.write_text(content)
        path.chmod(0o755)

    def has_gpu(self, has: bool) -> None:
        answer = "GPU 0: NVIDIA H100 (UUID: GPU-1)" if has else "No devices were found"
        self.add_program(self.programs / "nvidia-smi", NVIDIA_SMI.format(answer))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, self.folder / "scripts" / "set_up.py", *arguments],
            env={"PATH": f"{self.programs}:/usr/bin:/bin", **self.environment, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=heed_interrupts,
        )  # fmt: skip

    def set_up(self, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
        """Exit code, what is printed, and what pip was asked to do."""
        self.log.write_text("")
        process = self.start(*arguments, **environment)
        printed, _ = process.communicate(timeout=60)
        return process.returncode, printed, self.log.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def loaded_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "scripts" / "set_up.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOOK, OTHERS = "index versions torch", "install --quiet -c constraints.txt -e ."
BUILD = f"install --quiet --no-deps torch=={VERSION}+cpu"
OWN_INDEX = f"--index-url {CPU_INDEX} --timeout 10 --retries 0"


@pytest.mark.parametrize(
    ("environment", "asked", "said"),
    [
        (
            {"CONFIGURED_HAS": f"{VERSION}+cpu, {VERSION}"},
            [LOOK, BUILD, OTHERS],
            "Installing PyTorch without CUDA from pip's configured sources",
        ),
        (
            {"CPU_INDEX_HAS": f"9.9.9+cpu, {VERSION}+cpu"},
            [LOOK, f"{LOOK} {OWN_INDEX}", f"{BUILD} {OWN_INDEX}", OTHERS],
            "from PyTorch's own index",
        ),
        (
            {"CPU_INDEX_HAS": f"{VERSION}+cpu", "TORCH_FAILS": "1"},
            [LOOK, f"{LOOK} {OWN_INDEX}", f"{BUILD} {OWN_INDEX}", OTHERS],
            "Could not download PyTorch without CUDA. Installing PyTorch like any other package",
        ),
        ({"TORCH_IS_INSTALLED": "1"}, [OTHERS], "PyTorch is already installed"),
    ],
    ids=["configured sources", "its own index", "a download breaks off", "installed"],
)
def test_where_pytorch_without_cuda_comes_from(environment, asked, said, checkout):
    code, printed, commands = checkout.set_up("app", **environment)
    assert (code, commands) == (0, asked)
    assert said in printed


def test_an_index_that_hangs(monkeypatch, checkout: Checkout) -> None:
    script = loaded_script()
    monkeypatch.setattr(script, "CPU_INDEX_SECONDS", 0.5)
    monkeypatch.setattr(script, "PIP", [str(checkout.venv / "bin" / "python"), "-m", "pip", "-"])
    for name, value in {**checkout.environment, "CPU_INDEX_HAS": "hangs"}.items():
        monkeypatch.setenv(name, value)
    begin = time.monotonic()
    assert script.cpu_build_from(VERSION) is None
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("gpu", "arguments", "looks"),
    [
        (False, (), True),
        (True, (), False),
        (True, ("--torch", "cpu"), True),
        (False, ("--torch", "cuda"), False),
    ],
)
def test_a_gpu_decides_unless_told_otherwise(gpu, arguments, looks, checkout):
    checkout.has_gpu(gpu)
    _, _, asked = checkout.set_up("app", *arguments)
    assert ("index versions torch" in asked) == looks


def test_nothing_is_done_twice(checkout: Checkout) -> None:
    code, _, asked = checkout.set_up("test")
    assert code == 0
    assert asked[-1] == "install --quiet -c constraints.txt --no-compile -e .[test,dev]"
    assert checkout.set_up("test") == (0, "", [])
    assert checkout.set_up("app") == (0, "", [])  # the tests need all that the app does
    constraints = checkout.folder / "constraints.txt"
    constraints.write_text(constraints.read_text() + "# another version\n")
    assert checkout.set_up("app")[2]


def test_packages_that_cannot_be_had(checkout: Checkout) -> None:
    code, printed, _ = checkout.set_up("app", PIP_FAILS="1")
    assert code == 1
    assert "PIP_INDEX_URL" in printed
    assert "PIP_NO_INDEX" in printed
    assert "Traceback" not in printed
    before = (checkout.venv / "bin" / "python").stat()
    assert checkout.set_up("app")[0] == 0  # goes on with the same environment
    assert (checkout.venv / "bin" / "python").stat() == before


def test_an_interrupted_set_up_starts_anew(checkout: Checkout) -> None:
    process = checkout.start("app", CPU_INDEX_HAS="hangs")
    wait_until(lambda: checkout.log.exists() and CPU_INDEX in checkout.log.read_text(), 30)
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in printed
    (checkout.venv / "half").touch()
    code, printed, _ = checkout.set_up("app")
    assert code == 0
    assert "Replacing .venv: its set-up was interrupted." in printed
    assert not (checkout.venv / "half").exists()


@pytest.mark.parametrize("wrong", ["gone", "too old"])
def test_an_environment_of_no_use_is_made_anew(wrong: str, checkout: Checkout) -> None:
    python = checkout.venv / "bin" / "python"
    python.unlink()
    if wrong == "gone":
        python.symlink_to(checkout.folder / "no-python")
    else:
        checkout.add_program(python, "#!/bin/sh\nexit 1\n")
    code, printed, asked = checkout.set_up("app")
    assert code == 0
    assert "Replacing .venv: its Python is missing or too old." in printed
    assert asked


def test_a_python_that_is_too_old(checkout: Checkout, monkeypatch) -> None:
    script = loaded_script()
    monkeypatch.setattr(script, "OLDEST_PYTHON", (99, 0))
    monkeypatch.setenv("PATH", str(checkout.programs))
    started = []
    monkeypatch.setattr(script.os, "execv", lambda program, _: started.append(program))
    assert not script.use_new_enough_python()
    assert started == []
    checkout.add_program(checkout.programs / "python3.12", "#!/bin/sh\n")
    assert not script.use_new_enough_python()
    assert started == [str(checkout.programs / "python3.12")]


def test_a_python_without_venv(checkout: Checkout) -> None:
    """As of Debian, where ensurepip is a package of its own."""
    shutil.rmtree(checkout.venv)
    blocker = checkout.folder / "blocker"
    blocker.mkdir()
    (blocker / "ensurepip.py").write_text("raise ImportError\n")
    code, printed, _ = checkout.set_up("app", PYTHONPATH=str(blocker))
    assert code == 1
    assert "sudo apt-get install python3-venv" in printed
    assert not checkout.venv.exists()


def test_a_server_gets_a_copy_in_another_folder(checkout: Checkout) -> None:
    venv = checkout.folder.parent / "opt" / "server"
    shutil.rmtree(checkout.venv)
    for _ in range(2):  # each time: the copy may be an older one
        code, printed, asked = checkout.set_up(
            "server", NEURALVIZ_VENV=str(venv), CONFIGURED_HAS=f"{VERSION}+cpu"
        )
        assert (code, asked[1:]) == (0, [BUILD, "install --quiet -c constraints.txt ."])
        assert f"Setting up neuralviz in {venv}." in printed
    assert not checkout.venv.exists()
