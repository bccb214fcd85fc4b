"""Watched runs: told to stop, folded into a record, kept in a file and read again."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.errors import Stopped
from neuralviz.headlines.micro_tuning import describe_learning, describe_progress
from neuralviz.micro_tuning import check_settings, micro_tune, predict_masked
from neuralviz.micro_tuning.blanks import sentence_with_blank
from neuralviz.micro_tuning.events import RUN_FORMAT, RunRecord, WatchedEvent, collect_result
from neuralviz.micro_tuning.inputs import group_inputs, mask_texts
from neuralviz.micro_tuning.predictions import fill_blanks
from neuralviz.micro_tuning.watching import can_follow, watch
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import SENTENCES

TEXTS = ("The old boat left.", "Rain falls on the harbour.", "Yes")
EPOCHS = 3


def watched(model: LanguageModel, **options) -> RunRecord:
    settings = check_settings(model, epochs=EPOCHS, **options)
    return RunRecord(model.id, settings, TEXTS).having(list(watch(model, TEXTS, settings)))


def saved_and_loaded(kept: RunRecord) -> RunRecord:
    return RUN_FORMAT.unpack(RUN_FORMAT.pack(kept))


def test_stop_is_heard_within_a_report(tiny: LanguageModel) -> None:
    """A report reads the text twice, without and with what was learnt."""
    settings = check_settings(tiny, epochs=EPOCHS)
    seen: list[WatchedEvent] = []
    asked_after_tuning: list[bool] = []

    def should_stop() -> bool:
        if len(seen) == EPOCHS:
            asked_after_tuning.append(True)
        return len(asked_after_tuning) == 2

    with pytest.raises(Stopped):
        for event in watch(tiny, TEXTS, settings, should_stop):
            seen.append(event)
    assert len(seen) == EPOCHS


def test_a_long_text_gives_events_as_its_parts_are_read(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has the mean loss of its positions; the run is what it is without these events."""
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", 80)
    long, settings = " ".join(SENTENCES), check_settings(tiny, epochs=2)
    (text,) = tokenize(tiny, [long])
    groups = group_inputs(tiny, mask_texts(tiny, [text], settings))
    (before,) = predict_masked(tiny, text, settings, [None])
    of_group = [before.loss[np.isin(before.input, [i.number for i in group])] for group in groups]
    ends = np.cumsum([len(losses) for losses in of_group]) / len(before)

    record, shares = RunRecord(tiny.id, settings, [long]), []
    for event in watch(tiny, [long], settings):
        record = record.having([event])
        shares.append(record.progress)
        if len(record.parts) == 3 and not record.epochs_reached:
            n_read = sum(map(len, of_group[:3]))
            seen = before.loss[np.isin(before.input, [i.number for g in groups[:3] for i in g])]
            assert record.loss_so_far(0) == pytest.approx(
                (seen.mean(), n_read / len(before)), rel=1e-4
            )
            assert [part.loss for part in record.parts] == pytest.approx(
                [losses.mean() for losses in of_group[:3]], rel=1e-4
            )
            assert "masked words so far" in describe_learning(record, 0)
            again = saved_and_loaded(record)
            assert (again.parts, again.progress) == (record.parts, record.progress)
    assert len(groups) > 4
    np.testing.assert_allclose(shares[: len(ends)], ends / 2)
    assert (np.diff(shares[:-1]) > 0).all()
    assert not record.parts
    is_followed = can_follow(tiny, [text], settings)
    result = collect_result(micro_tune(tiny, long, settings, with_token_shares=is_followed))
    np.testing.assert_array_equal(record.loss, result.loss)
    for kept, delta in zip(record.last, result.deltas, strict=True):
        np.testing.assert_array_equal(kept, delta)


