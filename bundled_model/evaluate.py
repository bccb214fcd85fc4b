"""Measure the bundled model: held-out masked-token accuracy, and embeddings on STS-B.

    python bundled_model/evaluate.py --passages passages.txt.gz --stsb stsb/ --split dev

Prints a table in markdown; the figures of the model card come from it. Spearman's correlation is
between the human score of a sentence pair and the product of the two sentences' embeddings.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz
from bundled_model.train import epoch_batches, evaluate, mask_batch, read_passages, windows
from neuralviz.models import bundled
from neuralviz.models.bundled import network
from neuralviz.models.loading import assemble

LENGTH = 64


def held_out(path: Path, tensors: dict[str, torch.Tensor], ratio: float) -> tuple[float, float]:
    """Loss and accuracy at masked tokens of the held-out passages, windows of 64 tokens."""
    tokenizer = network.load_minilm_tokenizer()
    _, passages = read_passages(path)
    rng = np.random.default_rng(0)
    batches = [
        mask_batch(batch, tokenizer, rng, ratio=(ratio, ratio))
        for batch in epoch_batches(windows(passages, tokenizer, LENGTH), 4096, rng)
    ]
    model = network.build(tensors)
    weight = model.bert.embeddings.word_embeddings.weight.detach()
    return evaluate(model, weight, batches, autocast=False)


def mean_pooled(model: neuralviz.models.LanguageModel, texts: list[str]) -> np.ndarray:
    """[text, d_model] mean of the last block's outputs over all tokens but the special ones."""
    vectors = []
    for start in range(0, len(texts), 64):
        batch = model.tokenizer(
            texts[start : start + 64],
            padding=True,
            return_tensors="pt",
            return_special_tokens_mask=True,
        ).to(model.device)
        mask = (1 - batch.pop("special_tokens_mask"))[:, :, None]  # padding is special too
        with torch.no_grad():
            states = model.network.base_model(**batch).last_hidden_state
        vectors.append(((states * mask).sum(1) / mask.sum(1)).cpu().numpy())
    out = np.concatenate(vectors)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def tf_idf(texts: list[str]) -> np.ndarray:
    """[text, word] TF-IDF vectors, fitted on the texts themselves, of length 1."""
    return TfidfVectorizer().fit_transform(texts).toarray()


def spearman(vectors: np.ndarray, pairs: pd.DataFrame) -> float:
    """Correlation of scores and products; the vectors are all first sentences, then all second."""
    first, second = np.split(vectors, 2)
    return float(spearmanr(np.einsum("pd,pd->p", first, second), pairs["score"]).statistic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--passages", type=Path, required=True)
    parser.add_argument("--stsb", type=Path, required=True, help="folder with dev.csv and test.csv")
    parser.add_argument("--split", choices=["dev", "test"], default="dev")
    parser.add_argument("--weights", type=Path, default=bundled.WEIGHTS)
    parser.add_argument("--epochs", type=int, nargs="+", default=[5])
    args = parser.parse_args()

    tensors = load_file(args.weights)
    print("| held-out passages | loss, nats | accuracy |\n| --- | --- | --- |")
    for ratio in (0.15, 0.45, 0.75):
        loss, accuracy = held_out(args.passages, tensors, ratio)
        print(f"| {ratio:.0%} masked | {loss:.3f} | {accuracy:.1%} |", flush=True)

    bert, tokenizer, fingerprint = network.load(args.weights)
    model = assemble("bundled", fingerprint, bert, tokenizer)
    pairs = pd.read_csv(args.stsb / f"{args.split}.csv")
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    print(f"\n| STS-B {args.split}, {len(pairs):,} pairs | Spearman |\n| --- | --- |")
    for epochs in args.epochs:
        vectors = neuralviz.NeuralEmbedder(model, epochs=epochs).encode(texts)
        print(f"| neural, {epochs} epochs | {spearman(vectors, pairs):.3f} |", flush=True)
    print(f"| mean pooling, same model | {spearman(mean_pooled(model, texts), pairs):.3f} |")
    print(f"| TF-IDF | {spearman(tf_idf(texts), pairs):.3f} |")


if __name__ == "__main__":
    main()
