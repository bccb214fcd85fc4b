"""Runs outlive the page; when a server, a disk or a connection fails, the page says so."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from neuralviz.errors import WorkerEndedError
from neuralviz.jobs.queue import WHAT_HAPPENED
from tests.browser.conftest import leave
from tests.support.app import APP, Server, settled, tune

pytestmark = pytest.mark.browser

STEP = re.compile(r"[Ee]poch [1-9][\d,]* of (1,000|60)")  # the address names the run by then
DONE = re.compile(r"^(Done in|Result of) ")
TEXT = "The baker waits for the ship."


@contextmanager
def started(folder: Path, *options: str, **settings: str) -> Iterator[Server]:
    server = Server(APP, folder, {"NEURALVIZ_WORKERS": "1", **settings}, options)
    try:
        server.start()
        yield server
    finally:
        server.end()


class Connection:
    """The connection of a page that is not open yet to its server: it can be cut and mended."""

    def __init__(self, page: Page) -> None:
        self.is_cut = False
        self._ends: list[WebSocketRoute] = []
        page.route_web_socket("**/_stcore/stream", self._pass_on)

    def _pass_on(self, browser: WebSocketRoute) -> None:
        if self.is_cut:
            browser.close()
        else:
            self._ends += [browser, browser.connect_to_server()]

    def cut(self) -> None:
        self.is_cut = True
        for end in self._ends:
            end.close()
        self._ends.clear()

    def mend(self) -> None:
        self.is_cut = False


@contextmanager
def patient_page(browser: Browser, **settings: Any) -> Iterator[Page]:
    """A page of a browser of its own that waits for as long as the one that tests share."""
    with browser.new_context(reduced_motion="reduce", **settings) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        yield page


def tune_at(page: Page, address: str, epochs: int) -> None:
    """Tune on a text of one's own until an epoch is over; the first click after typing counts."""
    page.goto(f"{address}/?epochs={epochs}")
    tune(page, TEXT)
    expect(page.get_by_text(STEP).first).to_be_visible()


def stop(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"^Stopped: "))).to_be_visible()
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def steps(page: Page) -> int:
    found = STEP.search(page.get_by_text(STEP).first.inner_text())
    return int(found[0].split()[1].replace(",", ""))


def test_a_run_is_started_once_outlives_its_page_and_is_started_again(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/?epochs=1000")
    tune(page, TEXT, clicks=2)
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    expect(page.get_by_text(STEP).first).to_be_visible()
    expect(page.get_by_role("heading", name="Run 2")).to_have_count(0)
    expect(page).to_have_url(re.compile("run="))
    link, before = page.url, steps(page)
    leave(page)
    page.goto(link)
    expect(page.get_by_text(STEP).first).to_be_visible()
    assert steps(page) >= before
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TEXT)
    stop(page)
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    page.get_by_role("link", name="Layer dynamics", exact=True).click()
    # a text is not kept waiting by the run
    expect(page.locator(".st-key-slide-layers-lens .main-svg").first).to_be_visible()
    page.get_by_role("link", name="Micro-tuning", exact=True).click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    stop(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Tune", exact=True).click()
    expect(page.get_by_text(STEP).first).to_be_in_viewport()  # though it is below the settings
    stop(page)


@pytest.mark.slow
def test_a_reload_and_back_bring_the_runs_back_with_their_texts(page: Page, address: str) -> None:
    page.goto(f"{address}/?epochs=2")
    field, links = page.get_by_role("textbox", name="Your texts"), []
    for number, text in enumerate((TEXT, "The harbour is quiet."), 1):
        tune(page, text)
        expect(page.get_by_role("heading", name=f"Run {number}")).to_be_visible()
        expect(page.get_by_text(re.compile("^Done in"))).to_be_visible()
        links.append(page.url)
    assert links[0] != links[1]
    page.go_back()
    expect(page).to_have_url(links[0])
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    expect(field).to_have_value(TEXT)
    page.reload()
    expect(page.get_by_text(re.compile(r"Result of .* UTC"))).to_be_visible()
    expect(field).to_have_value(TEXT)


@pytest.mark.slow
def test_a_cut_connection_a_killed_worker_a_crash_and_an_end_in_good_order(
    browser: Browser, tmp_path: Path
) -> None:
    """Connections are cut until the server has forgotten the session."""
    settings = {"NEURALVIZ_GRACE_SECONDS": "50"}
    with (
        started(tmp_path, "--server.disconnectedSessionTTL=1", **settings) as server,
        patient_page(browser) as page,
    ):
        connection = Connection(page)
        tune_at(page, server.address, 1000)
        before = steps(page)
        connection.cut()
        page.wait_for_timeout(5_000)
        connection.mend()
        page.wait_for_function(
            f"Number(document.body.innerText.match(/poch ([0-9]+) of 1,000/)?.[1]) > {before + 20}",
            polling=200,
        )
        stop(page)

        tune_at(page, server.address, 60)
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        expect(page.get_by_text(str(WorkerEndedError()))).to_be_visible()
        page.reload()
        expect(page.get_by_text(f"This run {WHAT_HAPPENED['failed']}.")).to_be_visible()
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text(STEP).first).to_be_visible()
        assert server.workers() != [worker]
        link = page.url

        server.kill()
        server.start()
        page.goto(link)
        expect(page.get_by_text(WHAT_HAPPENED["queued"])).to_be_visible()
        page.get_by_role("button", name="Run again").click()
        expect(page.get_by_text(STEP).first).to_be_visible()
        assert page.url != link
        run = re.search(r"run=(\w+)", page.url)
        (note,) = (tmp_path / "results").glob(f"{run[1]}.*")
        assert note.read_text() == "queued"
        assert server.end() == 0  # which lets running work finish
        assert note.read_text() == "done"


@pytest.mark.slow
def test_without_workers_or_a_folder_to_write_to_runs_are_as_good(
    browser: Browser, tmp_path: Path
) -> None:
    """On a screen that is touched: a tap on a link leads there, and the text is still there."""
    settings = {"NEURALVIZ_WORKERS": "0", "NEURALVIZ_HOME": "/proc/neuralviz"}
    with (
        started(tmp_path, **settings) as server,
        patient_page(browser, has_touch=True, viewport={"width": 1440, "height": 900}) as page,
    ):
        page.goto(f"{server.address}/?epochs=3")
        page.get_by_role("radio", name="Paste").click()
        settled(page)
        page.get_by_role("textbox", name="Your texts").click()
        page.keyboard.type(TEXT)
        page.get_by_role("link", name="Compare").tap()
        expect(page.get_by_role("heading", name="Compare", level=1)).to_be_visible()
        page.get_by_role("link", name="Micro-tuning").tap()
        expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TEXT)
        page.get_by_role("button", name="Tune", exact=True).click()
        expect(page.get_by_text(DONE)).to_be_visible()
        assert server.workers() == []
        assert page.request.get(f"{server.address}/livez").text() == "ok"
        for name in ("evaluation", "corpus_map"):
            page.goto(f"{server.address}/{name}")
            page.get_by_role("heading").first.wait_for()
            expect(page.locator("[data-testid=stException]")).to_have_count(0)
        expect(page.get_by_text(re.compile("Could not|cannot be"))).to_be_visible()
