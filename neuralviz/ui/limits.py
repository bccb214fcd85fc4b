"""What this server allows its visitors: its settings and limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from streamlit import config, runtime

from neuralviz.server_settings import PREFIX, ServerSettings, server_settings
from neuralviz.words import many

_is_serving = False
_OWN_MACHINE = ("localhost", "127.0.0.1", "::1")


def is_served() -> bool:
    """Whether a server with browsers runs the script, rather than a test or plain Python."""
    return runtime.exists() and not config.get_option("global.appTest")


def begin_serving() -> ServerSettings:
    """Mark this process and its workers as a server's, and return its settings."""
    global _is_serving
    _is_serving = True  # before Streamlit knows
    effective_settings.cache_clear()
    settings = effective_settings()
    if settings.open:
        os.environ[f"{PREFIX}OPEN"] = "1"  # for the workers
    return settings


@cache
def effective_settings() -> ServerSettings:
    """This server's settings, with limits if others can reach it; may raise SettingsError."""
    settings = server_settings()
    listens = (_is_serving or is_served()) and config.get_option(
        "server.address"
    ) not in _OWN_MACHINE
    return settings.for_network() if settings.open or listens else settings


def has_visitors() -> bool:
    """Whether the pages have other visitors than the user of this machine."""
    return effective_settings().open or effective_settings().demo


def describe_destination(subject: str = "The file") -> str:
    """Where the user's input goes, as a sentence."""
    return f"{subject} {'goes to this server' if has_visitors() else 'stays on this machine'}."


def n_within_limits(texts: Sequence[str]) -> int:
    """How many of the first texts this server accepts at once."""
    settings = effective_settings()
    most_characters = settings.max_characters or sys.maxsize
    characters = accumulate(map(len, texts[: settings.max_texts]))
    return sum(n_characters <= most_characters for n_characters in characters)


def row_limit(limit: int, texts_in_row: int = 1) -> int:
    """How many rows of a table this server accepts: ``limit`` or fewer."""
    most_texts = effective_settings().max_texts
    return limit if most_texts is None else max(1, min(limit, most_texts // texts_in_row))


def character_limit(n_fields: int = 1) -> int | None:
    """The most characters in each of ``n_fields`` text fields; None without a limit."""
    limit = effective_settings().max_characters
    return None if limit is None else limit // n_fields


def describe_limits() -> str:
    """What this server accepts at once, as a sentence."""
    settings = effective_settings()
    most_texts, most_characters = settings.max_texts, settings.max_characters
    limits = [many(most_texts, "text")] if most_texts is not None else []
    limits += [many(most_characters, "character")] if most_characters is not None else []
    return f"This server takes up to {' and '.join(limits)} at once."
