"""The recorded results are what today's program would find: run scripts/record_evaluation.py."""

from __future__ import annotations

import re

import numpy as np
import pytest

from neuralviz.embedders import make_embedder
from neuralviz.evaluation.measures import alike_pairs, measure
from neuralviz.evaluation.results import RESULTS_FORMAT, Results
from neuralviz.jobs.evaluating import (
    EXAMPLES,
    RECORDED,
    example_plan,
    recorded_results,
)
from neuralviz.paths import sample_data


def test_it_is_of_the_examples_methods_and_settings_of_today() -> None:
    assert RESULTS_FORMAT.unpack((sample_data() / RECORDED).read_bytes()).plan == example_plan()


def test_every_example_is_there_and_whole() -> None:
    found = recorded_results()
    assert [one.data[0].name for one in found] == [one.read().name for one in EXAMPLES.values()]
    for one in found:
        assert len(one.cells) == len(one.rows)
        assert not one.any_failed
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one.begun)
        assert one.version


def recorded_groups(method: str) -> tuple[Results, int]:
    """The results of the groups, and a method's row in them."""
    recorded = recorded_results()[list(EXAMPLES).index("Texts in groups")]
    (at,) = (at for at, row in enumerate(recorded.rows) if row.spec.method == method)
    return recorded, at


@pytest.mark.parametrize("method", ["mean", "sbert-wk"])
def test_the_numbers_are_those_of_the_models_of_today(method: str) -> None:
    recorded, at = recorded_groups(method)
    data, was = recorded.data[0], recorded.measured(0, at)
    vectors = make_embedder(recorded.rows[at].spec).encode(list(data.texts))
    found = measure(data, vectors, recorded.plan.settings)
    assert found.triplets.wrong == pytest.approx(was.triplets.wrong, abs=2)
    assert found.triplets.same == pytest.approx(was.triplets.same, abs=1e-4)
    np.testing.assert_allclose(found.same, was.same, atol=2e-3)
    np.testing.assert_allclose(found.resampled["triplets"], was.resampled["triplets"], atol=1e-3)


def test_the_first_neural_cosines_are_those_of_the_model_of_today() -> None:
    """All of them would take as long as all other tests of this file together."""
    recorded, at = recorded_groups("neural")
    data, was = recorded.data[0], recorded.measured(0, at)
    first, second = alike_pairs(
        data.grouping.group, data.grouping.anchor, seed=recorded.plan.settings.seed
    )[:3].T
    embedder = make_embedder(recorded.rows[at].spec)
    one, other = (
        embedder.encode([data.texts[data.rows[i]] for i in side]) for side in (first, second)
    )
    np.testing.assert_allclose((one * other).sum(axis=1), was.same[:3], atol=2e-3)
