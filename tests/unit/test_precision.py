"""Exact against the plain loop, fast and bfloat16 against exact, over models drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralviz
from neuralviz.errors import SettingsError, Stopped
from neuralviz.micro_tuning import MicroTuning, check_settings, micro_tune
from neuralviz.micro_tuning.frozen_tail import FrozenTail
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE, PRECISIONS
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import SENTENCES, TEXTS
from tests.support.plain_loop import plain_embedding, plain_micro_tune
from tests.support.random_cases import (
    BLUEPRINTS,
    FAMILIES,
    LAYERS,
    LENGTHS,
    RATES,
    SPREADS,
    TOLERANCES,
    WIDTHS,
    Case,
    case_for_fast,
    drawn_case,
)
from tests.support.shares import check_shares_sum

ALIKE = 0.99999
ROUNDING = 1e-6  # of a cosine of float32 vectors
NOT_HERE = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=NOT_HERE)]


def tuned(model: LanguageModel, texts: Sequence[str], **options) -> MicroTuning:
    *_, last = micro_tune(model, texts, **options)
    return last.result


def cosines(one: MicroTuning, other: MicroTuning) -> np.ndarray:
    return np.sum(one.embeddings * other.embeddings, axis=1)


def cases(layers: Sequence[str] = tuple(LAYERS), min_epochs: int = 1) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        family=st.sampled_from(FAMILIES),
        vocab=st.integers(60, 3000).filter(lambda vocab: vocab not in WIDTHS),
        width=st.sampled_from(WIDTHS),
        n_blocks=st.integers(1, 4),
        spread=st.sampled_from(SPREADS),
        seed=st.integers(0, 10_000),
        lengths=st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=3).map(tuple),
        layers=st.sampled_from(layers),
        blueprints=st.sampled_from(BLUEPRINTS),
        epochs=st.integers(min_epochs, 12),
        learning_rate=st.sampled_from(RATES),
    )


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_exact_is_the_plain_loop(device: str) -> None:
    @settings(deadline=None, max_examples=12, derandomize=True)
    @given(cases())
    def check(case: Case) -> None:
        model = case.model(device)
        options = case.options(model)
        result = tuned(model, case.texts, **options)
        assert not result.diverged.any()
        names = options.pop("layers")
        for index, tokens in enumerate(tokenize(model, case.texts)):
            chunks = [tokens.ids[chunk].tolist() for chunk in tokens.chunks]
            deltas, losses = plain_micro_tune(
                model.network, model.tokenizer, chunks, names, **options
            )
            np.testing.assert_allclose(result.loss[0, index], losses[0], rtol=1e-4)
            assert plain_embedding(deltas) @ result.embeddings[index] >= ALIKE

    check()


# --- fast --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_fast_keeps_to_the_tolerance_on_random_models(device: str, monkeypatch) -> None:
    """The tolerance is an estimate, and words drawn at random are where it is at its worst.

    Of 1,800 texts drawn like these one lost more than the tolerance, 1.2 times as much.
    """
    made = []
    init = FrozenTail.__init__
    monkeypatch.setattr(
        FrozenTail, "__init__", lambda s, *a, **k: (made.append(1), init(s, *a, **k))[1]
    )
    n_followed = 0
    for seed in range(30):
        case, tolerance = case_for_fast(seed)
        if not case.has_frozen_tail(tolerance):
            continue
        n_followed += 1
        model = case.model(device)
        options = case.options(model)
        made.clear()
        fast = tuned(model, case.texts, **options, precision="fast", tolerance=tolerance)
        assert made
        assert not fast.diverged.any()
        exact = tuned(model, case.texts, **options)
        lost = 1 - cosines(exact, fast)
        assert lost.max() <= tolerance + ROUNDING, (case, lost)
    assert n_followed >= 7


@pytest.fixture(scope="module")
def on_device(bundled: LanguageModel) -> Callable[[str], LanguageModel]:
    """The bundled model, on a device, with a window of 10 tokens: long texts have chunks."""
    load = cache(lambda device: neuralviz.load_model("bundled", device=device))
    return lambda device: replace(bundled if device == "cpu" else load(device), window=10)


EPOCHS = 5
REAL_TEXTS = ("a", "The dog barks.", "Bread is baked at night.", SENTENCES[1])


@pytest.fixture(scope="module")
def exactly(on_device) -> Callable[[str, str], MicroTuning]:
    """The real texts by the bundled model: device, then layers."""

    @cache
    def tune(device: str, layers: str) -> MicroTuning:
        return tuned(on_device(device), REAL_TEXTS, layers=layers, epochs=EPOCHS)

    return tune


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("tolerance", "layers"),
    [
        (TOLERANCES[0], "head"),
        pytest.param(TOLERANCES[-1], "head", marks=pytest.mark.slow),
        pytest.param(TOLERANCES[-1], "last_block", marks=pytest.mark.slow),
    ],
)
def test_fast_keeps_to_the_tolerance_on_the_bundled_model(
    tolerance: float, layers: str, device: str, on_device, exactly
) -> None:
    exact = exactly(device, layers)
    assert [len(text.chunks) for text in exact.texts] == [1, 1, 1, 2]
    model = on_device(device)
    options = {"layers": layers, "epochs": EPOCHS, "tolerance": tolerance}
    fast = tuned(model, REAL_TEXTS, **options, precision="fast")
    lost = 1 - cosines(exact, fast)
    assert lost.max() <= tolerance
    assert lost.max() > 1e-7  # something was left out
    assert not fast.loss_rose.any()
    np.testing.assert_allclose(fast.loss[0], exact.loss[0], rtol=1e-5)


def test_a_gpu_gives_what_a_cpu_gives(on_device, exactly) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    assert cosines(exactly("cpu", "head"), exactly("cuda", "head")).min() >= ALIKE
    on_both = [tuned(on_device(at), REAL_TEXTS, precision="fast") for at in ("cpu", "cuda")]
    assert cosines(*on_both).min() >= 1 - DEFAULT_TOLERANCE


@pytest.fixture
def _few_candidates(monkeypatch) -> None:
    """Fast follows few words in small vocabularies, too, where it would not spare much."""
    monkeypatch.setattr("neuralviz.micro_tuning.frozen_tail.CANDIDATES", 16)


@pytest.mark.usefixtures("_few_candidates")
@pytest.mark.parametrize("layers", ["output bias", "output bias and head"])
def test_an_output_bias_is_tuned_exactly(layers: str, tiny: LanguageModel) -> None:
    """It moves every word: nothing can be left out, and nothing is."""
    names = LAYERS[layers](tiny)
    exact, fast = (
        tuned(tiny, list(TEXTS.values()), layers=names, precision=precision)
        for precision in ("exact", "fast")
    )
    for one, other in zip(exact.deltas, fast.deltas, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_text_stays_in_one_piece(monkeypatch) -> None:
    """Two pieces of it would have candidates of their own."""
    model = replace(drawn_case(0), vocab=2000).model()
    texts = [" ".join(f"w{3 * n + k}" for k in range(5 + n % 2)) for n in range(9)]
    options = {"precision": "fast", "epochs": 4}
    alone = [tuned(model, [text], **options).embeddings[0] for text in texts]
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", 200)  # less than 3 texts
    together = tuned(model, texts, **options).embeddings
    assert (alone * together).sum(axis=1).min() >= ALIKE


@pytest.mark.usefixtures("_few_candidates")
@pytest.mark.parametrize(
    ("precision", "layers"),
    [
        ("fast", "head"),
        ("fast+bf16", "last block"),
        pytest.param("fast", "all blocks", marks=pytest.mark.slow),
    ],
)
def test_tokens_and_decay_sum_to_the_delta(
    precision: str, layers: str, tiny: LanguageModel
) -> None:
    options = {"layers": LAYERS[layers](tiny), "weight_decay": 0.5, "precision": precision}
    followed = tuned(tiny, list(TEXTS.values()), **options, epochs=3, with_token_shares=True)
    for index, shares in enumerate(followed.shares):
        deltas = [delta[index] for delta in followed.deltas]
        check_shares_sum(shares, deltas)
        assert min(np.linalg.norm(delta) for delta in deltas) > 1e-2
    if precision == "fast":
        plain = tuned(tiny, list(TEXTS.values()), **options, epochs=3)
        assert cosines(plain, followed).min() >= ALIKE


# --- what breaks a run -------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("learning_rate", "layers"), [(1e6, "last_block"), (1e30, "head")])
def test_a_huge_learning_rate_is_told(learning_rate: float, layers: str, device: str) -> None:
    model = replace(drawn_case(2), family="bert").model(device)
    texts = ["w1", "w2 w3 w4", " ".join(f"w{number}" for number in range(50))]
    options = {"layers": layers, "learning_rate": learning_rate, "epochs": 12}
    exact = tuned(model, texts, **options)
    fast = tuned(model, texts, **options, precision="fast")
    assert exact.diverged.all()
    assert fast.diverged.all()
    assert fast.loss_rose.all()
    assert all(np.isfinite(delta).all() for delta in fast.deltas)
    assert np.isfinite(fast.embeddings).all()
    assert np.isfinite(fast.delta_norm).all()
    if learning_rate == 1e30:
        assert (~(fast.loss[1:] < 1e-3)).all()  # what is no number is no perfect loss


@pytest.mark.usefixtures("_few_candidates")
@pytest.mark.parametrize(
    ("passes", "precision"), [(0, "fast"), (1, "exact"), (5, "fast+bf16"), (8, "exact")]
)
def test_a_run_stops_before_the_next_pass(
    passes: int, precision: str, tiny: LanguageModel, monkeypatch
) -> None:
    """Within a step, too: one of this text has several passes through the network."""
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", 2 * tiny.window)
    asked, steps = [], []

    def should_stop() -> bool:
        asked.append(len(steps))
        return len(asked) > passes

    with pytest.raises(Stopped):
        for event in micro_tune(
            tiny, [TEXTS["several chunks"]], precision=precision, should_stop=should_stop
        ):
            steps.append(event.step)
    assert len(asked) == passes + 1
    assert len(steps) < max(1, passes)  # passes are more than steps


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("precision", "layers"),
    [("fast+bf16", "head"), pytest.param("bf16", "last_block", marks=pytest.mark.slow)],
)
def test_bf16_on_the_bundled_model(
    precision: str, layers: str, device: str, on_device, exactly
) -> None:
    exact = exactly(device, layers)
    n = 4 if layers == "head" else 2  # a CPU may have to emulate bfloat16
    options = {"layers": layers, "epochs": EPOCHS, "precision": precision}
    rounded = tuned(on_device(device), REAL_TEXTS[:n], **options)
    cosine = np.sum(exact.embeddings[:n] * rounded.embeddings, axis=1)
    assert cosine.min() >= 1 - DEFAULT_TOLERANCE
    assert cosine.max() < 1 - ROUNDING  # it was rounded
    np.testing.assert_allclose(rounded.loss[0, :2], exact.loss[0, :2], rtol=0.02)
    assert rounded.embeddings.dtype == np.float32


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *((name, name) for name in PRECISIONS),
        ("bf16+fast", "fast+bf16"),
        (" BF16 + Fast ", "fast+bf16"),
        ("exact+bf16", "bf16"),
        ("fast+fast", "fast"),
    ],
)
def test_names_of_precisions(name: str, precision: str, tiny: LanguageModel) -> None:
    checked = check_settings(tiny, precision=name)
    assert checked.precision == precision
    assert (checked.is_fast, checked.in_bf16) == ("fast" in precision, "bf16" in precision)


def test_what_is_no_precision_and_no_tolerance(tiny: LanguageModel) -> None:
    for name in ("", "+", "quick", "fast,bf16", "fast+fp16", "bf16+", None, 16):
        with pytest.raises(SettingsError, match="Choose from: exact, fast, bf16, fast\\+bf16"):
            check_settings(tiny, precision=name)
    for value in (0, 1, -0.1, math.nan, math.inf, "0.01", None, True):
        with pytest.raises(SettingsError, match="tolerance must be above 0 and below 1"):
            check_settings(tiny, precision="fast", tolerance=value)
