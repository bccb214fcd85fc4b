"""Micro-tuning of short texts: those that several runs bring at about the same time are one batch.

One thread of the process does them all, a step of each batch in turn; runs that arrive during a
step begin with the next. A run that takes several batches has its turns, too, but goes alone.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuralviz import micro_tuning
from neuralviz.micro_tuning.watching import WatchedEvent, watch
from neuralviz.models.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning import TuningSettings
    from neuralviz.micro_tuning.watching import WatcherEvents
    from neuralviz.models import LanguageModel


@dataclass(eq=False)
class _Member:
    """A run's texts; its inbox gets the events, and at the end None or an error."""

    model: LanguageModel
    texts: Sequence[TokenizedText]
    settings: TuningSettings
    should_stop: ShouldStop
    is_alone: bool  # because the texts take several batches
    inbox: queue.SimpleQueue[WatchedEvent | BaseException | None] = field(
        default_factory=queue.SimpleQueue
    )


_arrivals: queue.SimpleQueue[_Member] = queue.SimpleQueue()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def watch_with_others(
    model: LanguageModel, texts: Sequence[str], settings: TuningSettings, should_stop: ShouldStop
) -> Generator[WatchedEvent, None, None]:
    """Micro-tune texts as `watch` does, in one batch with the texts of other runs where possible.

    Raises:
        What `watch` raises.
    """
    global _thread
    tokens = tokenize(model, texts)
    is_alone = not micro_tuning.go_together(model, [tokens], settings)
    left = threading.Event()
    member = _Member(model, tokens, settings, lambda: left.is_set() or should_stop(), is_alone)
    _arrivals.put(member)
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_tune_all, name="neuralviz-sharing", daemon=True)
            _thread.start()
    try:
        while (event := member.inbox.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        left.set()


def _tune_all() -> None:
    """Tune on the texts of whoever arrives, for ever."""
    groups: deque[Iterator[None]] = deque()
    while True:
        arrived = [] if groups else [_arrivals.get()]
        with suppress(queue.Empty):
            while True:
                arrived.append(_arrivals.get_nowait())
        groups.extendleft(_group_members(arrived))  # whoever arrives sees the first step soon
        group = groups.popleft()
        with suppress(StopIteration):
            next(group)
            groups.append(group)


def _group_members(arrived: Iterable[_Member]) -> list[Iterator[None]]:
    """The work of runs that have just arrived; what can be one batch is."""
    works = []
    alike: dict[tuple[int, TuningSettings], list[_Member]] = {}
    for member in arrived:
        if member.is_alone:
            works.append(_hand_out([member], _tune_alone(member)))
        else:
            alike.setdefault((id(member.model), member.settings), []).append(member)
    for members in alike.values():
        texts = [member.texts for member in members]
        for group in micro_tuning.go_together(members[0].model, texts, members[0].settings):
            grouped = [members[number] for number in group]
            works.append(_hand_out(grouped, _tune_batch(grouped)))
    return works


def _tune_alone(member: _Member) -> Iterator[WatcherEvents]:
    texts = [text.text for text in member.texts]
    for event in watch(member.model, texts, member.settings, member.should_stop):
        yield [(0, event)]


def _tune_batch(members: Sequence[_Member]) -> Iterator[WatcherEvents]:
    return micro_tuning.watch_together(
        members[0].model,
        [member.texts for member in members],
        members[0].settings,
        [member.should_stop for member in members],
    )


def _hand_out(members: Sequence[_Member], steps: Iterable[WatcherEvents]) -> Iterator[None]:
    """Tune on the texts of runs, a step at a time, and put the events into their inboxes."""
    end: BaseException | None = None
    try:
        for step in steps:
            for number, event in step:
                members[number].inbox.put(event)
            yield
    except BaseException as error:  # nobody may wait for ever
        end = error
    for member in members:
        member.inbox.put(end)
