"""The server around the pages: its start and end, ``/livez``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import logging
import secrets
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from streamlit import App, config

from neuralviz.errors import SettingsError, Stopped
from neuralviz.files import why_not_writable
from neuralviz.jobs import Run
from neuralviz.jobs.logs import log_as_json, log_run
from neuralviz.jobs.queue import RunQueue, run_queue, spare_memory
from neuralviz.jobs.workers import Workers
from neuralviz.models import BUNDLED
from neuralviz.models.shared import is_loaded
from neuralviz.native_libraries import count_cores
from neuralviz.paths import home
from neuralviz.ui import NAVIGATION
from neuralviz.ui.choices import BROWSER, load_bundled
from neuralviz.ui.limits import begin_serving, effective_settings
from neuralviz.ui.pace import CALM, WARMING
from neuralviz.ui.page import ASSETS

_log = logging.getLogger(__name__)

COOKIE_DAYS = 365
FIRST_PAGE = "micro_tuning"  # is at the address without a name, too
SWITCH_SECONDS = 0.0005  # a tenth of Python's own: workers' events never wait for drawing
FIRST_PAGE_SECONDS = 4.0  # after which workers start even if nobody opens a page
BROWSER_SECONDS = 1.0  # that a browser takes to show a page
CONNECTION_SECONDS = 5  # for open pages to let go when the server ends


class Server:
    """The queue of this process, its workers and its counts."""

    def __init__(self) -> None:
        settings = effective_settings()
        sys.setswitchinterval(SWITCH_SECONDS)
        fix_import_path()
        n = max(1, count_cores() // 2) if settings.workers is None else settings.workers
        self._workers = Workers(n, model=BUNDLED) if n else None
        self._queue = run_queue(
            lambda: RunQueue(
                max_running=n or 1,
                workers=self._workers,
                max_of_owner=settings.max_runs,
                spare_mb=settings.spare_memory_mb,
            )
        )
        self.metrics = Metrics(self._queue, self._workers)
        self._grace = settings.grace_seconds
        self._logged_reason = ""
        self.is_ending = False
        if self._workers is None:
            WARMING.call_soon(load_bundled)
        else:
            threading.Thread(target=_start_workers, args=(self._workers,), daemon=True).start()
        if settings.json_logs:
            log_as_json()
        self._queue.at_every_end(log_run)

    def why_not_ready(self) -> str:
        """Why the server cannot work yet, or any more; empty where it can."""
        if self.is_ending:
            return "The server is ending."
        reason = why_not_writable(home())
        if reason and reason != self._logged_reason:
            _log.error("%s", reason)
        self._logged_reason = reason  # one that comes back is logged again
        if reason:
            return "The server cannot write to its data folder."
        if self._workers is None:
            return "" if is_loaded(BUNDLED) else "The model is not loaded yet."
        return "" if self._workers.is_ready() else "No worker is ready."

    def end(self, *, at_once: bool) -> None:
        """End all runs; running ones get their grace time unless ``at_once``."""
        self._queue.close(grace=0 if at_once else self._grace)


def fix_import_path() -> None:
    """Put the pages' folder last on the import path, which Streamlit then leaves alone."""
    # Streamlit 1.67 else changes the path around each run of a script, and imports of other threads
    # miss a folder: see findings/streamlit_import_path.sh
    if (folder := str(NAVIGATION.parent)) not in sys.path:
        sys.path.append(folder)


def _start_workers(workers: Workers) -> None:
    """Start workers after the first page, which they would delay, or when nobody opens one."""
    CALM.wait_for_first(FIRST_PAGE_SECONDS)
    time.sleep(BROWSER_SECONDS)
    with suppress(Stopped):  # the server ends
        workers.start()


@cache
def _server() -> Server:
    return Server()


def routes() -> list[Route]:
    return [
        Route("/livez", lambda _request: PlainTextResponse("ok")),
        Route("/readyz", _answer_ready),
        Route(
            "/metrics",
            lambda _request: Response(_server().metrics.text(), media_type=CONTENT_TYPE_LATEST),
        ),
    ]


def middleware() -> list[Middleware]:
    cookie = [Middleware(BrowserCookie)] if effective_settings().private else []
    return [*cookie, Middleware(AddressScript)]


@asynccontextmanager
async def lifespan(_app: App) -> AsyncIterator[None]:
    """Start and end the runs with the server: Ctrl-C ends at once, SIGTERM after running work."""
    server = _server()
    received = _heed_signals(server)
    yield
    server.is_ending = True
    await run_in_threadpool(server.end, at_once=signal.SIGTERM not in received)


def _answer_ready(_request: Request) -> Response:
    why_not = _server().why_not_ready()
    return PlainTextResponse(why_not or "ok", status_code=503 if why_not else 200)


