"""A server as users start it, and a browser without a network beyond this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Error, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong


def no_browser(reason: str) -> NoReturn:
    """Skip what needs a browser; where CI is set there has to be one."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium
        own = Path(chromium.executable_path)
        path = str(own) if own.exists() else shutil.which("chromium")
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        try:
            browser = chromium.launch(executable_path=path, args=flags)
        except Error as error:
            no_browser(f"no Chromium; `playwright install chromium` brings it ({error.message})")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """Start a script on a free port, from a folder that is not its own; gives its address."""
    servers = []

    def start(script: Path) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        folder = tmp_path_factory.mktemp("served")
        command = [sys.executable, "-m", "streamlit", "run", str(script)]
        servers.append(
            subprocess.Popen(
                [*command, "--server.headless", "true", "--server.port", str(port)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "NEURALVIZ_HOME": str(folder)},
                stdout=(folder / "log").open("w"),
                stderr=subprocess.STDOUT,
            )
        )
        address = f"http://localhost:{port}"
        for _ in range(300):
            try:
                with urlopen(f"{address}/_stcore/health", timeout=1):
                    return address
            except (URLError, OSError):
                time.sleep(0.1)
        pytest.fail((folder / "log").read_text())

    yield start
    for server in servers:
        server.terminate()
        server.wait(10)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page; the test fails on an error in it and on requests beyond this machine."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    page = context.new_page()
    errors: list[str] = []
    strangers: list[str] = []

    def note_strangers(url: str) -> None:
        if not url.startswith(("http://localhost:", "blob:", "data:")):
            strangers.append(url)

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: note_strangers(request.url))
    page.set_default_timeout(60_000)
    yield page
    context.close()
    assert errors == []
    assert strangers == []
