"""Errors whose message is a sentence for the person who uses neuralviz."""

from __future__ import annotations

from collections.abc import Callable

from neuralviz.words import many

LONG_TEXT = 100_000  # characters: embedding a longer text takes so long that users are warned

ShouldStop = Callable[[], bool]
"""Long work calls it again and again, and raises `Stopped` when it returns true."""


def never() -> bool:
    """False always: the `ShouldStop` of work that nothing stops."""
    return False


class NeuralvizError(Exception):
    """Something a user can understand and mend; ``str(error)`` says what and how."""


class TextError(NeuralvizError):
    """A text that cannot be used: empty, or without a token the model can read."""


class UnreadFileError(TextError):
    """A file that could not be opened or read, whatever it holds."""


class UnreadableTextError(TextError):
    """One of several texts cannot be used.

    Attributes:
        reason: what is wrong, to go behind “Text 3”.
        place: index of the text among those given, from 0.
    """

    def __init__(self, reason: str, place: int, n_texts: int) -> None:
        self.reason = reason
        self.place = place
        subject = f"Text {place + 1}" if n_texts > 1 else "The text"
        super().__init__(f"{subject} {reason}")


class SettingsError(NeuralvizError, ValueError):
    """A setting that makes no sense: a learning rate of 0, a blueprint that masks nothing.

    It is a `ValueError`, too, as other libraries raise for their arguments.
    """


class ModelError(NeuralvizError):
    """A model that cannot be loaded or used: wrong id, no network, no masked-token head."""


class StoreError(NeuralvizError):
    """The store cannot be read or written: a full disk, a newer version, a lost corpus."""


class WorkerEndedError(NeuralvizError):
    """A worker's process ended in the middle of a run."""

    def __init__(self) -> None:
        super().__init__(
            "The process that did this work ended suddenly; the machine may be out of memory. "
            "Finished work is saved. Run it again, with fewer or shorter texts if it ends again."
        )


class Stopped(Exception):  # noqa: N818  not an error
    """Work was stopped half-way; the code that stopped it catches this."""


def describe_unexpected(error: BaseException) -> str:
    """A sentence for an unforeseen error; one about a file leaves out the file's path."""
    detail = error.strerror if isinstance(error, OSError) and error.filename else error
    reason = f"{type(error).__name__}: {detail}".rstrip(": ")[:300]
    return f"Unexpected error: {reason}."


class PrecisionWarning(UserWarning):
    """The machine has no hardware support for the precision and emulates it."""

    def __init__(self) -> None:
        super().__init__(
            "This machine has no hardware support for bf16; emulating it is slower than exact."
        )


class LossWarning(UserWarning):
    """The loss of ``n`` of ``n_texts`` texts did not fall while they were learnt."""

    def __init__(self, n: int, n_texts: int) -> None:
        self.n = n
        super().__init__(
            f"The run diverged on {n:,} of {many(n_texts, 'text')}: the loss rose, or became "
            "infinite or NaN. Lower the learning rate (the paper uses 0.01)."
        )


class LongTextWarning(UserWarning):
    """``n`` of ``n_texts`` texts have over `LONG_TEXT` characters: to embed them takes minutes."""

    def __init__(self, n: int, n_texts: int, longest: int) -> None:
        super().__init__(
            f"Very long texts: {n:,} of {n_texts:,}. The longest has {longest:,} characters. "
            "Embedding may take several minutes."
        )


class UnreadTextWarning(UserWarning):
    """Texts that a model's tokenizer does not know, or does not tell apart."""


def shorten_reason(error: Exception) -> str:
    """What a library says of its error, in a line of at most 150 characters without a full stop."""
    return (" ".join(str(error).split()) or type(error).__name__)[:150].rstrip(". ")
