"""What the files of `deploy/` say, and whether a server is ready."""

from __future__ import annotations

import fnmatch
import json
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PORT = "8501"


def instructions(name: str) -> list[str]:
    """What follows an instruction of the Dockerfile, each time it is there, in one line each."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]


def image_command() -> list[str]:
    (command,) = instructions("CMD")
    return json.loads(command)


def image_settings() -> dict[str, str]:
    (settings,) = instructions("ENV")
    return dict(setting.split("=", 1) for setting in shlex.split(settings))


def in_image(path: str) -> bool:
    """Whether `.dockerignore` lets a file of the checkout into the image."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert not any(line.startswith("!") for line in patterns)  # else the order would matter
    parts = Path(path).parts
    folders = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return not any(
        fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(f"/{name}", f"*/{pattern[3:]}")
        if pattern.startswith("**/")
        else fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")
        for name in folders
        for pattern in patterns
    )


def tracked_files() -> list[str]:
    """The checkout's files, as far as git knows them."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def is_ready(port: int) -> bool:
    done = subprocess.run(
        [sys.executable, DEPLOY / "healthcheck.py", str(port)],
        env={"http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
