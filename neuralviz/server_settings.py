"""Settings of a shared server, from environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

from neuralviz.errors import SettingsError

PREFIX = "NEURALVIZ_"
_FLAGS = {"1": True, "true": True, "yes": True, "on": True}
_FLAGS |= {"0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class ServerSettings:
    """Settings, named ``NEURALVIZ_…`` in the environment; a limit that is None does not exist."""

    workers: int | None = None  # processes; 0: the one that serves the pages; None: by the cores
    demo: bool = False  # for strangers: no models by name or path, no changes to saved data
    open: bool = False  # others than the user of this machine can reach it, such as behind a proxy
    private: bool = False  # corpora belong to the browser that added them
    max_texts: int | None = None  # per input or corpus
    max_characters: int | None = None  # of all texts of an input or corpus
    max_runs: int | None = None  # unfinished runs per session
    max_upload_mb: int | None = None  # megabytes of an uploaded file
    keep_days: int = 90  # until data that nobody opens is deleted
    spare_memory_mb: int = 500  # megabytes that must be free before new work begins
    grace_seconds: int = 10  # for running work to finish when the server is told to end
    unwatched_seconds: int = 900  # that a run continues while nobody has its page open
    json_logs: bool = False  # as JSON lines, without anything that users typed

    def for_network(self) -> ServerSettings:
        """The settings of a server that others can reach: open, with limits where none were set."""
        missing = {name: n for name, n in OPEN_LIMITS.items() if getattr(self, name) is None}
        return replace(self, open=True, **missing)  # type: ignore[arg-type]


OPEN_LIMITS = {
    "max_texts": 20_000,
    "max_characters": 10_000_000,
    "max_runs": 4,
    "max_upload_mb": 50,
}
DEMO_LIMITS = {
    "max_texts": 200,
    "max_characters": 50_000,
    "max_runs": 2,
    "max_upload_mb": 2,
    "unwatched_seconds": 60,  # strangers leave, and others wait
}


def server_settings() -> ServerSettings:
    """Read the settings; `SettingsError` names a variable with an invalid value."""
    values: dict[str, Any] = {}
    for setting in fields(ServerSettings):
        name = PREFIX + setting.name.upper()
        text = os.environ.get(name, "").strip()
        if not text:
            continue
        if setting.type == "bool":
            if text.lower() not in _FLAGS:
                raise SettingsError(f"{name} must be 1 or 0, not “{text[:40]}”.")
            values[setting.name] = _FLAGS[text.lower()]
        else:
            lowest = 1 if setting.name.startswith(("max_", "keep_")) else 0
            if not (text.isascii() and text.isdecimal() and int(text) >= lowest):
                raise SettingsError(
                    f"{name} must be a whole number, at least {lowest}, not “{text[:40]}”."
                )
            values[setting.name] = int(text)
    return ServerSettings(**(DEMO_LIMITS | values if values.get("demo") else values))
