"""Micro-tuning that somebody watches: batch by batch, with a report on every text."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuralviz.errors import Stopped, never
from neuralviz.micro_tuning.events import MicroTuning, Predictions, TextReport, TuningEvent
from neuralviz.micro_tuning.settings import MAX_FOLLOWED_VALUES, count_masked, followed_values
from neuralviz.models.tokens import TokenizedText, tokenize
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.predictions import MaskedPredictions
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel

BATCH = 16  # most texts tuned on together while somebody watches
BATCH_TOKENS = 512  # and most of their tokens, unless one text alone has more
MAX_PREDICTED = 4000  # masked positions of a text that are predicted for the report
MAX_FOLLOWED_IN_BLOCKS = 64  # tokens of a text; each costs a backward pass through the blocks
WatcherEvents = list[tuple[int, "WatchedEvent | None"]]
"""Events of one step: pairs of a watcher's number and an event, None after the last."""


@dataclass(frozen=True, eq=False)
class WatchedEvent:
    """An epoch of the texts that begin with text ``first``, or the report on one of them."""

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
    """Micro-tune texts batch by batch, with everything a watcher wants to see.

    Raises:
        SettingsError, TextError: before the first event.
        Stopped: ``should_stop``, asked before every pass through the network, said so.
    """
    from neuralviz.micro_tuning.loop import tune

    first = 0
    for batch, follow in batches(model, tokenize(model, texts), settings):
        result = None
        events = tune(
            model,
            batch,
            settings,
            with_deltas=True,
            with_token_shares=follow,
            should_stop=should_stop,
        )
        for event in events:
            result = event.result
            yield WatchedEvent(first, event)
        assert result is not None, "a run's last event carries its result"
        for i in range(len(batch)):
            report = report_on(model, result, i, first + i, should_stop)
            yield WatchedEvent(first, report=report)
        first += len(batch)


def batches(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[tuple[list[TokenizedText], bool]]:
    """Texts in order, in batches of bounded size, and whether their tokens can be followed."""

    def follow(batch: list[TokenizedText]) -> bool:
        return can_follow(model, batch, settings)

    batch: list[TokenizedText] = []  # a long text takes nothing from the short ones around it
    for text in texts:
        grown = [*batch, text]
        followed_alike = follow(batch) == follow([text]) == follow(grown)
        if batch and not (fits_a_batch(grown) and followed_alike):
            yield batch, follow(batch)
            grown = [text]
        batch = grown
    if batch:
        yield batch, follow(batch)


def fits_a_batch(texts: Sequence[TokenizedText]) -> bool:
    """Whether texts are tuned on together."""
    return len(texts) <= BATCH and sum(map(len, texts)) <= BATCH_TOKENS


def can_follow(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> bool:
    """Whether the tokens of texts that are tuned on together can be followed."""
    by_name = {layer.name: layer for layer in model.layers}
    layers = [by_name[name] for name in settings.layers]
    head_only = all(layer.part == "head" for layer in layers)
    return (
        not any(layer.size == model.vocab_size for layer in layers)
        and followed_values(model, texts, settings) <= MAX_FOLLOWED_VALUES
        and (head_only or max(map(len, texts), default=0) <= MAX_FOLLOWED_IN_BLOCKS)
    )


def report_on(
    model: LanguageModel,
    result: MicroTuning,
    i: int,
    index: int,
    should_stop: ShouldStop = never,
) -> TextReport:
    """The report on the ``i``-th text of a batch, which is the ``index``-th of the run."""
    from neuralviz.micro_tuning.predictions import predict_masked

    text, settings = result.texts[i], result.settings
    deltas = [delta[i] for delta in result.deltas]
    before, after = predict_masked(
        model, text, settings, [None, deltas], at_most=MAX_PREDICTED, should_stop=should_stop
    )
    shares = result.shares[i] if result.shares else None
    return TextReport(
        index=index,
        text=text,
        shares=None if shares is None else shares.token_shares(),
        decay_share=0.0 if shares is None else shares.decay_share(),
        predictions=Predictions(
            input=before.input,
            token=before.token,
            before=before.probability,
            after=after.probability,
            loss_before=before.loss,
            loss_after=after.loss,
            words_before=_spell_top_words(model, before),
            words_after=_spell_top_words(model, after),
        ),
        loss_after=compute_loss(after, text, settings),
    )


def compute_loss(
    predictions: MaskedPredictions, text: TokenizedText, settings: TuningSettings
) -> float | None:
    """The loss that tuning minimises, in nats, from predictions of all masked positions.

    None where some were not predicted.
    """
    return predictions.mean_loss if len(predictions) == count_masked(text, settings) else None


def _spell_top_words(
    model: LanguageModel, predictions: MaskedPredictions, top: int = 3
) -> tuple[str, ...]:
    """[position] ``“word” 61%, “other” 12%``."""
    words = model.tokenizer.convert_ids_to_tokens
    return tuple(
        ", ".join(
            f"“{word}” {share:.0%}"
            for word, share in zip(words(ids[:top].tolist()), shares[:top], strict=True)
        )
        for ids, shares in zip(predictions.top_ids, predictions.top_probabilities, strict=True)
    )


def go_together(
    model: LanguageModel, texts: Sequence[Sequence[TokenizedText]], settings: TuningSettings
) -> list[list[int]]:
    """Group watchers, with some texts each, whose texts can be tuned on together.

    Their tokens are followed alike, and all fit a batch; a watcher whose texts take several batches
    is left out. Watchers are numbered by place.
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
    last digits of the sums. ``should_stop`` is of each watcher; the others go on. It yields what
    each step brings to every watcher, who is numbered by place.
    """
    from neuralviz.micro_tuning.loop import tune

    active = list(range(len(texts)))
    ends = [sum(map(len, texts[: number + 1])) for number in active]
    all_texts = [text for watched in texts for text in watched]

    def list_leavers() -> WatcherEvents:
        leavers = [number for number in active if should_stop[number]()]
        for number in leavers:
            active.remove(number)
        return [(number, None) for number in leavers]

    def find_slice(number: int) -> slice:
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
            yield [
                *list_leavers(),
                *((n, WatchedEvent(0, event.select_texts(find_slice(n)))) for n in active),
            ]
    if result is None:
        yield [(number, None) for number in active]
        return
    for number in range(len(texts)):
        own_result = result.select_texts(find_slice(number))
        for index in range(len(texts[number])):
            yield list_leavers()
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
