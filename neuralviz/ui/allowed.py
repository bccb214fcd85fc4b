"""What this server allows whoever looks at its pages."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from streamlit import config

from neuralviz.errors import NeuralvizError
from neuralviz.server_settings import PREFIX, ServerSettings, server_settings
from neuralviz.ui.session import is_served
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

_is_serving = False
_OWN_MACHINE = ("localhost", "127.0.0.1", "::1")


class TooMuchError(NeuralvizError):
    """More than this server takes at once."""


def begin_serving() -> ServerSettings:
    """Note that this process is a server, before Streamlit knows it; gives what it allows.

    Whether others can reach it is put into the environment: its workers know it, too.

    Raises:
        SettingsError: a variable of the environment makes no sense.
    """
    global _is_serving
    _is_serving = True
    allowed.cache_clear()
    settings = allowed()
    if settings.open:
        os.environ[f"{PREFIX}OPEN"] = "1"
    return settings


@cache
def allowed() -> ServerSettings:
    """The settings of this server; one that others can reach has limits.

    Raises:
        SettingsError: a variable of the environment makes no sense.
    """
    settings = server_settings()
    listens = (_is_serving or is_served()) and config.get_option(
        "server.address"
    ) not in _OWN_MACHINE
    return settings.for_network() if settings.open or listens else settings


def has_visitors() -> bool:
    """Whether others than the user of this machine look at the pages."""
    return allowed().open or allowed().demo


def where_it_goes(what: str = "The file") -> str:
    """Where something that is put in goes, as a sentence.

    Args:
        what: begins the sentence.
    """
    return f"{what} goes to this server." if has_visitors() else f"{what} stays on this machine."


def n_within_limits(texts: Sequence[str]) -> int:
    """How many of the texts, from the first, this server takes at once."""
    most_texts, most_characters = allowed().max_texts, allowed().max_characters
    n = len(texts) if most_texts is None else min(len(texts), most_texts)
    if most_characters is None:
        return n
    left = most_characters
    for place in range(n):
        left -= len(texts[place])
        if left < 0:
            return place
    return n


def most_rows(most: int, texts_in_row: int = 1) -> int:
    """How many rows of a table this server takes: ``most`` or fewer."""
    most_texts = allowed().max_texts
    return most if most_texts is None else max(1, min(most, most_texts // texts_in_row))


def most_typed(n_fields: int = 1) -> int | None:
    """How much may be typed into each of some text fields; None for as much as one likes."""
    most = allowed().max_characters
    return None if most is None else most // n_fields


def check_within_limits(texts: Sequence[str]) -> None:
    """Refuse more texts than this server takes.

    Raises:
        TooMuchError: there are more, or they are too long; the message says what it takes.
    """
    if n_within_limits(texts) < len(texts):
        raise TooMuchError(too_much())


def too_much() -> str:
    """What this server takes at once, as a sentence."""
    most_texts, most_characters = allowed().max_texts, allowed().max_characters
    most = [many(most_texts, "text")] if most_texts is not None else []
    most += [many(most_characters, "character")] if most_characters is not None else []
    return f"This server takes up to {' and '.join(most)} at once."
