"""A connection between a browser and a server that can be cut and mended."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType


class Proxy:
    """Passes bytes on to a server, as long as it is not cut.

    Args:
        address: of the server.
    """

    def __init__(self, address: str) -> None:
        self._target = urlsplit(address).port
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self.address = ""

    def __enter__(self) -> Proxy:
        begun = threading.Event()

        async def begin() -> None:
            server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
            self.address = f"http://localhost:{server.sockets[0].getsockname()[1]}"
            begun.set()

        def work() -> None:
            self._loop.create_task(begin())
            self._loop.run_forever()

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        assert begun.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        """End all connections at once, and let no new one through."""
        self._is_cut = True

        async def end() -> None:
            for writer in self._writers:
                writer.transport.abort()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)

    def mend(self) -> None:
        """Let new connections through."""
        self._is_cut = False

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        back, forth = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, forth}
        await asyncio.gather(_copy(reader, forth), _copy(back, writer))
        self._writers -= {writer, forth}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await reader.read(1 << 16):
            writer.write(content)
            await writer.drain()
    writer.close()
