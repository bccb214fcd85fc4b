#!/usr/bin/env python3
"""Makes `.venv` ready for `make app` and `make test`; does nothing where it is ready.

    python3 scripts/set_up.py app     what the app needs
    python3 scripts/set_up.py test    also what tests and checks need
    python3 scripts/set_up.py server  as app, but a copy that needs no checkout: deploy/install.sh

NEURALVIZ_VENV names another folder than `.venv`.

Packages come from wherever pip is configured to look, in the versions of `constraints.txt`. Only
PyTorch is looked for in a second place: on Linux without an NVIDIA GPU the build without CUDA is
taken, from the configured sources if they have it, else from PyTorch's own index, which is asked
for this one package. Where neither has it, PyTorch is installed like every other package.

Standard library only. Syntax is that of Python 3.7, so that an older Python gets as far as the
sentence that says which one is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("NEURALVIZ_VENV") or ROOT / ".venv").absolute()
PYTHON = VENV / "bin" / "python"
READY = VENV / ".set_up"  # what it was set up for; written last
UNFINISHED = VENV / ".unfinished"  # there while something is being installed

OLDEST_PYTHON = (3, 11)
INSTALLED = {  # most of what tests need is never imported: Python compiles the rest as it does
    "app": ["-e", "."],
    "test": ["--no-compile", "-e", ".[test,dev]"],
    "server": ["."],
}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LOOK_UP_SECONDS = 60  # for a question to the configured sources, which may be slow mirrors
CPU_INDEX_SECONDS = 20  # for a question to PyTorch's index, whatever the network does
IMPATIENT = ["--timeout", "10", "--retries", "0"]
MEGABYTES = {"app": 440, "test": 600, "server": 440}  # without PyTorch; measured on Linux
TORCH_MEGABYTES = 190  # without CUDA


def main() -> int:
    """Set up, and return the exit code."""
    parser = argparse.ArgumentParser(description="Set up .venv for neuralviz.")
    parser.add_argument("kind", choices=INSTALLED, help="what to set up")
    parser.add_argument(
        "--torch", choices=["cpu", "cuda"], help="PyTorch without (cpu) or with CUDA"
    )
    wanted = parser.parse_args()
    if is_ready(wanted.kind) and not is_other_build(wanted.torch):
        return 0
    if not use_new_enough_python():
        say(
            "neuralviz needs Python 3.11 or newer. Install it, or set PYTHON to its path, for "
            "example:\n  export PYTHON=/opt/python3.12/bin/python3"
        )
        return 1
    begin = time.monotonic()
    try:
        set_up(wanted.kind, wanted.torch)
    except KeyboardInterrupt:
        say("Interrupted. Run the same command to set up again.")
        return 130
    except SetUpError as error:
        say(str(error))
        return 1
    say(f"Set up in {time.monotonic() - begin:.0f} seconds.")
    return 0


class SetUpError(Exception):
    """Something that the user has to mend; the message says what."""


def is_ready(kind: str) -> bool:
    """Whether `.venv` was set up for this, from these files, in this folder, and still runs."""
    if kind == "server":  # its copy of the code may be an older one
        return False
    try:
        ready_for = READY.read_text("utf-8").split()
    except OSError:
        return False
    return (
        not UNFINISHED.exists()
        and (fingerprint(kind) in ready_for or fingerprint("test") in ready_for)
        and python_runs("import importlib.util as u; assert u.find_spec('neuralviz')")
    )


def fingerprint(kind: str) -> str:
    """Changes when something has to be installed anew."""
    digest = hashlib.sha256(f"{kind}\n{ROOT}\n".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def use_new_enough_python() -> bool:
    """Go on in a Python that is new enough; False where none is found."""
    if sys.version_info >= OLDEST_PYTHON:
        return True
    for minor in (13, 12, 11, 14):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, *sys.argv])
    return False


def set_up(kind: str, torch: str | None) -> None:
    """Make the virtual environment and install into it."""
    say(f"Setting up neuralviz in {VENV}.")
    make_venv()
    READY.unlink(missing_ok=True)
    UNFINISHED.touch()
    version = torch_version()
    if is_other_build(torch):
        pip("uninstall", "--yes", "torch")  # any build of a version satisfies the constraint
    has_torch = is_installed("torch", version)
    options = None if has_torch or not wants_cpu_build(torch) else cpu_build_from(version)
    describe_download(kind, options, has_torch)
    if options is not None and not pip("install", "--no-deps", f"torch=={version}+cpu", *options):
        say("Could not download PyTorch without CUDA. Installing PyTorch like any other package.")
        say("PyPI's build has gigabytes of CUDA libraries. Press Ctrl-C to stop.")
    if not pip("install", "-c", "constraints.txt", *INSTALLED[kind]):
        UNFINISHED.unlink()  # pip leaves things as they were
        raise SetUpError(
            "Could not install the packages; pip's message above says why. Run the same command to "
            "try again.\nBehind a mirror, set PIP_INDEX_URL to its address. Without a network, "
            "set PIP_NO_INDEX=1\nand PIP_FIND_LINKS to a folder of wheels (see the README)."
        )
    READY.write_text(fingerprint(kind) + "\n", "utf-8")
    UNFINISHED.unlink()


def make_venv() -> None:
    """A virtual environment with pip; one that is of no use is replaced."""
    is_new_enough = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    if VENV.is_dir() and (UNFINISHED.exists() or not python_runs(is_new_enough)):
        reason = (
            "its set-up was interrupted"
            if UNFINISHED.exists()
            else "its Python is missing or too old"
        )
        say(f"Replacing {VENV.name}: {reason}.")
        if VENV.is_symlink():
            VENV.unlink()
        else:
            shutil.rmtree(VENV)
    if not VENV.is_dir():
        if not succeeds([sys.executable, "-c", "import ensurepip, venv"]):
            raise SetUpError(
                "Python's venv module is missing. On Debian and Ubuntu: "
                "sudo apt-get install python3-venv"
            )
        VENV.mkdir(parents=True)
        UNFINISHED.touch()
        run([sys.executable, "-m", "venv", str(VENV)])
    if not python_runs("import pip"):  # as where another tool made the environment
        run([str(PYTHON), "-m", "ensurepip"])
    if not python_runs("import pip"):
        raise SetUpError(f"{VENV} has no pip. Delete the folder and try again.")


def torch_version() -> str:
    """The exact version of PyTorch that is wanted."""
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    return re.search(r"^torch==([\w.]+)$", pins, re.MULTILINE)[1]  # type: ignore[index]


def wants_cpu_build(torch: str | None) -> bool:
    """Whether PyTorch without CUDA is wanted: on Linux, where nothing could use CUDA."""
    if platform.system() != "Linux":  # macOS has one build, without CUDA
        return False
    return torch == "cpu" or (torch is None and not has_nvidia_gpu())


def has_nvidia_gpu() -> bool:
    """Whether the driver lists a GPU."""
    if shutil.which("nvidia-smi"):
        return b"GPU " in output_of(["nvidia-smi", "-L"], seconds=10)
    gpus = Path("/proc/driver/nvidia/gpus")
    return gpus.is_dir() and any(gpus.iterdir())


def cpu_build_from(version: str) -> list[str] | None:
    """Options with which pip finds PyTorch without CUDA; None where it is not to be found."""
    from_cpu_index = ["--index-url", CPU_INDEX, *IMPATIENT]
    for options, seconds in (([], LOOK_UP_SECONDS), (from_cpu_index, CPU_INDEX_SECONDS)):
        answer = output_of([*PIP, "index", "versions", "torch", *options], seconds)
        available = re.findall(r"^Available versions: (.*)$", answer.decode(), re.MULTILINE)
        if f"{version}+cpu" in ", ".join(available).split(", "):
            return options
    say(
        "Could not find PyTorch without CUDA, either in pip's configured sources or at "
        f"{CPU_INDEX}."
    )
    return None


def describe_download(kind: str, options: list[str] | None, has_torch: bool) -> None:
    """Say what is downloaded."""
    size = MEGABYTES[kind]
    if options is not None:
        where = "PyTorch's own index" if options else "pip's configured sources"
        say(f"Installing PyTorch without CUDA from {where}. For CUDA, use TORCH=cuda.")
        total = round(size + TORCH_MEGABYTES, -1)
        say(f"Downloading up to {total} MB, including {TORCH_MEGABYTES} MB for PyTorch.")
    elif has_torch:
        say(f"PyTorch is already installed. Downloading up to {size} MB.")
    elif platform.system() == "Linux":
        say(f"Downloading up to {size} MB, plus PyTorch, which PyPI ships with gigabytes of CUDA.")
    else:
        say(f"Downloading up to {size} MB, plus PyTorch.")
    say("This takes about 2 minutes, plus the download.")


PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]


def pip(command: str, *arguments: str) -> bool:
    """Run pip in the virtual environment; on a terminal it shows its progress."""
    quiet = [] if sys.stdout.isatty() and not os.environ.get("CI") else ["--quiet"]
    return run([*PIP, command, *quiet, *arguments])


def run(command: list[str]) -> bool:
    """Run a command in the checkout; whether it succeeded."""
    environment = {**os.environ, "PIP_USER": "0"}  # a user's “user = true” fails in a venv
    return subprocess.run(command, cwd=str(ROOT), env=environment).returncode == 0


def output_of(command: list[str], seconds: float) -> bytes:
    """What a question is answered with; nothing when it fails or takes too long."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def python_runs(code: str) -> bool:
    """Whether the virtual environment's Python runs some code."""
    return succeeds([str(PYTHON), "-I", "-c", code])


def is_installed(package: str, version: str) -> bool:
    """Whether the virtual environment has a package in some build of this version."""
    return python_runs(
        "from importlib.metadata import version\n"
        f"assert version({package!r}).partition('+')[0] == {version!r}"
    )


def is_other_build(torch: str | None) -> bool:
    """Whether PyTorch is installed with CUDA where it was asked for without, or the other way."""
    return torch is not None and python_runs(
        "from importlib.metadata import version\n"
        f"assert version('torch').endswith('+cpu') != {torch == 'cpu'}"
    )


def succeeds(command: list[str]) -> bool:
    """Whether a command succeeds; what it says is not shown."""
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return done.returncode == 0


def say(sentence: str) -> None:
    """Print at once, ahead of what pip prints."""
    print(sentence, flush=True)


if __name__ == "__main__":
    sys.exit(main())
