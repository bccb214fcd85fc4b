"""The contrastive loop: its loss and gradients, what it leaves alone, and how it goes on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, StoreError, never
from neuralviz.evaluation.measures import kept_vectors
from neuralviz.models import LanguageModel
from neuralviz.training.learner import Learner, make_learner, measure_untrained, pool_tokens
from neuralviz.training.loop import Schedule, restore_training, train
from neuralviz.training.record import (
    Snapshot,
    Trained,
    TrainingEnded,
    TrainingStarted,
    TrainingStep,
    Watch,
)
from neuralviz.training.saving import save_encoder
from neuralviz.training.settings import PairSource, TrainingSettings
from tests.support.models import SENTENCES
from tests.support.trained import CORPUS, SHORT_SENTENCES

FEW = TrainingSettings(**SHORT_SENTENCES, batch_size=4, epochs=2, learning_rate=1e-3)


def steps_of(model: LanguageModel, **options: Any) -> list[TrainingStep]:
    events = train(model, CORPUS, options.pop("settings", FEW), **options)
    return [event for event in events if isinstance(event, TrainingStep)]


def result_of(model: LanguageModel, **options: Any) -> Trained:
    (*_, last) = train(model, CORPUS, options.pop("settings", FEW), **options)
    assert isinstance(last, TrainingEnded)
    return last.result


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_equals_a_plain_loop(tiny: LanguageModel) -> None:
    """Written plainly with transformers and torch, both sides of a batch in one padded input."""
    from transformers import get_linear_schedule_with_warmup

    settings = replace(FEW, epochs=3)
    source = PairSource(CORPUS, settings)
    network = without_dropout(tiny).network.base_model.train().requires_grad_(True)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    plan = get_linear_schedule_with_warmup(adam, 0, 9)
    expected = []
    for epoch in range(3):
        for batch in source.batches(epoch, 4):
            sides = []
            for side in ([one.anchor for one in batch], [one.positive for one in batch]):
                given = tiny.tokenizer(side, padding=True, return_tensors="pt")
                hidden = network(**given).last_hidden_state
                mask = given["attention_mask"][..., None]
                sides.append((hidden * mask).sum(1) / mask.sum(1))
            scores = torch.cosine_similarity(sides[0][:, None], sides[1][None], dim=2) / 0.05
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(4))
            adam.zero_grad()
            loss.backward()
            adam.step()
            plan.step()
            expected.append(loss.item())

    found = [step.loss for step in steps_of(without_dropout(tiny), settings=settings)]
    assert found == pytest.approx(expected, abs=2e-4)


def without_dropout(model: LanguageModel) -> LanguageModel:
    network = copy.deepcopy(model.network)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    network.config.attention_probs_dropout_prob = 0.0
    return replace(model, network=network)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 500), st.integers(1, 5), st.integers(2, 70), st.none() | st.integers(1, 90))
def test_the_learning_rate_goes_as_transformers_has_it(
    n_pairs: int, epochs: int, batch_size: int, max_steps: int | None
) -> None:
    from transformers import get_linear_schedule_with_warmup

    settings = TrainingSettings(epochs=epochs, batch_size=batch_size, max_steps=max_steps)
    schedule = Schedule.from_settings(settings, n_pairs)
    warm_up = round(0.1 * min(schedule.per_epoch, schedule.steps))
    adam = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
    plan = get_linear_schedule_with_warmup(adam, warm_up, schedule.steps)
    for step in range(schedule.steps):
        assert schedule.factor(step) == pytest.approx(adam.param_groups[0]["lr"])
        adam.step()
        plan.step()
    assert schedule.factor(warm_up) == 1


@pytest.mark.parametrize("kind", ["crops", "dropout", "masking"])
def test_a_training_learns_and_leaves_the_model_as_it_was(tiny: LanguageModel, kind: str) -> None:
    before = {name: one.clone() for name, one in tiny.network.state_dict().items()}
    generator = torch.get_rng_state()
    settings = replace(FEW, pairs=kind, start="random", epochs=30, learning_rate=3e-3)
    settings = replace(settings, batch_size=12)
    (_, *steps, ended) = train(tiny, CORPUS, settings)
    assert [step.step for step in steps] == list(range(1, 31))
    assert np.mean([one.loss for one in steps[-6:]]) < 0.8 * steps[0].loss
    assert isinstance(ended, TrainingEnded)
    assert not ended.result.diverged
    assert same(before, dict(tiny.network.state_dict()))
    assert not any(one.requires_grad for one in tiny.network.parameters())
    assert not tiny.network.training
    assert torch.equal(generator, torch.get_rng_state())


def test_alignment_and_uniformity_are_those_of_wang_and_isola(tiny: LanguageModel) -> None:
    from neuralviz.evaluation.measures import alignment_and_uniformity

    model = without_dropout(tiny)
    (first, *_) = steps_of(model, settings=replace(FEW, max_steps=1))
    source = PairSource(CORPUS, FEW)
    pairs = next(source.batches(0, 4))
    learner = make_learner(model, FEW)
    with torch.no_grad():
        anchors = learner.vectors([one.anchor for one in pairs]).numpy()
        positives = learner.vectors([one.positive for one in pairs]).numpy()
    alike = np.stack([np.arange(4), np.arange(4) + 4], axis=1)
    both = alignment_and_uniformity(np.concatenate([anchors, positives]), alike)
    assert first.alignment == pytest.approx(both.alignment, abs=1e-5)
    none = np.zeros((0, 2), dtype=int)
    assert first.uniformity == pytest.approx(
        alignment_and_uniformity(anchors, none).uniformity, abs=1e-5
    )


def test_dropout_is_on_while_training_and_masks_differ_between_sides(tiny: LanguageModel) -> None:
    (step, *_) = steps_of(tiny, settings=replace(FEW, pairs="dropout"))
    assert step.alignment > 1e-4  # one chunk twice: only dropout tells them apart
    (step, *_) = steps_of(without_dropout(tiny), settings=replace(FEW, pairs="masking", masked=0.5))
    assert step.alignment > 1e-4
    (step, *_) = steps_of(without_dropout(tiny), settings=replace(FEW, pairs="dropout"))
    assert step.alignment < 1e-9


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "modernbert", "deberta-v2"])
def test_frozen_blocks_of_every_family_give_the_same_vectors_as_before(
    small_model: Callable[[str], LanguageModel], family: str
) -> None:
    model = small_model(family)
    learner = result_of(model, settings=replace(FEW, frozen_blocks=1)).learner
    before = make_learner(model, FEW).eval()
    with torch.no_grad():
        was, now = (one.of_layers(CORPUS[:3]) for one in (before, learner.eval()))
    for layer in (0, 1):
        np.testing.assert_array_equal(was[layer], now[layer])
    assert (was[-1] != now[-1]).any()


def test_the_table_alone_is_the_mean_of_token_embeddings(tiny: LanguageModel) -> None:
    learner = make_learner(tiny, TrainingSettings(part="table"))
    table = tiny.network.get_input_embeddings().weight
    ids = tiny.encoder.encode(SENTENCES[0], add_special_tokens=False).ids
    vectors = learner.vectors([SENTENCES[0], SENTENCES[1] + SENTENCES[2]])
    torch.testing.assert_close(vectors[0], table[ids].mean(0))
    settings = replace(FEW, part="table", learning_rate=0.05, epochs=5)
    result = result_of(tiny, settings=settings)
    assert result.loss[-1] < result.loss[0]


def test_poolings_take_the_tokens_they_are_named_after() -> None:
    vectors = torch.arange(2 * 9, dtype=torch.float32).reshape(2, 9, 1)
    attention = torch.tensor([[1] * 9, [1] * 4 + [0] * 5])
    found = {
        pooling: pool_tokens(vectors, attention, pooling).squeeze(1).tolist()
        for pooling in ("mean", "cls", "sep", "seventh")
    }
    assert found == {"mean": [4, 10.5], "cls": [0, 9], "sep": [8, 12], "seventh": [6, 12]}


@pytest.mark.parametrize("pooling", ["mean", "cls", "sep", "seventh"])
def test_texts_of_any_length_come_back_in_order_and_are_cut_at_the_window(
    tiny: LanguageModel, pooling: str
) -> None:
    texts = [" ".join(SENTENCES[: i % 5 + 1]) for i in range(37)] + ["?"]
    learner = make_learner(tiny, TrainingSettings(pooling=pooling)).eval()
    with torch.no_grad():
        together = learner.vectors(texts)
        alone = torch.cat([learner.vectors([text]) for text in texts])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    layers = learner.of_layers(texts, is_whole=False)
    assert layers.shape == (tiny.n_blocks + 1, len(texts), tiny.d_model)
    np.testing.assert_allclose(layers[-1], together.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_text_is_measured_whole_as_plain_transformers_reads_its_chunks(
    tiny: LanguageModel, pooling: str
) -> None:
    """A text of three sentences of which two never fit into one window of 40 tokens."""
    text = " ".join(SENTENCES[i] for i in (0, 5, 2))
    assert len(tiny.tokenizer(text)["input_ids"]) > 2 * tiny.window
    settings = TrainingSettings(pooling=pooling)
    (found,) = make_learner(tiny, settings).of_layers([text])[-1]
    with torch.no_grad():
        chunks = [
            tiny.network.base_model(**tiny.tokenizer(SENTENCES[i], return_tensors="pt"))
            for i in (0, 5, 2)
        ]
    states = [one.last_hidden_state[0] for one in chunks]
    first = torch.stack([one[0] for one in states])
    expected = (torch.cat(states) if pooling == "mean" else first).mean(0)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("options", [{"part": "table"}, {"start": "random"}, {"pooling": "cls"}])
def test_less_than_the_whole_model_is_measured_against_it(
    tiny: LanguageModel, tmp_path: Path, options: dict[str, Any]
) -> None:
    """By sklearn's own nearest neighbours of the means that plain transformers gives."""
    from sklearn.neighbors import NearestNeighbors

    texts = [*CORPUS, *SENTENCES, " "]
    labels = [str(i % 3) for i in range(len(texts))]
    settings = TrainingSettings(**options)
    watch, store = Watch(texts, labels, k=3), kept_vectors(tmp_path)
    found = measure_untrained(tiny, settings, watch, store)

    vectors = np.zeros((len(texts), tiny.d_model))
    for place, text in enumerate(texts[:-1]):
        with torch.no_grad():
            out = tiny.network.base_model(**tiny.tokenizer(text, return_tensors="pt"))
        vectors[place] = out.last_hidden_state[0].mean(0)
    near = NearestNeighbors(n_neighbors=3, metric="cosine").fit(vectors[:-1])
    of_others = near.kneighbors(return_distance=False)
    votes = [[labels[j] for j in row] for row in of_others]
    clear = [row for row in zip(votes, labels, strict=False) if len(set(row[0])) < 3]
    n_right = sum(max(vote, key=vote.count) == label for vote, label in clear)
    assert found is not None
    n_unclear = len(texts) - len(clear)
    assert n_right <= round(found * len(texts)) <= n_right + n_unclear
    assert found == measure_untrained(tiny, settings, watch, store)  # kept