def test_of_several_long_texts_each_has_the_share_and_the_loss_of_its_own_parts(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", 80)
    texts = [" ".join(SENTENCES), " ".join(SENTENCES[::-1])]
    settings = check_settings(tiny, epochs=1)
    record, of_first = RunRecord(tiny.id, settings, texts), []
    for event in watch(tiny, texts, settings):
        record = record.having([event])
        of_first += [record.loss_so_far(0)] * bool(record.parts and record.parts[-1].text == 1)
        assert record.progress < 1 or not record.parts
    assert of_first
    assert of_first[-1] == pytest.approx((record.loss[0, 0], 1), rel=1e-5)  # all of it is read


def test_a_report_has_the_blank_that_its_delta_fills(tiny: LanguageModel) -> None:
    record = saved_and_loaded(watched(tiny))
    for text, report in record.reports.items():
        sentence = sentence_with_blank(TEXTS[text], report)
        (blank,) = fill_blanks(tiny, sentence, [(1.0, record.text_delta(text))])
        assert report.blank == blank


def test_a_record_comes_back_as_it_was(tiny: LanguageModel) -> None:
    """Also of a wild run: a float16 ends at 65,504, and its weights may lie beyond."""
    wild = watched(tiny, learning_rate=1e6)
    assert max(np.nanmax(np.abs(last)) for last in wild.last) > 1e5
    np.testing.assert_allclose(saved_and_loaded(wild).embeddings(), wild.embeddings(), atol=1e-3)
    kept = watched(tiny)
    again = saved_and_loaded(kept)
    assert (again.model_id, again.settings, again.texts) == (tiny.id, kept.settings, TEXTS)
    np.testing.assert_array_equal(again.loss, kept.loss)
    np.testing.assert_allclose(again.embeddings(), kept.embeddings(), atol=1e-3)
    np.testing.assert_allclose(again.delta(0, 1), kept.delta(0, 1), atol=1e-3)
    for index, report in kept.reports.items():
        np.testing.assert_array_equal(again.reports[index].shares, report.shares)
        assert again.reports[index].text.tokens == report.text.tokens
        assert again.reports[index].after.words == report.after.words
    assert again.progress == 1
    assert again.diverged == set()


def test_a_file_of_which_the_history_was_cut(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = sum(layer.size for layer in tiny.layers if layer.name in tiny.head_layers)
    monkeypatch.setattr(
        "neuralviz.micro_tuning.events.HISTORY_BYTES", 4 * EPOCHS * values
    )  # one text
    kept = watched(tiny)
    assert kept.history[0].shape[1] == 1
    again = saved_and_loaded(kept)
    np.testing.assert_allclose(again.embeddings(), kept.embeddings(), atol=1e-3)
    for text in range(len(TEXTS)):
        np.testing.assert_allclose(again.delta(0, text), kept.delta(0, text), atol=1e-3)
        assert len(again.strongest_neurons(0, text)) == 5


@pytest.mark.parametrize("n_events", [0, 4, 6])
def test_a_stopped_run_comes_back_as_it_was_left(
    n_events: int, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before a step, between reports, within the second batch."""
    monkeypatch.setattr("neuralviz.micro_tuning.watching.BATCH", 2)
    settings = check_settings(tiny, epochs=EPOCHS)
    events = list(watch(tiny, TEXTS, settings))
    left = RunRecord(tiny.id, settings, TEXTS).having(events[:n_events])
    again = saved_and_loaded(left)
    assert again.texts_done == left.texts_done
    assert again.progress == left.progress
    assert again.started_texts == left.started_texts
    assert describe_progress(again) == describe_progress(left)
    assert [again.epochs_done(i) for i in left.started_texts] == [
        left.epochs_done(i) for i in left.started_texts
    ]
    assert again.reports.keys() == left.reports.keys()
    np.testing.assert_array_equal(again.loss, left.loss)
    np.testing.assert_array_equal(again.delta_norm, left.delta_norm)
    for mine, theirs in zip(again.last, left.last, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    on = again.having(events[n_events:])  # and it can be gone on with
    assert on.progress == 1
    assert describe_progress(on) == ""
