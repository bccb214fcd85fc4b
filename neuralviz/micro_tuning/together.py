"""Micro-tuning that several people watch: their texts go through the network together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from neuralviz.errors import Stopped
from neuralviz.micro_tuning.loop import tune
from neuralviz.micro_tuning.watching import (
    WatchedEvent,
    batches,
    can_follow,
    fits_a_batch,
    report_on,
)

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.events import MicroTuning
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText

WatcherEvents = list[tuple[int, "WatchedEvent | None"]]
"""Events of one step: pairs of a watcher's number and an event, None after the last."""


def go_together(
    model: LanguageModel, texts: Sequence[Sequence[TokenizedText]], settings: TuningSettings
) -> list[list[int]]:
    """Group watchers, with some texts each, whose texts can be tuned on together.

    Their tokens are followed alike, and all fit a batch; a watcher whose texts take several batches
    is left out.

    Returns:
        Numbers of watchers, in as few groups as their order allows.
    """
    groups: list[list[int]] = []
    latest: dict[bool, list[int]] = {}  # group, by whether its tokens are followed
    for number, watched in enumerate(texts):
        own_batches = list(batches(model, watched, settings))
        if len(own_batches) != 1:
            continue
        follow = own_batches[0][1]
        grown = [text for member in (*latest.get(follow, ()), number) for text in texts[member]]
        fits = fits_a_batch(grown) and can_follow(model, grown, settings) == follow
        if follow in latest and fits:
            latest[follow].append(number)
        else:
            latest[follow] = [number]
            groups.append(latest[follow])
    return groups


def watch_together(
    model: LanguageModel,
    texts: Sequence[Sequence[TokenizedText]],
    settings: TuningSettings,
    should_stop: Sequence[ShouldStop],
) -> Generator[WatcherEvents, None, None]:
    """Micro-tune the texts of several watchers as one batch, each with the events of `watch`.

    Every text learns on its own, so that each watcher gets the numbers of a run alone but for the
    last digits of the sums.

    Args:
        model: is only read.
        texts: of each watcher, as of one of the groups that `go_together` makes.
        settings: of all of them.
        should_stop: of each watcher; the others go on.

    Yields:
        After each step what it brings to every watcher, who is numbered by place.
    """
    active = list(range(len(texts)))
    ends = [sum(map(len, texts[: number + 1])) for number in active]
    all_texts = [text for watched in texts for text in watched]

    def leaving() -> WatcherEvents:
        leavers = [number for number in active if should_stop[number]()]
        for number in leavers:
            active.remove(number)
        return [(number, None) for number in leavers]

    def slice_of(number: int) -> slice:
        return slice(ends[number] - len(texts[number]), ends[number])

    result: MicroTuning | None = None
    with suppress(Stopped):  # all have left
        for event in tune(
            model,
            all_texts,
            settings,
            with_deltas=True,
            with_token_shares=can_follow(model, all_texts, settings),
            should_stop=lambda: all(should_stop[number]() for number in active),
        ):
            result = event.result
            yield [*leaving(), *((n, WatchedEvent(0, event.of_texts(slice_of(n)))) for n in active)]
    if result is None:
        yield [(number, None) for number in active]
        return
    for number in range(len(texts)):
        own_result = result.of_texts(slice_of(number))
        for index in range(len(texts[number])):
            yield leaving()
            if number not in active:
                continue
            try:
                report = report_on(model, own_result, index, index, should_stop[number])
            except Stopped:
                break
            yield [(number, WatchedEvent(0, report=report))]
        if number in active:
            active.remove(number)
            yield [(number, None)]
