"""A server as users start it, and a browser without a network beyond this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright

from tests.support.app import APP, launch_chromium, served

expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong
HERE = Path(__file__).parent
LOGS = pytest.StashKey[list[Path]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waited in vain is tried once more, on a new page: browsers do hang on busy machines."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="TimeoutError"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed says what the page said, and the next one finds nothing of it."""
    report = yield
    page = getattr(item, "funcargs", {}).get("watched")
    if call.when == "call" and report.failed and page:
        try:
            said = f"{page.url}\n{page.locator('body').inner_text(timeout=5_000)[:2000]}"
            page.goto("about:blank")
        except Error as error:
            said = error.message
        report.sections.append(("what the page said", said))
        for log in item.config.stash.get(LOGS, []):
            report.sections.append((f"log of {log.parent.name}", log.read_text()[-1000:]))
    return report


def no_browser(reason: str) -> NoReturn:
    """Skip what needs a browser; where CI is set there has to be one."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = launch_chromium(playwright)
        except Error as error:
            no_browser(f"no Chromium; `playwright install chromium` brings it ({error.message})")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Callable[..., str]]:
    """Serve a script, with its data in a folder, until the tests are over; gives its address."""
    logs = pytestconfig.stash[LOGS] = []

    def serve(script: Path, folder: Path | None = None) -> str:
        folder = folder or tmp_path_factory.mktemp("served")
        logs.append(folder / "log")
        return servers.enter_context(served(script, folder))

    with ExitStack() as servers:
        yield serve


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """One for all tests: the app's scripts are loaded and compiled once."""
    context = browser.new_context(accept_downloads=True, reduced_motion="reduce")
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    tab.wait_for_function = partial(tab.wait_for_function, polling=100)  # else at each frame
    yield tab
    context.close()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the app keeps its data."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def address(serve: Callable[..., str], tab: Page, home: Path) -> str:
    """The app, once the bundled model is loaded: no test waits for that, and one server does."""
    address = serve(APP, home)
    tab.goto(f"{address}/how_it_works")
    tab.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=120_000)
    return address


@pytest.fixture
def watched(tab: Page) -> Iterator[Page]:
    """A page as it was left; the test fails on an error in it and on requests beyond localhost."""
    errors: list[str] = []
    strangers: list[str] = []

    def note_error(error: Error) -> None:
        errors.append(str(error))

    def note_stranger(request: Request) -> None:
        if not request.url.startswith(("http://localhost:", "blob:", "data:")):
            strangers.append(request.url)

    tab.mouse.move(0, 0)
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.emulate_media(color_scheme="light")
    tab.on("pageerror", note_error)
    tab.on("request", note_stranger)
    yield tab
    tab.remove_listener("pageerror", note_error)
    tab.remove_listener("request", note_stranger)
    assert errors == []
    assert strangers == []


@pytest.fixture
def page(watched: Page) -> Iterator[Page]:
    """A page on which nothing was done before."""
    yield watched
    leave(watched)


def leave(page: Page) -> None:
    """Nothing of what was done on a page is known to the next one."""
    page.context.clear_cookies()
    page.evaluate("() => { try { localStorage.clear(); sessionStorage.clear() } catch {} }")
    page.goto("about:blank")