@pytest.mark.parametrize("part", ["model", "table"])
@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_stopped_training_goes_on_and_ends_bit_for_bit_as_an_undisturbed_one(
    tiny: LanguageModel, tmp_path: Path, stop_after: int, part: str
) -> None:
    rate = 0.05 if part == "table" else 1e-3
    settings = replace(FEW, part=part, learning_rate=rate)
    whole = result_of(tiny, settings=settings)
    assert restore_training(tiny, CORPUS, settings, tmp_path) is None
    asked = iter(range(stop_after))
    stopped = result_of(
        tiny, settings=settings, folder=tmp_path, should_stop=lambda: next(asked, None) is None
    )
    assert (stopped.step, stopped.steps) == (stop_after + 1, 6)
    restored = restore_training(tiny, CORPUS, settings, tmp_path)
    assert restored is not None
    assert (restored.step, restored.learner.training) == (stop_after + 1, False)
    assert same(stopped.learner.state_dict(), restored.learner.state_dict())
    (started, *steps, ended) = train(tiny, CORPUS, settings, folder=tmp_path)
    assert isinstance(started, TrainingStarted)
    assert started.step == stop_after + 1
    assert len(steps) == 6 - stop_after - 1
    assert isinstance(ended, TrainingEnded)
    assert same(whole.learner.state_dict(), ended.result.learner.state_dict())
    np.testing.assert_array_equal(whole.loss, ended.result.loss)
    (started, ended) = train(tiny, CORPUS, settings, folder=tmp_path)  # nothing is made again
    assert started.step == started.steps == 6
    assert same(whole.learner.state_dict(), ended.result.learner.state_dict())


