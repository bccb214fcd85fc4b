"""Settings of micro-tuning as one value: checked, changed, passed on, and without torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import neuralviz
from neuralviz.embedders import NeuralEmbedder, TunedOutputEmbedder
from neuralviz.embedders.neural import neural_1
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning import TuningSettings, check_settings
from neuralviz.models import LanguageModel

TEXT = "The old boat left the harbour."


def test_options_are_what_differs_from_the_settings(tiny: LanguageModel) -> None:
    settings = check_settings(tiny, layers="last_block", epochs=3, weight_decay=0.5)
    changed = check_settings(tiny, settings, epochs=4)
    assert changed == replace(settings, epochs=4)
    assert check_settings(tiny, settings) == settings
    assert check_settings(tiny) == TuningSettings(tiny.head_layers)


def test_given_settings_are_checked_against_the_model(tiny: LanguageModel, small_model) -> None:
    of_another = check_settings(small_model("distilbert"))
    with pytest.raises(SettingsError, match=r"” is not a layer \(1-D parameter\) of the model “"):
        check_settings(tiny, of_another)
    with pytest.raises(SettingsError, match="from 1 to 1000"):
        next(neuralviz.micro_tune(tiny, [TEXT], TuningSettings(tiny.head_layers, epochs=0)))


@pytest.mark.parametrize(
    "make",
    [
        lambda model, **options: check_settings(model, **options),
        lambda model, **options: neuralviz.micro_tune(model, [TEXT], **options),
        lambda model, **options: NeuralEmbedder(model, **options),
        lambda model, **options: TunedOutputEmbedder(model, "cls", False, **options),
        lambda model, **options: neural_1(model, **options),
    ],
    ids=["check_settings", "micro_tune", "NeuralEmbedder", "TunedOutputEmbedder", "neural_1"],
)
def test_an_option_that_there_is_not(make, tiny: LanguageModel) -> None:
    with pytest.raises(TypeError, match="Unknown setting: epoch"):
        make(tiny, epoch=3)


def test_a_run_and_an_embedder_take_settings_or_options(tiny: LanguageModel) -> None:
    settings = check_settings(tiny, layers="last_block", epochs=2)
    *_, by_value = neuralviz.micro_tune(tiny, [TEXT], settings)
    *_, by_name = neuralviz.micro_tune(tiny, [TEXT], layers="last_block", epochs=2)
    assert by_value.result.settings == by_name.result.settings == settings
    np.testing.assert_array_equal(by_value.result.embeddings, by_name.result.embeddings)
    embedder = NeuralEmbedder(tiny, settings)
    assert embedder.cache_key() == NeuralEmbedder(tiny, layers="last_block", epochs=2).cache_key()
    np.testing.assert_allclose(embedder.encode([TEXT]), by_value.result.embeddings, rtol=1e-5)


def test_defaults_of_each_method(tiny: LanguageModel) -> None:
    assert NeuralEmbedder(tiny).settings == check_settings(tiny)
    last = tiny.last_block_layers
    assert neural_1(tiny).settings == check_settings(tiny, layers=last[-1:], epochs=5)
    assert neural_1(tiny, epochs=2).settings.layers == last[-1:]
    for settings in (None, check_settings(tiny, epochs=5)):
        embedder = TunedOutputEmbedder(tiny, "cls", False, settings)
        assert embedder.settings == check_settings(tiny, layers=last, epochs=5)


@pytest.mark.parametrize(
    ("epochs", "sentence"),
    [
        (0, "Without at least one epoch, no weight changes"),
        (-3, "Without at least one epoch, no weight changes"),
        (1001, r"from 1 to 1000, not 1001\.$"),
        (5000, r"from 1 to 1000, not 5000\.$"),
        (2.5, r"from 1 to 1000, not 2\.5\.$"),
    ],
)
def test_epochs_out_of_range_get_their_own_sentence(
    epochs: float, sentence: str, tiny: LanguageModel
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        check_settings(tiny, epochs=epochs)


def test_value_modules_load_no_torch() -> None:
    modules = ("settings", "blueprints", "events", "record", "watching")
    imports = ", ".join(f"neuralviz.micro_tuning.{name}" for name in modules)
    script = (
        f"import sys, {imports}, neuralviz.embedders.specs, neuralviz.jobs.micro_tuning; "
        "assert not {'torch', 'transformers', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
