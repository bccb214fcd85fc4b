"""Errors and warnings whose message is a sentence for users."""

from __future__ import annotations

from collections.abc import Callable, Collection

from neuralviz.words import many

LONG_TEXT = 100_000  # characters; longer texts take minutes to embed, so users are warned

# Polled during long work, which raises `Stopped` when it returns true.
ShouldStop = Callable[[], bool]


def never() -> bool:
    """A `ShouldStop` for work that nothing stops."""
    return False


class NeuralvizError(Exception):
    """An error that users can fix; ``str(error)`` says what is wrong and what to do."""


class TextError(NeuralvizError):
    """A text cannot be used: it is empty, or has no token that the model can read."""


class UnreadFileError(TextError):
    """A file cannot be opened or read."""


class UnreadableTextError(TextError):
    """One of several texts cannot be used: ``reason`` says why, ``place`` is its index from 0."""

    def __init__(self, reason: str, place: int, n_texts: int) -> None:
        self.reason = reason
        self.place = place
        subject = f"Text {place + 1}" if n_texts > 1 else "The text"
        super().__init__(f"{subject} {reason}")


class SettingsError(NeuralvizError, ValueError):
    """A setting is invalid, such as a learning rate of 0; also a `ValueError`."""


def check_choice(kind: str, name: object, choices: Collection[str]) -> None:
    """Raise `SettingsError` unless the name of a ``kind`` of thing is among the choices."""
    if name not in choices:
        known = ", ".join(choices)
        raise SettingsError(f"Unknown {kind} “{str(name)[:40]}”. Choose from: {known}.")


class ModelError(NeuralvizError):
    """A model cannot be loaded or used: wrong id, no network, no masked-token head."""


class NoHeadError(ModelError):
    """The model reads texts, but has no head that predicts masked tokens."""


class StoreError(NeuralvizError):
    """The store cannot be read or written: a full disk, a newer version, a lost corpus."""


class WorkerEndedError(NeuralvizError):
    """A worker process ended in the middle of a run."""

    def __init__(self) -> None:
        super().__init__(
            "The process that did this work ended suddenly; the machine may be out of memory. "
            "Finished work is saved. Run it again, with fewer or shorter texts if it ends again."
        )


class Stopped(Exception):  # noqa: N818  not an error
    """Work was stopped midway; whoever stopped it catches this."""


def check_stop(should_stop: Callable[[], bool]) -> None:
    """Raise `Stopped` once work is asked to stop."""
    if should_stop():
        raise Stopped


def describe_unexpected(error: BaseException) -> str:
    """A sentence about an unforeseen error, without the path of the file concerned."""
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
    """The loss of ``n`` of ``n_texts`` texts did not fall during micro-tuning."""

    def __init__(self, n: int, n_texts: int) -> None:
        self.n = n
        super().__init__(
            f"The run diverged on {n:,} of {many(n_texts, 'text')}: the loss rose, or became "
            "infinite or NaN. Lower the learning rate (the paper uses 0.01)."
        )


class LongTextWarning(UserWarning):
    """``n`` of ``n_texts`` texts exceed `LONG_TEXT` characters and take minutes to embed."""

    def __init__(self, n: int, n_texts: int, longest: int) -> None:
        super().__init__(
            f"Very long texts: {n:,} of {n_texts:,}. The longest has {longest:,} characters. "
            "Embedding may take several minutes."
        )


class UnreadTextWarning(UserWarning):
    """A model's tokenizer does not know some texts, or cannot tell them apart."""


def shorten_reason(error: Exception) -> str:
    """A library's error message on one line of at most 150 characters, without a full stop."""
    return (" ".join(str(error).split()) or type(error).__name__)[:150].rstrip(". ")
