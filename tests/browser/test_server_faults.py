"""What a page says when the server, the disk or the connection fails; nothing finished is lost."""

from __future__ import annotations

import os
import re
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from neuralviz.errors import WorkerEndedError
from neuralviz.jobs.returning import REASONS
from tests.support.app import APP, Server, settled
from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STEP = re.compile(r"[Ee]poch [\d,]+ of 1,000")
DONE = re.compile(r"^(Done in|Result of) ")


@contextmanager
def started(folder: Path, *options: str, **settings: str) -> Iterator[Server]:
    server = Server(APP, folder, {"NEURALVIZ_WORKERS": "1", **settings}, options)
    try:
        server.start()
        yield server
    finally:
        server.end()


def tune(page: Page, address: str, epochs: int, text: str = "The baker waits.") -> None:
    page.goto(f"{address}/?epochs={epochs}")
    page.get_by_role("radio", name="Paste").click()
    box = page.get_by_role("textbox", name="Your texts")
    box.fill(text)
    box.press("Control+Enter")  # else the click may come while the page is drawn with the text
    settled(page)
    page.get_by_role("button", name="Tune", exact=True).click()


def stop(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"^Stopped"))).to_be_visible()


def steps(page: Page) -> int:
    found = STEP.search(page.get_by_text(STEP).inner_text())
    assert found is not None
    return int(found[0].split()[1].replace(",", ""))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="session is still there"),
        pytest.param(("--server.disconnectedSessionTTL=1",), id="session is gone"),
    ],
)
def test_a_page_whose_connection_was_cut_goes_on_with_its_run(
    browser: Browser, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """For a minute, and for so long that the server has forgotten the session."""
    with (
        started(tmp_path, *options) as server,
        Proxy(server.address) as proxy,
        browser.new_context() as context,
    ):
        page = context.new_page()
        tune(page, proxy.address, 1000)
        expect(page.get_by_text(STEP)).to_be_visible()
        before = steps(page)
        proxy.cut()
        page.wait_for_timeout(5_000)
        proxy.mend()
        page.wait_for_function(
            f"Number(document.body.innerText.match(/poch ([0-9]+) of 1,000/)?.[1]) > {before + 20}",
            timeout=60_000,
        )
        expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
        stop(page)


def test_a_run_whose_worker_is_killed_says_so_and_is_run_again(
    browser: Browser, tmp_path: Path
) -> None:
    with started(tmp_path) as server, browser.new_context() as context:
        page = context.new_page()
        tune(page, server.address, 1000)
        expect(page.get_by_text(STEP)).to_be_visible()
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        expect(page.get_by_text(str(WorkerEndedError()))).to_be_visible()
        page.reload()
        expect(page.get_by_text(REASONS["cut off"])).to_be_visible()
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text(STEP)).to_be_visible()
        assert server.workers() != [worker]
        stop(page)


def test_a_server_without_workers_does_the_work_itself(browser: Browser, tmp_path: Path) -> None:
    with started(tmp_path, NEURALVIZ_WORKERS="0") as server, browser.new_context() as context:
        page = context.new_page()
        tune(page, server.address, 3)
        expect(page.get_by_text(DONE)).to_be_visible()
        assert server.workers() == []
        for path in ("livez", "readyz"):
            assert page.request.get(f"{server.address}/{path}").text() == "ok"


def test_without_a_folder_to_write_to_runs_are_as_good(browser: Browser, tmp_path: Path) -> None:
    with (
        started(tmp_path, NEURALVIZ_HOME="/proc/neuralviz") as server,
        browser.new_context() as context,
    ):
        page = context.new_page()
        tune(page, server.address, 10)
        expect(page.get_by_text(DONE)).to_be_visible()
        for name in ("compare", "corpus_map", "training", "evaluation", "frozen_features"):
            page.goto(f"{server.address}/{name}")
            page.get_by_role("heading").first.wait_for()
            expect(page.locator("[data-testid=stException]")).to_have_count(0)
        page.goto(f"{server.address}/corpus_map")
        expect(page.get_by_text(re.compile("Could not|cannot be"))).to_be_visible()


def test_two_servers_on_one_folder_know_of_each_others_runs(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        started(tmp_path) as first,
        started(tmp_path) as second,
        browser.new_context() as context,
    ):
        page = context.new_page()
        tune(page, first.address, 1000)
        expect(page.get_by_text(STEP)).to_be_visible()
        expect(page).to_have_url(re.compile("run="))
        there = page.url.replace(first.address, second.address)
        other = context.new_page()
        other.goto(there)
        expect(other.get_by_text(REASONS["elsewhere"])).to_be_visible()
        stop(page)
        other.goto(there)
        expect(other.get_by_text(re.compile(r"^Stopped"))).to_be_visible()


def test_a_server_that_is_told_to_end_lets_running_work_finish(
    browser: Browser, tmp_path: Path
) -> None:
    with started(tmp_path) as server, browser.new_context() as context:
        page = context.new_page()
        tune(page, server.address, 100)
        expect(page.get_by_text(re.compile(r"[Ee]poch [\d,]+ of 100"))).to_be_visible()
        link = page.url
        assert server.end() == 0
        server.start()
        page.goto(link)
        expect(page.get_by_text(DONE)).to_be_visible()