def _heed_signals(server: Server) -> set[int]:
    """Make the first signal end the server in good order; return the set of signals received."""
    # uvicorn raises a signal again once it has ended, which then looks like an abort
    received: set[int] = set()

    def heed(number: int) -> None:
        before: Any = signal.getsignal(number)
        web_server: Any = getattr(before, "__self__", None)

        def handle(number: int, frame: FrameType | None) -> None:
            server.is_ending, is_first = True, not received
            received.add(number)
            if is_first and hasattr(web_server, "should_exit"):
                web_server.config.timeout_graceful_shutdown = CONNECTION_SECONDS
                web_server.should_exit = True
            else:
                before(number, frame)

        if callable(before):
            signal.signal(number, handle)

    heed(signal.SIGINT)
    heed(signal.SIGTERM)
    return received


class AddressScript(BaseHTTPMiddleware):
    """Puts ``address.js`` before Streamlit's scripts, and leads to the first page by its name."""

    _script = f"<head><script>{(ASSETS / 'address.js').read_text('utf-8')}</script>".encode()

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return await call_next(request)
        if request.url.path.strip("/").rpartition("/")[2] == FIRST_PAGE:
            up = "../" if request.url.path.endswith("/") else "./"
            return RedirectResponse(f"{up}?{request.url.query}".rstrip("?"))
        unwanted = (b"accept-encoding", b"if-none-match", b"if-modified-since")
        headers = [(name, v) for name, v in request.scope["headers"] if name not in unwanted]
        request.scope["headers"] = headers
        response = await call_next(request)
        if not response.headers.get("content-type", "").startswith("text/html"):
            return response
        body = b"".join([part async for part in response.body_iterator])  # type: ignore[attr-defined]
        page = Response(body.replace(b"<head>", self._script, 1), response.status_code)
        dropped = (b"content-length", b"etag", b"last-modified")  # a page is always sent whole
        page.raw_headers += [(n, v) for n, v in response.raw_headers if n not in dropped]
        return page


class BrowserCookie(BaseHTTPMiddleware):
    """Gives every browser its own cookie, which identifies its corpora."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        is_page = response.headers.get("content-type", "").startswith("text/html")
        if is_page and BROWSER not in request.cookies:
            response.set_cookie(
                BROWSER,
                secrets.token_urlsafe(24),
                max_age=COOKIE_DAYS * 86_400,
                path=f"/{config.get_option('server.baseUrlPath').strip('/')}",
                secure=request.url.scheme == "https",
                httponly=True,
                samesite="lax",
            )
        return response


def check_settings() -> None:
    """End the process with a sentence where a setting is invalid, before anything is served."""
    if sys.argv[1:]:  # as Streamlit leaves them: what is no option of it
        raise SystemExit(f"neuralviz app does not know what “{sys.argv[1]}” means.")
    try:
        settings = begin_serving()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    if settings.json_logs:
        config.set_option("logger.enableRich", False)  # which would print the exception's message
    if settings.max_upload_mb is not None:
        config.set_option("server.maxUploadSize", settings.max_upload_mb)


# --- metrics -------------------------------------------------------------------------------------

SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600)  # upper ends of the histograms' bins


class Metrics:
    def __init__(self, queue: RunQueue, workers: Workers | None) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_StateCollector(queue, workers))
        self._runs = Counter(
            "neuralviz_runs", "Runs that have ended.", ["task", "status"], registry=registry
        )
        self._run_seconds = Histogram(
            "neuralviz_run_seconds",
            "How long the work of a run took.",
            ["task"],
            buckets=SECONDS,
            registry=registry,
        )
        self._wait_seconds = Histogram(
            "neuralviz_wait_seconds",
            "How long a run waited for its turn.",
            buckets=SECONDS,
            registry=registry,
        )
        queue.at_every_end(self.note)

    def note(self, run: Run[Any]) -> None:
        task = type(run.task).__name__
        self._runs.labels(task, run.status).inc()
        self._wait_seconds.observe(run.seconds_waited)
        if run.started:
            self._run_seconds.labels(task).observe(run.seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _StateCollector(Collector):
    """The current state, read at every request."""

    def __init__(self, queue: RunQueue, workers: Workers | None) -> None:
        self._queue, self._workers = queue, workers

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "neuralviz_runs_waiting", "Runs that wait for their turn.", labels=["lane"]
        )
        running = GaugeMetricFamily("neuralviz_runs_running", "Runs under way.", labels=["lane"])
        for lane, counts in self._queue.n_by_lane().items():
            waiting.add_metric([lane], counts[0])
            running.add_metric([lane], counts[1])
        yield from (waiting, running)
        yield GaugeMetricFamily(
            "neuralviz_spare_memory_bytes", "Memory left for new work.", spare_memory()
        )
        if self._workers is None:
            return
        pids = self._workers.processes()
        yield GaugeMetricFamily("neuralviz_workers", "Worker processes now running.", len(pids))
        yield CounterMetricFamily(
            "neuralviz_workers_started", "Worker processes started so far.", self._workers.n_started
        )
        yield GaugeMetricFamily(
            "neuralviz_worker_memory_bytes",
            "Resident memory of all worker processes.",
            sum(map(_resident_bytes, pids)),
        )


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
