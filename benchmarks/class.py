"""Measure a class: many browser sessions that press *Tune* within two seconds.

    python benchmarks/class.py
    python benchmarks/class.py --sessions 20
    python benchmarks/class.py --day

Starts the app on this machine and opens sessions over the websocket that a browser uses, each
with a text of its own of 10 to 30 tokens. Like a browser, a session asks for a live part of its
page again as often as the page says. Prints a table in markdown: when the first point of the loss
was there and when the run was over, for the first, the middle and the last session.

`--day` measures memory instead: 200 page loads and 100 runs, four sessions at a time, that come and
go; what the server and its workers hold after each quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import urlopen

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.words import many
from tests.support.app import APP, served

POINT, OVER = "first point of the loss", "run over"
WITHIN = 2.0  # seconds in which all press
AT_ONCE = 4  # sessions that come and go together
LOADS, RUNS = 200, 100  # of a day
PATIENCE = 300.0
MODEL_SECONDS = 3.0  # for the server's own copy of the model, which pages read tokens with
MOST_MESSAGE = 1 << 28
WORDS = (
    "river bridge winter letter garden market teacher engine harbour village mountain window "
    "music doctor ticket summer kitchen station forest painter silver candle journey neighbour"
).split()


@dataclass(eq=False)
class Session:
    """A browser session: what the server draws for it, and what it asks for in turn.

    Attributes:
        widgets: ids of the widgets that were drawn, by kind and label.
        seen: seconds from the press until each mark came.
        errors: what the page says that is wrong.
        is_closed: whether the connection has ended.
    """

    socket: ClientConnection
    widgets: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    is_closed: bool = False
    _states: dict[str, WidgetState] = field(default_factory=dict)
    _page: str = ""
    _pressed: float = 0.0
    _pings: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _drawn: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Take in what the server draws, until the connection ends."""
        with suppress(ConnectionClosed):
            async for content in self.socket:
                message = ForwardMsg()
                message.ParseFromString(content)
                self._take(message)
        self.is_closed = True
        self._drawn.set()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
            if not message.metadata.run.fragment_ids:  # the whole page is drawn
                for ping in self._pings.values():
                    ping.cancel()
                self._pings.clear()
        elif kind == "script_finished":
            self._drawn.set()
        elif kind == "auto_rerun":
            again = message.auto_rerun
            if again.fragment_id not in self._pings:
                self._pings[again.fragment_id] = asyncio.create_task(
                    self._ask_again(again.fragment_id, again.interval)
                )
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._take_element(message.delta.new_element)

    def _take_element(self, element: Element) -> None:
        kind = element.WhichOneof("type")
        found = getattr(element, kind)
        if hasattr(found, "id") and hasattr(found, "label"):
            self.widgets[kind, found.label] = found.id
        if kind == "alert" and found.format == found.ERROR:
            self.errors.append(found.body)
        if kind == "exception":
            self.errors.append(f"{found.type}: {found.message}")
        if not self._pressed:
            return
        if kind == "progress" and found.text.startswith("Epoch "):
            self._see(POINT)
        if kind == "markdown" and found.body.startswith("Done in"):
            self._see(POINT)
            self._see(OVER)

    def _see(self, mark: str) -> None:
        self.seen.setdefault(mark, time.perf_counter() - self._pressed)

    async def _ask_again(self, fragment: str, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            await self._rerun(fragment)

    async def _rerun(self, fragment: str = "") -> None:
        message = BackMsg()
        asked = message.rerun_script
        asked.widget_states.widgets.extend(self._states.values())
        asked.page_script_hash = self._page
        asked.fragment_id, asked.is_auto_rerun = fragment, bool(fragment)
        with suppress(ConnectionClosed):
            await self.socket.send(message.SerializeToString())

    async def draw(self, *changed: WidgetState) -> None:
        """Have the page drawn, after widgets have changed, and wait for it."""
        self._states |= {state.id: state for state in changed}
        self._drawn.clear()
        await self._rerun()
        for state in changed:
            if state.trigger_value:
                del self._states[state.id]
        await asyncio.wait_for(self._drawn.wait(), PATIENCE)

    async def paste(self, text: str) -> None:
        """Put a text in place of the example."""
        await self.draw(_chosen(self._id("Texts"), "Paste"))
        await self.draw(WidgetState(id=self._id("Your texts"), string_value=text))

    async def press(self) -> None:
        """Press *Tune* and wait until the run is over."""
        self._pressed = time.perf_counter()
        await self.draw(WidgetState(id=self._id("Tune"), trigger_value=True))
        until = self._pressed + PATIENCE
        while OVER not in self.seen and time.perf_counter() < until:
            assert not self.is_closed, "the server has closed the connection"
            assert not self.errors, self.errors
            await asyncio.sleep(0.05)

    def _id(self, label: str) -> str:
        return next(found for (_, said), found in self.widgets.items() if said == label)


async def opened(address: str) -> Session:
    """A session on the first page, drawn once."""
    host = urlsplit(address).netloc
    socket = await connect(
        f"ws://{host}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        origin=Origin(f"http://{host}"),
        max_size=MOST_MESSAGE,
        open_timeout=PATIENCE,
    )
    session = Session(socket)
    _listening.add(asyncio.create_task(session.listen()))
    await session.draw()
    return session


def _chosen(widget: str, option: str) -> WidgetState:
    state = WidgetState(id=widget)
    state.string_array_value.data.append(option)
    return state


_listening: set[asyncio.Task[None]] = set()


def text_of(number: int) -> str:
    """A text of 10 to 30 tokens that no other session has."""
    chance = random.Random(number)
    return f"{number} " + " ".join(chance.choice(WORDS) for _ in range(chance.randint(9, 29)))


async def lesson(address: str, n_sessions: int) -> list[Session]:
    """The sessions, when all have seen the end of their runs."""
    first = await opened(address)
    await ready(address)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def sit_down(number: int) -> Session:
        async with at_once:
            session = await opened(address) if number else first
            await session.paste(text_of(number))
            return session

    sessions = await asyncio.gather(*map(sit_down, range(n_sessions)))

    async def press(number: int, session: Session) -> None:
        await asyncio.sleep(WITHIN * number / len(sessions))
        await session.press()

    await asyncio.gather(*(press(*pair) for pair in enumerate(sessions)))
    return sessions


async def ready(address: str) -> None:
    """Wait until the server says that it can work, and has loaded the model of its own."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError):
            await asyncio.to_thread(urlopen, f"{address}/readyz")
            break
        await asyncio.sleep(0.5)
    await asyncio.sleep(MODEL_SECONDS)


async def day(address: str) -> list[tuple[int, int, float, float]]:
    """Page loads, runs, and megabytes of the server and of its workers, after each quarter."""
    await opened(address)
    await ready(address)
    found = []
    for quarter in range(1, 5):
        for group in range(LOADS // 4 // AT_ONCE):
            runs = group % (LOADS // RUNS) == 0
            numbers = [quarter * 1000 + group * AT_ONCE + i for i in range(AT_ONCE)]
            await asyncio.gather(*(_visit(address, number, runs) for number in numbers))
        found.append((LOADS * quarter // 4, RUNS * quarter // 4, *await _megabytes(address)))
    return found


async def _visit(address: str, number: int, runs: bool) -> None:
    session = await opened(address)
    if runs:
        await session.paste(text_of(number))
        await session.press()
        assert OVER in session.seen, session.errors
    await session.socket.close()


async def _megabytes(address: str) -> tuple[float, float]:
    answer = await asyncio.to_thread(urlopen, f"{address}/metrics")
    held = dict(
        line.split()
        for line in answer.read().decode().splitlines()
        if line.startswith(("process_resident_memory_bytes ", "neuralviz_worker_memory_bytes "))
    )
    server, workers = (
        float(held[f"{name}_memory_bytes"]) / 2**20
        for name in ("process_resident", "neuralviz_worker")
    )
    return server, workers


def print_day(found: list[tuple[int, int, float, float]]) -> None:
    """Memory after each quarter, and how much it has grown since the first."""
    print("| page loads | runs | server, MB | workers, MB |\n| --- | --- | --- | --- |")
    for loads, runs, server, workers in found:
        print(f"| {loads} | {runs} | {server:,.0f} | {workers:,.0f} |")
    (*_, server, workers), (*_, server_first, workers_first) = found[-1], found[0]
    print(f"\nSince the first quarter: server {server / server_first - 1:+.1%}, ", end="")
    print(f"workers {workers / workers_first - 1:+.1%}.")


def print_table(sessions: list[Session], began: str) -> None:
    """How long the first, the middle and the last waited."""
    print(f"{began}\n\n| seconds after the press | first | middle | last |")
    print("| --- | --- | --- | --- |")
    for mark in (POINT, OVER):
        seconds = sorted(session.seen.get(mark, math.nan) for session in sessions)
        middle = seconds[len(seconds) // 2]
        print(f"| {mark} | {seconds[0]:.1f} | {middle:.1f} | {seconds[-1]:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 20, 50])
    parser.add_argument("--day", action="store_true", help="measure memory instead")
    options = parser.parse_args()
    if options.day:
        with TemporaryDirectory() as folder, served(APP, Path(folder), workers="") as address:
            print_day(asyncio.run(day(address)))
        return
    for n_sessions in options.sessions:
        with TemporaryDirectory() as folder, served(APP, Path(folder), workers="") as address:
            sessions = asyncio.run(lesson(address, n_sessions))
        print_table(sessions, f"{many(n_sessions, 'session')}, {os.cpu_count()} cores")
        for error in sorted({error for session in sessions for error in session.errors}):
            print(f"Said by a page: {error}")


if __name__ == "__main__":
    main()
