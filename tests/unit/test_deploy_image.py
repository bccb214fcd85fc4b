"""The image's steps, for real: its script makes a server that starts, is ready and ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from neuralviz import __version__
from tests.support.deploy import (
    PORT,
    ROOT,
    free_port,
    image_command,
    image_settings,
    in_image,
    instructions,
    is_ready,
    tracked_files,
)


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder that stands for the root folder; removed at once, as it takes gigabytes."""
    folder = Path(tempfile.mkdtemp(prefix="neuralviz-image-"))
    yield folder
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_the_image_can_be_made_and_serves(machine: Path):
    """The packages of this environment stand for those that pip would download."""
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "index", "versions", "hatchling"], capture_output=True).returncode:
        pytest.skip("needs a source of packages for pip")
    for name in filter(in_image, tracked_files()):
        (machine / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, machine / "src" / name)
    source = contents(machine / "src")

    # RUN
    script, target, data, _ = instructions("RUN")[0].split()
    (machine / "tmp").mkdir()
    subprocess.run([sys.executable, "-m", "venv", f"{machine}{target}"], check=True)
    (site_packages,) = Path(f"{machine}{target}").glob("lib/python*/site-packages")
    (site_packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    kept = {name: it for name, it in os.environ.items() if name.lower().endswith("_proxy")}
    kept |= {name: it for name, it in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    done = subprocess.run(
        [f"{machine}{script}", f"{machine}{target}", f"{machine}{data}", str(os.getuid())],
        env={**kept, "PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TORCH": "cpu",
             "XDG_CACHE_HOME": f"{machine}/cache", "TMPDIR": f"{machine}/tmp",
             "PIP_NO_COMPILE": "1"},  # the server compiles what it imports
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(f"\nneuralviz {__version__}\n")
    assert contents(machine / "src") == source
    assert {path.name for path in machine.iterdir()} == {"src", "tmp", "opt", "data"}
    assert not list((machine / "tmp").iterdir())
    assert not list((machine / "data").iterdir())
    subprocess.run(["chmod", "-R", "a-w", f"{machine}/src", f"{machine}/opt"], check=True)
    installed = contents(machine / "opt")

    # CMD
    settings = {
        name: it.replace(target, f"{machine}{target}").replace("$PATH", "/usr/bin:/bin")
        if name == "PATH"
        else it.replace(data, f"{machine}{data}")
        for name, it in image_settings().items()
    }
    port = free_port()
    command = [str(port) if part == PORT else part for part in image_command()]
    command[0] = f"{machine}{target}/bin/{command[0]}"
    log = machine / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=settings, cwd="/", stdout=out, stderr=subprocess.STDOUT
        )
    try:
        until = time.monotonic() + 120  # the start period of the Dockerfile
        while not is_ready(port):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.5)
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert "text/html" not in answer.headers["Content-Type"]  # Streamlit's own page
        with urlopen(f"http://127.0.0.1:{port}/_stcore/health") as answer:
            assert answer.read() == b"ok"
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0, log.read_text()
    finally:
        server.kill()
    assert contents(machine / "src") == source
    assert contents(machine / "opt") == installed
    assert "Traceback" not in log.read_text()
