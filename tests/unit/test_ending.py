"""Ctrl-C and SIGTERM while torch computes: the process ends by itself, and says nothing of C++."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.waiting import ROOT, heed_interrupts, run_command, run_python

TEXT = "The river rose overnight and covered the lower meadows."

IMPORTING = """
import signal
from neuralviz.cli import commands, main

def load_command(name):
    exec("signal.raise_signal(signal.SIGINT)")  # as in many packages

commands.load_command = load_command
main()
"""

WARM_UP = """
import time
from neuralviz.ui import pace

def load():
    print("begins", flush=True)
    time.sleep(1)
    print("ends", flush=True)
    raise ImportError("cannot import once Python has begun to end")

pace.AFTER = 0
pace.WARMING.call_soon(load)
time.sleep(0.3)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_that_tunes(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "neuralviz", "tune", TEXT, "--epochs", "1000"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    killing = threading.Timer(120, process.kill)
    killing.start()
    assert any(line.startswith("epoch") for line in iter(process.stdout.readline, ""))
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    killing.cancel()
    assert "terminate called" not in errors
    assert process.returncode == 130
    assert "Stopped after epoch" in errors


def test_ctrl_c_while_packages_are_imported(tmp_path: Path) -> None:
    (tmp_path / "importing.py").write_text(IMPORTING)
    settings = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    command = sys.executable, "-m", "importing", "methods"
    done = run_command(*command, **settings, preexec_fn=heed_interrupts)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


def test_a_warm_up_is_waited_for() -> None:
    done = run_python(WARM_UP)
    assert done.stdout.split() == ["begins", "ends"]
    assert "Traceback" not in done.stderr
