"""Watched micro-tuning: batch by batch, with a report on every text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from neuralviz.errors import NeuralvizError, SettingsError, ShouldStop, TextError, check_stop, never
from neuralviz.micro_tuning.blanks import sentence_with_blank
from neuralviz.micro_tuning.events import (
    HARDLY_READ,
    JUDGED,
    MicroTuning,
    TextDelta,
    TextReport,
    WatchedEvent,
)
from neuralviz.micro_tuning.settings import (
    MAX_FOLLOWED_VALUES,
    TuningSettings,
    check_settings,
    count_masked,
    followed_values,
)
from neuralviz.models import BUNDLED, LanguageModel
from neuralviz.models.bundled import text_reader
from neuralviz.models.shared import JUDGES, ModelRef, shared_lens_model
from neuralviz.models.tokens import TokenizedText, batch_while, tokenize

BATCH = 16  # texts per watched batch, at most
BATCH_TOKENS = 512  # tokens per batch, unless a single text has more
MAX_PREDICTED = 4000  # masked positions per text in the report, at most
MAX_FOLLOWED_IN_BLOCKS = 64  # tokens of a text; each costs a backward pass through the blocks


def watch(
    model: LanguageModel,
    texts: Sequence[str],
    settings: TuningSettings,
    should_stop: ShouldStop = never,
) -> Iterator[WatchedEvent]:
    """Micro-tune in batches, with deltas, token shares where affordable, and a report per text.

    An epoch of a text longer than the model's window gives events as its parts are read.
    """
    from neuralviz.micro_tuning.loop import tune

    first = 0
    for batch in batches(model, tokenize(model, texts), settings):
        result: MicroTuning | None = None
        for event in tune(
            model,
            batch,
            settings,
            with_deltas=True,
            with_token_shares=can_follow(model, batch, settings),
            with_parts=any(len(text.chunks) > 1 for text in batch),
            should_stop=should_stop,
        ):
            result = event.result
            yield WatchedEvent(first, event)
        assert result is not None, "a run's last event carries its result"
        for place in range(len(batch)):
            report = _report_on(model, result, place, first + place, should_stop)
            yield WatchedEvent(first, report=report)
        first += len(batch)


def find_hardly_read(
    model_id: str, texts: Sequence[str], should_stop: ShouldStop = never
) -> tuple[int, ...]:
    """Places of the texts that a run with the paper's settings reports as hardly read.

    Of a model without layers to tune, only texts that are spelt out are known to be so.
    """
    judge, places = ModelRef.from_id(JUDGES.get(model_id, model_id)), []
    for place, text in enumerate(texts):
        check_stop(should_stop)
        places += [place] * _is_hardly_read(judge, text)
    return tuple(places)


@lru_cache(maxsize=1000)
def _is_hardly_read(judge: ModelRef, content: str) -> bool:
    reader = text_reader() if judge.id == BUNDLED else shared_lens_model(judge.id)
    (text,) = tokenize(reader, [content])
    n, n_words = text.in_pieces.sum(), len(text.in_pieces)
    is_doubtful = any(n >= max(fewest, share * n_words) for fewest, share, _ in HARDLY_READ)
    model = shared_lens_model(judge.id) if is_doubtful and not text.is_spelt_out else None
    if isinstance(model, LanguageModel):
        from neuralviz.micro_tuning.predictions import predict_masked

        with suppress(NeuralvizError):  # no layers that can be tuned
            settings = check_settings(model)
            (before,) = predict_masked(model, text, settings, [None], 1, at_most=JUDGED)
            return TextReport(0, text, None, 0.0, before, before, None).is_hardly_read
    return text.is_spelt_out


def batches(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[list[TokenizedText]]:
    """Texts in order, in bounded batches; all tokens of a batch can be followed, or none."""

    def fits(batch: list[TokenizedText], text: TokenizedText) -> bool:
        grown = [*batch, text]  # a long text takes nothing from the short ones around it
        ways = {can_follow(model, candidate, settings) for candidate in (batch, [text], grown)}
        return len(ways) == 1 and len(grown) <= BATCH and sum(map(len, grown)) <= BATCH_TOKENS

    return batch_while(texts, fits)


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


def _report_on(
    model: LanguageModel, result: MicroTuning, i: int, index: int, should_stop: ShouldStop
) -> TextReport:
    from neuralviz.micro_tuning.predictions import fill_blanks, predict_masked

    text, settings = result.texts[i], result.settings
    deltas = [delta[i] for delta in result.deltas]
    before, after = predict_masked(
        model, text, settings, [None, deltas], 3, at_most=MAX_PREDICTED, should_stop=should_stop
    )
    shares = result.shares[i] if result.shares and not result.shares[i].do_cancel else None
    is_whole = len(after) == count_masked(text, settings)
    report = TextReport(
        index=index,
        text=text,
        shares=None if shares is None else shares.token_shares(),
        decay_share=0.0 if shares is None else shares.decay_share(),
        before=before,
        after=after,
        loss_after=after.mean_loss if is_whole else None,
    )
    sentence = sentence_with_blank(text.text, report)
    with suppress(SettingsError, TextError):  # not finite, or too long for a small window
        delta = TextDelta(result.model_id, settings.layers, tuple(deltas))
        (blank,) = fill_blanks(model, sentence, [(1.0, delta)])
        return replace(report, blank=blank)
    return report
