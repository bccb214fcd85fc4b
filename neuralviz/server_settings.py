"""Settings of a server that many people use, from variables of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

from neuralviz.errors import SettingsError

PREFIX = "NEURALVIZ_"
_YES = ("1", "true", "yes", "on")
_NO = ("", "0", "false", "no", "off")
_BOUNDS = {
    "WORKERS": (0, 64),
    "MAX_TEXTS": (1, 1_000_000),
    "MAX_CHARACTERS": (1, 1_000_000_000),
    "MAX_RUNS": (1, 1000),
    "MAX_UPLOAD_MB": (1, 100_000),
    "KEEP_DAYS": (1, 36_500),
    "SPARE_MEMORY_MB": (0, 1_000_000),
    "GRACE_SECONDS": (0, 3600),
    "UNWATCHED_SECONDS": (0, 86_400),
}


@dataclass(frozen=True)
class ServerSettings:
    """Settings, named ``NEURALVIZ_…`` in the environment; a limit that is None does not exist."""

    workers: int | None = None  # processes; 0: the one that serves the pages; None: by the cores
    demo: bool = False  # strangers use it: no model by name or path, nothing saved is changed
    open: bool = False  # others than the user of this machine reach it, behind a proxy, say
    private: bool = False  # corpora belong to the browser that added them
    max_texts: int | None = None  # of one input or corpus
    max_characters: int | None = None  # of all texts of one input or corpus
    max_runs: int | None = None  # of a session that wait or are under way
    max_upload_mb: int | None = None  # megabytes of an uploaded file
    keep_days: int = 90  # until what nobody has opened is deleted
    spare_memory_mb: int = 500  # megabytes that must be left for new work to begin
    grace_seconds: int = 10  # for running work when the server is told to end
    unwatched_seconds: int = 900  # for which a run goes on while nobody has its page open
    json_logs: bool = False  # lines of JSON, without anything that was typed

    def for_network(self) -> ServerSettings:
        """With limits where none were set: for a server that others than its owner can reach."""
        missing = {
            name: limit for name, limit in OPEN_LIMITS.items() if getattr(self, name) is None
        }
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
    """The settings as the environment has them.

    Raises:
        SettingsError: a variable has a value that makes no sense; the message names it.
    """
    values: dict[str, Any] = {}
    for setting in fields(ServerSettings):
        name = setting.name.upper()
        text = os.environ.get(PREFIX + name, "").strip()
        if text:
            parse = _parse_number if name in _BOUNDS else _parse_flag
            values[setting.name] = parse(name, text)
    return ServerSettings(**(DEMO_LIMITS | values if values.get("demo") else values))


def _parse_number(name: str, text: str) -> int:
    lowest, highest = _BOUNDS[name]
    if not (text.isascii() and text.isdecimal() and lowest <= int(text) <= highest):
        raise SettingsError(
            f"{PREFIX}{name} must be a whole number from {lowest:,} to {highest:,}, "
            f"not “{text[:40]}”."
        )
    return int(text)


def _parse_flag(name: str, text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise SettingsError(f"{PREFIX}{name} must be 1 or 0, not “{text[:40]}”.")
