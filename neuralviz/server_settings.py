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
    """Limits and workings of a server. A variable is named like its attribute, in capitals.

    Attributes:
        workers: ``NEURALVIZ_WORKERS``, processes that do the work; 0 leaves it to the process that
            serves the pages; None for one for two cores.
        demo: ``NEURALVIZ_DEMO``, a site that strangers use: no model by name or path, saved
            corpora, encoders and similarity models can be looked at but not changed.
        open: ``NEURALVIZ_OPEN``, others than the user of this machine reach the server, behind a
            proxy, say; by default that is so where it listens beyond this machine.
        max_characters: ``NEURALVIZ_MAX_CHARACTERS``, of all texts of one input or corpus.
        keep_days: ``NEURALVIZ_KEEP_DAYS``, days until a result that nobody has opened is deleted,
            and what is known of a run since it began.
        spare_memory_mb: ``NEURALVIZ_SPARE_MEMORY_MB``, megabytes of memory that must be left for
            new work to begin.
        grace_seconds: ``NEURALVIZ_GRACE_SECONDS``, for running work when the server is told to end.
        unwatched_seconds: ``NEURALVIZ_UNWATCHED_SECONDS``, for which a run goes on while nobody has
            its page open.
        json_logs: ``NEURALVIZ_JSON_LOGS``, logs as lines of JSON, without anything that was typed.

    A limit that is None does not exist.
    """

    workers: int | None = None
    demo: bool = False
    open: bool = False
    private: bool = False  # ``NEURALVIZ_PRIVATE``, corpora belong to the browser that added them
    max_texts: int | None = None  # ``NEURALVIZ_MAX_TEXTS``, of one input or corpus
    max_characters: int | None = None
    max_runs: int | None = None  # ``NEURALVIZ_MAX_RUNS``, of a session that wait or are under way
    max_upload_mb: int | None = None  # ``NEURALVIZ_MAX_UPLOAD_MB``, megabytes of an uploaded file
    keep_days: int = 90
    spare_memory_mb: int = 500
    grace_seconds: int = 10
    unwatched_seconds: int = 900
    json_logs: bool = False

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