def test_a_folder_of_another_training_is_refused(tiny: LanguageModel, tmp_path: Path) -> None:
    result_of(tiny, folder=tmp_path)
    for texts, seed in ((CORPUS, 1), ([*CORPUS, *CORPUS[:2]], FEW.seed)):
        with pytest.raises(NeuralvizError, match="another model, other texts or other settings"):
            list(train(tiny, texts, replace(FEW, seed=seed), folder=tmp_path))
    (newest,) = tmp_path.glob("step-*")
    newest.write_bytes(b"spoilt")
    with pytest.raises(StoreError, match="Delete it to start again"):
        steps_of(tiny, folder=tmp_path)
    with pytest.raises(StoreError, match="Could not save the training"):
        steps_of(tiny, folder=newest / "inside")


def test_a_learning_rate_that_is_far_too_high_keeps_the_best_weights(tiny: LanguageModel) -> None:
    settings = replace(FEW, learning_rate=1e6, epochs=3)
    result = result_of(tiny, settings=settings)
    assert result.diverged
    assert all(torch.isfinite(one).all() for one in result.learner.state_dict().values())
    start = make_learner(tiny, settings).state_dict()
    assert same(start, dict(result.learner.state_dict()))


def test_a_stop_during_a_snapshot_ends_at_once_and_keeps_the_steps(
    tiny: LanguageModel, tmp_path: Path
) -> None:
    class Interrupted(Watch):
        def look(self, learner: Learner, step: int, should_stop: ShouldStop = never) -> Snapshot:
            return super().look(learner, step, lambda: True)

    watch = Interrupted(CORPUS)
    with pytest.raises(Stopped):
        next(train(tiny, CORPUS, FEW, watch=watch))
    with pytest.raises(Stopped):
        list(train(tiny, CORPUS, FEW, watch=watch, watch_before=False, watch_every=2,
                   folder=tmp_path))  # fmt: skip
    assert next(train(tiny, CORPUS, FEW, folder=tmp_path)).step == 2
    events = train(tiny, CORPUS, FEW, folder=tmp_path)
    assert [next(events).step for _ in range(2)] == [2, 3]
    events.close()  # nobody listens any more
    assert next(train(tiny, CORPUS, FEW, folder=tmp_path)).step == 3


def test_a_disk_that_is_full_at_the_tokenizer_leaves_nothing_behind(
    tiny: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*_: Any, **__: Any) -> None:
        raise Exception("No space left on device (os error 28)")  # as tokenizers has it

    result = result_of(tiny)
    monkeypatch.setattr(type(tiny.tokenizer), "save_pretrained", save)
    with pytest.raises(NeuralvizError, match=r"Could not write .*: No space left"):
        save_encoder(result, tiny, tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []
