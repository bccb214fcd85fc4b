"""Watched micro-tuning: batch by batch, with a report on every text."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import Stopped, never
from neuralviz.micro_tuning.events import MicroTuning, TextReport, TuningEvent
from neuralviz.micro_tuning.settings import MAX_FOLLOWED_VALUES, count_masked, followed_values
from neuralviz.models.tokens import TokenizedText, batch_while, tokenize
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel

BATCH = 16  # texts per watched batch, at most
BATCH_TOKENS = 512  # tokens per batch, unless a single text has more
MAX_PREDICTED = 4000  # masked positions per text in the report, at most
MAX_FOLLOWED_IN_BLOCKS = 64  # tokens of a text; each costs a backward pass through the blocks
# one step's events by watcher number; None ends a watcher's run
WatcherEvents = list[tuple[int, "WatchedEvent | Stopped | None"]]


@dataclass(frozen=True, eq=False)
class WatchedEvent:
    """An epoch of a batch whose first text is number ``first``, or the report on one text."""

    __repr__ = short_repr

    first: int
    event: TuningEvent | None = None
    report: TextReport | None = None


def watch(
    model: LanguageModel,
    texts: Sequence[str],
    settings: TuningSettings,
    should_stop: ShouldStop = never,
) -> Iterator[WatchedEvent]:
    """Micro-tune in batches, with deltas, token shares where affordable, and a report per text."""
    first = 0
    for batch in batches(model, tokenize(model, texts), settings):
        for step in watch_together(model, [batch], settings, [should_stop], first):
            for _, event in step:
                if isinstance(event, Stopped):
                    raise event
                if event is not None:
                    yield event
        first += len(batch)


def batches(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[list[TokenizedText]]:
    """Texts in order, in bounded batches; all tokens of a batch can be followed, or none."""

    def fits(batch: list[TokenizedText], text: TokenizedText) -> bool:
        grown = [*batch, text]  # a long text takes nothing from the short ones around it
        ways = {can_follow(model, candidate, settings) for candidate in (batch, [text], grown)}
        return fits_a_batch(grown) and len(ways) == 1

    return batch_while(texts, fits)


def fits_a_batch(texts: Sequence[TokenizedText]) -> bool:
    return len(texts) <= BATCH and sum(map(len, texts)) <= BATCH_TOKENS


def can_follow(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> bool:
    """Whether the tokens of texts tuned together can be followed at acceptable cost."""
    by_name = {layer.name: layer for layer in model.layers}
    layers = [by_name[name] for name in settings.layers]
    head_only = all(layer.part == "head" for layer in layers)
    return (
        not any(layer.size == model.vocab_size for layer in layers)
        and followed_values(model, texts, settings) <= MAX_FOLLOWED_VALUES
        and (head_only or max(map(len, texts), default=0) <= MAX_FOLLOWED_IN_BLOCKS)
    )


def report_on(
    model: LanguageModel, result: MicroTuning, i: int, index: int, should_stop: ShouldStop
) -> TextReport:
    from neuralviz.micro_tuning.predictions import predict_masked

    text, settings = result.texts[i], result.settings
    deltas = [delta[i] for delta in result.deltas]
    before, after = predict_masked(
        model, text, settings, [None, deltas], 3, at_most=MAX_PREDICTED, should_stop=should_stop
    )
    shares = result.shares[i] if result.shares else None
    is_whole = len(after) == count_masked(text, settings)
    return TextReport(
        index=index,
        text=text,
        shares=None if shares is None else shares.token_shares(),
        decay_share=0.0 if shares is None else shares.decay_share(),
        before=before,
        after=after,
        loss_after=after.mean_loss if is_whole else None,
    )


def go_together(
    model: LanguageModel, texts: Sequence[Sequence[TokenizedText]], settings: TuningSettings
) -> list[list[int]]:
    """Group watchers, by index, whose texts fit one batch and are followed alike, or omit them."""
    groups: list[list[int]] = []
    latest: dict[bool, list[int]] = {}  # group, by whether its tokens are followed
    for number, watched in enumerate(texts):
        if len(list(batches(model, watched, settings))) != 1:
            continue
        follow = can_follow(model, watched, settings)
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
    first: int = 0,
) -> Generator[WatcherEvents, None, None]:
    """Tune several watchers' texts as one batch and yield each step's events by watcher."""
    # as separate runs, up to rounding; one who stops does not stop the others; ``first`` is the
    # number of each watcher's first text
    from neuralviz.micro_tuning.loop import tune

    all_texts = [text for watched in texts for text in watched]
    ends = np.cumsum([0, *map(len, texts)]).tolist()
    slices = [slice(*bounds) for bounds in pairwise(ends)]
    active = list(range(len(texts)))

    def list_leavers() -> WatcherEvents:
        leavers = [number for number in active if should_stop[number]()]
        for number in leavers:
            active.remove(number)
        return [(number, Stopped()) for number in leavers]

    result: MicroTuning | None = None
    try:
        for event in tune(
            model,
            all_texts,
            settings,
            with_deltas=True,
            with_token_shares=can_follow(model, all_texts, settings),
            should_stop=lambda: all(should_stop[number]() for number in active),
        ):
            result = event.result
            yield [
                *list_leavers(),
                *((n, WatchedEvent(first, event.select_texts(slices[n]))) for n in active),
            ]
    except Stopped as stopped:  # all have left
        yield [(number, stopped) for number in active]
        return
    assert result is not None, "a run's last event carries its result"
    for number, own_texts in enumerate(slices):
        end: Stopped | None = None
        for index in range(len(texts[number])):
            yield list_leavers()
            if number not in active:
                break
            try:
                place = own_texts.start + index
                report = report_on(model, result, place, first + index, should_stop[number])
            except Stopped as stopped:
                end = stopped
                break
            yield [(number, WatchedEvent(first, report=report))]
        if number in active:
            active.remove(number)
            yield [(number, end)]
