"""The files of `deploy/` agree with each other, and its scripts do what they say."""

from __future__ import annotations

import fnmatch
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from neuralviz import __version__
from tests.support.waiting import free_port, run_command, wait_until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PORT = "8501"
HEALTHCHECK = (DEPLOY / "healthcheck.py").read_text()
SERVICES = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


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
    env = {"http_proxy": "http://127.0.0.1:9"}
    done = run_command(sys.executable, DEPLOY / "healthcheck.py", port, env=env)
    assert done.stderr == ""
    return done.returncode == 0


def unit() -> dict[str, str]:
    """Settings of the unit's service by name."""
    service = (DEPLOY / "neuralviz.service").read_text().split("[Service]")[1].split("[Install]")[0]
    return dict(re.findall(r"^(\w+)=(.*)$", service, re.MULTILINE))


def test_one_port():
    (health,) = instructions("HEALTHCHECK")
    python, script, port = json.loads(health.partition("CMD ")[2])
    assert (python, port) == ("python", PORT)
    assert (ROOT / Path(script).relative_to("/src")).is_file()
    assert f'["{PORT}"]' in HEALTHCHECK
    assert instructions("EXPOSE") == [PORT]
    assert SERVICES["app"]["ports"] == [f"${{LISTEN:-127.0.0.1}}:{PORT}:{PORT}"]
    assert space()["app_port"] == int(PORT)
    for command in (image_command(), unit()["ExecStart"].split()):
        assert command[command.index("--port") + 1] == PORT


def test_the_unit_starts_and_ends_the_server_as_the_image_does():
    image, settings = image_command(), unit()
    image[0] = "/opt/neuralviz/bin/python"
    image[image.index("--host") + 1] = "127.0.0.1"
    assert settings["ExecStart"].split() == image
    text = (DEPLOY / "neuralviz.service").read_text()
    assert f"NEURALVIZ_HOME=%S/{settings['StateDirectory']}" in text
    assert f"XDG_CACHE_HOME=%C/{settings['CacheDirectory']}" in text
    ends = [settings[name] for name in ("TimeoutStopSec", "KillSignal", "KillMode")]
    assert ends == ["30", "SIGTERM", "mixed"]  # else its workers would be told as well
    assert "MemoryDenyWriteExecute" not in settings  # numba compiles as it runs


def test_compose_starts_one_server_or_replicas_that_share_a_folder_behind_a_proxy():
    (data,), proxy = instructions("VOLUME"), (DEPLOY / "Caddyfile").read_text()
    profiles = {name: it.get("profiles") for name, it in SERVICES.items()}
    assert profiles.pop("app") is None
    assert list(profiles.values()) == [["replicas"]] * len(profiles)
    replicas = {name: it for name, it in SERVICES.items() if it["image"] == "neuralviz"}
    assert len(replicas) == 2
    for service in replicas.values():
        assert service["volumes"] == [f"data:{data}"]
        assert service["read_only"] and service["stop_grace_period"] == "30s"
        assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).is_file()
    (upstreams,) = re.findall(r"^\treverse_proxy (.*) \{$", proxy, re.MULTILINE)
    assert upstreams.split() == [f"{name}:{PORT}" for name in replicas]
    assert "lb_policy cookie " in proxy  # a browser stays with one server
    assert re.findall(r"health_uri (.*)", proxy) == ["/readyz"]
    assert '"GET", "/readyz"' in HEALTHCHECK
    assert (DEPLOY / SERVICES["proxy"]["volumes"][0].split(":")[0]).is_file()


def test_the_image_has_what_the_wheel_is_made_from_and_little_else():
    tracked = tracked_files()
    inside = {name for name in tracked if in_image(name)}
    folders = ("neuralviz/", "pages/", "sample_data/", "licences/", "scripts/set_up.py", "deploy/")
    files = "app.py README.md LICENSE constraints.txt pyproject.toml hatch_build.py".split()
    assert {name for name in tracked if name.startswith(folders) or name in files} <= inside
    assert ".streamlit/config.toml" in inside
    kept_out = (
        ".git/config .venv/bin/python tests/conftest.py docs/tour.md .streamlit/secrets.toml .env "
        "neuralviz/ui/__pycache__/page.cpython-311.pyc deploy/server.env"
    )
    assert not [name for name in kept_out.split() if in_image(name)]


def test_the_documentation_names_every_file():
    text = (ROOT / "docs" / "server.md").read_text("utf-8")
    for path in DEPLOY.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert f"deploy/{path.relative_to(DEPLOY)}" in text, path
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target


