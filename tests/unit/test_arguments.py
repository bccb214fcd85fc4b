"""What is no list of texts gets a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from neuralviz.errors import NeuralvizError
from neuralviz.layers.words import follow_tokens
from neuralviz.micro_tuning import micro_tune
from neuralviz.models import LanguageModel, tokenize


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda model: tokenize(model, "a dog"), "in a list, .* not str"),
        (lambda model: micro_tune(model, 5), "not int"),
        (lambda model: micro_tune("bundled", ["a"]), "micro_tune needs a loaded model"),
        (lambda model: follow_tokens("bundled", "a"), "follow_tokens needs a loaded model"),
        (lambda model: follow_tokens(model, "a"), "must be tokenised, .* not 'a'"),
    ],
)
def test_arguments_that_are_something_else(use: Any, sentence: str, tiny: LanguageModel) -> None:
    with pytest.raises(NeuralvizError, match=sentence):
        use(tiny)
