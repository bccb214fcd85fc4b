"""What the bundled model reaches on real data; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import neuralviz
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE
from neuralviz.models import LanguageModel, tokenize
from tests.support.plain_loop import plain_embedding, plain_micro_tune

pytestmark = pytest.mark.slow

PASSAGES = 200
MASKED = 0.15
LEAST_ACCURACY = 0.41  # 42.0 % over all held-out passages; these are a sample
PAIRS = 50
LEAST_NEURAL = 0.70  # Spearman's correlation; 0.714 on these dev pairs, 0.792 on 200
LEAST_MEAN = 0.855  # 0.868 on twice as many, 0.857 on all
EPOCHS = 5  # beside the plain loop
SENTENCES = 2  # of which the tolerance is checked
ALIKE = 0.99999  # cosine of one embedding computed in two ways


def real(folder: Path, name: str) -> Path:
    """A file of the data; the test is skipped where it is absent."""
    if not (folder / name).is_file():
        pytest.skip(f"needs real data: there is no {name} in NEURALVIZ_DATA")
    return folder / name


def pairs_of(data: Path, n: int) -> pd.DataFrame:
    return pd.read_csv(real(data, "stsb/dev.csv")).sample(n, random_state=0)


def test_it_predicts_masked_tokens_of_passages_it_was_not_trained_on(
    data: Path, bundled: LanguageModel
) -> None:
    from bundled_model.evaluate import masked_accuracy
    from bundled_model.passages import read_passages, split
    from bundled_model.train import shuffled

    folder = real(data, "permissive/passages.txt.xz").parent
    held_out = split(read_passages(folder)).all_held_out()
    _, accuracy = masked_accuracy(bundled, shuffled(held_out)[:PASSAGES], MASKED)
    assert accuracy >= LEAST_ACCURACY


def test_the_list_of_training_texts_is_that_of_the_sources(data: Path) -> None:
    from bundled_model.passages import read_sources
    from scripts.list_training_texts import CARD, TARGET, list_of, table_of

    sources = read_sources(real(data, "permissive/SOURCES.md").parent)
    assert TARGET.read_text(encoding="utf-8") == table_of(sources)
    assert list_of(sources) in CARD.read_text(encoding="utf-8")


def test_embeddings_tell_how_alike_sentences_are(data: Path, bundled: LanguageModel) -> None:
    from bundled_model.evaluate import mean_pooled, spearman, tf_idf

    pairs = pairs_of(data, PAIRS)
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    embedder = neuralviz.NeuralEmbedder(bundled, epochs=5, precision="fast")
    neural = spearman(embedder.encode(texts), pairs)
    assert neural >= LEAST_NEURAL
    assert neural > spearman(tf_idf(texts), pairs)
    pairs = pairs_of(data, 2 * PAIRS)
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    assert spearman(mean_pooled(bundled, texts), pairs) >= LEAST_MEAN


def test_encode_equals_the_plain_loop(data: Path, bundled: LanguageModel) -> None:
    texts = pairs_of(data, 3)["sentence1"]
    vectors = neuralviz.NeuralEmbedder(bundled, epochs=EPOCHS).encode(texts)
    for text, vector in zip(tokenize(bundled, list(texts)), vectors, strict=True):
        chunks = [text.ids[chunk] for chunk in text.chunks]
        deltas, _ = plain_micro_tune(
            bundled.network, bundled.tokenizer, chunks, bundled.head_layers, epochs=EPOCHS
        )
        assert plain_embedding(deltas) @ vector >= ALIKE


@pytest.mark.filterwarnings("ignore::neuralviz.errors.PrecisionWarning")
def test_the_tolerance_is_kept_on_sentences_nothing_was_chosen_on(
    data: Path, bundled: LanguageModel
) -> None:
    sentences = pd.read_csv(real(data, "stsb/train.csv"))["sentence1"].drop_duplicates()
    texts = sentences.sample(SENTENCES, random_state=1).tolist()
    exact = neuralviz.NeuralEmbedder(bundled, epochs=10).encode(texts)
    for precision in ("fast", "fast+bf16"):
        other = neuralviz.NeuralEmbedder(bundled, epochs=10, precision=precision).encode(texts)
        assert (exact * other).sum(axis=1).min() >= 1 - DEFAULT_TOLERANCE, precision