def space(readme: Path = DEPLOY / "huggingface" / "README.md") -> dict[str, object]:
    """The settings of the Space, which stand at the beginning of its README."""
    beginning, settings, _ = readme.read_text("utf-8").split("---\n", 2)
    assert beginning == ""
    return yaml.safe_load(settings)


def test_the_space_runs_the_image_in_demo_mode(tmp_path: Path):
    folder = tmp_path / "space"
    command = [DEPLOY / "huggingface" / "gather.sh", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert space()["sdk"] == space(folder / "README.md")["sdk"] == "docker"
    assert len(space()["short_description"]) <= 60  # what the Hub allows
    image = (folder / "Dockerfile").read_text()
    assert image.splitlines()[-1].startswith("ENV NEURALVIZ_DEMO=1 ")
    assert (folder / "deploy" / "install.sh").stat().st_mode & 0o111
    assert (folder / ".dockerignore").is_file()
    assert not (folder / "tests").exists()
    again = subprocess.run(command, capture_output=True, text=True)
    assert (again.returncode, "is not empty" in again.stderr) == (2, True)


# Stands for Python: notes how the set-up is called, and makes what the script looks for.
PYTHON = """#!/bin/sh
echo "$@" > "$LOG"
env >> "$LOG"
mkdir -p "$NEURALVIZ_VENV/bin"
printf '#!/bin/sh\\necho "neuralviz 9.9 $*"\\n' > "$NEURALVIZ_VENV/bin/neuralviz"
chmod +x "$NEURALVIZ_VENV/bin/neuralviz"
"""


def install(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], **{name: str(it) for name, it in settings.items()}}
    return run_command(DEPLOY / "install.sh", *arguments, env=env)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    program = tmp_path / "python"
    program.write_text(PYTHON)
    program.chmod(0o755)
    return program


def test_the_script_sets_up_and_makes_the_data_folder(python: Path, tmp_path: Path):
    target, data, log = tmp_path / "opt" / "neuralviz", tmp_path / "data", tmp_path / "log"
    done = install(target, data, os.getuid(), PYTHON=python, LOG=log, TORCH="cpu", PYTHONPATH="x")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "neuralviz 9.9 --version\n"
    called, *settings = log.read_text().splitlines()
    assert called == f"{ROOT}/scripts/set_up.py server --torch cpu"
    assert {f"NEURALVIZ_VENV={target}", "PIP_NO_CACHE_DIR=1", "CI=1"} <= set(settings)
    assert "PYTHONPATH=x" not in settings
    assert data.stat().st_mode & 0o777 == 0o700
    assert data.stat().st_uid == os.getuid()
    assert install(tmp_path / "other", PYTHON=python, LOG=log).returncode == 0
    assert log.read_text().splitlines()[0].endswith("set_up.py server")  # PyTorch as it is offered


def test_the_script_replaces_nobodys_files(python: Path, tmp_path: Path):
    target = tmp_path / "home"
    target.mkdir()
    (target / "thesis.txt").touch()
    done = install(target, PYTHON=python, LOG=tmp_path / "log")
    assert (done.returncode, "has other files in it" in done.stderr) == (2, True)
    assert [path.name for path in target.iterdir()] == ["thesis.txt"]
    (target / "pyvenv.cfg").touch()  # a virtual environment, to be brought up to date
    assert install(target, PYTHON=python, LOG=tmp_path / "log").returncode == 0


@pytest.mark.parametrize(("status", "ready"), [(200, True), (503, False), (404, False)])
def test_a_server_is_ready_when_it_says_so(status: int, ready: bool):
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert is_ready(server.server_port) == ready
        server.shutdown()
    assert asked == ["/readyz"]
    assert not is_ready(free_port())  # nobody answers


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file."""
    stats = {str(path): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


@pytest.fixture
def machine() -> Iterator[Path]:
    """It stands for the root folder; removed at once, as it takes gigabytes."""
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
    make_environment = [sys.executable, "-m", "venv", "--without-pip", f"{machine}{target}"]
    subprocess.run(make_environment, check=True)
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
    settings["PYTHONDONTWRITEBYTECODE"] = "1"  # root could
    port = free_port()
    command = [str(port) if part == PORT else part for part in image_command()]
    command[0] = f"{machine}{target}/bin/{command[0]}"
    log = machine / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=settings, cwd="/", stdout=out, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: is_ready(port) or server.poll() is not None)
        assert server.poll() is None, log.read_text()
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
