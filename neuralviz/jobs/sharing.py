"""Micro-tuning of short texts from several runs in shared batches, on one thread."""

from __future__ import annotations

import atexit
import queue
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuralviz.micro_tuning.watching import WatchedEvent, go_together, watch, watch_together
from neuralviz.models.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning import TuningSettings
    from neuralviz.models import LanguageModel


@dataclass(eq=False)
class _Member:
    """A run's texts, and an inbox for its events and, at the end, None or an error."""

    model: LanguageModel
    texts: Sequence[TokenizedText]
    settings: TuningSettings
    should_stop: ShouldStop
    inbox: queue.SimpleQueue[WatchedEvent | BaseException | None] = field(
        default_factory=queue.SimpleQueue
    )


_arrivals: queue.SimpleQueue[_Member] = queue.SimpleQueue()
_lock = threading.Lock()
_thread: threading.Thread | None = None
_step = threading.Lock()  # held during a step
# A thread inside torch when Python ends would crash the process.
atexit.register(_step.acquire)


def watch_with_others(
    model: LanguageModel, texts: Sequence[str], settings: TuningSettings, should_stop: ShouldStop
) -> Generator[WatchedEvent, None, None]:
    """Micro-tune like `watch`, in one batch with texts of other runs where they fit."""
    tokens = tokenize(model, texts)
    if not go_together(model, [tokens], settings):
        yield from watch(model, texts, settings, should_stop)
        return
    has_left = threading.Event()
    member = _Member(model, tokens, settings, lambda: has_left.is_set() or should_stop())
    _arrivals.put(member)
    _start_thread()
    try:
        while (event := member.inbox.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        has_left.set()


def _start_thread() -> None:
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_tune_all, name="neuralviz-sharing", daemon=True)
            _thread.start()


def _tune_all() -> None:
    """Compute a step of each batch in turn, for ever."""
    batches: deque[Iterator[None]] = deque()
    while True:
        arrived = [] if batches else [_arrivals.get()]
        with suppress(queue.Empty):
            while True:
                arrived.append(_arrivals.get_nowait())
        batches.extendleft(_make_batches(arrived))  # new runs see their first step soon
        batch = batches.popleft()
        with _step, suppress(StopIteration):
            next(batch)
            batches.append(batch)


def _make_batches(arrived: Iterable[_Member]) -> list[Iterator[None]]:
    alike: dict[tuple[int, TuningSettings], list[_Member]] = {}
    for member in arrived:
        alike.setdefault((id(member.model), member.settings), []).append(member)
    return [
        _tune_batch([members[number] for number in group])
        for members in alike.values()
        for group in go_together(
            members[0].model, [member.texts for member in members], members[0].settings
        )
    ]


def _tune_batch(members: Sequence[_Member]) -> Iterator[None]:
    """Tune on the texts of runs, a step at a time, and put events into their inboxes."""
    end: BaseException | None = None
    try:
        for step in watch_together(
            members[0].model,
            [member.texts for member in members],
            members[0].settings,
            [member.should_stop for member in members],
        ):
            for number, event in step:
                members[number].inbox.put(event)
            yield
    except BaseException as error:  # no run may wait for ever
        end = error
    for member in members:
        member.inbox.put(end)
