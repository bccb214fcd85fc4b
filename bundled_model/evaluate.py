"""Measure the bundled model: masked tokens of passages it never saw, and embeddings on STS-B.

    NEURALVIZ_DATA=… python bundled_model/evaluate.py [--split test] [--weights FILE …]

Prints tables in markdown, a column for each file of weights; the figures of the model card come
from them. Accuracy is that of the masked tokens in windows of up to 64 tokens, by kind of text:
passages that the checksum held out, and sources of which nothing is trained on. Spearman's
correlation is between the human score of a sentence pair and the product of the two sentences'
embeddings.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz
from bundled_model.passages import read_passages, split
from bundled_model.train import epoch_batches, evaluate, mask_batch, windows
from neuralviz.models import bundled
from neuralviz.models.bundled import network
from neuralviz.models.loading import assemble

LENGTH = 64  # tokens of a window
RATIOS = (0.15, 0.45, 0.75)
MOST = 2000  # articles


def masked_accuracy(
    passages: Sequence[str], tensors: dict[str, torch.Tensor], ratio: float
) -> tuple[float, float]:
    """Loss in nats and accuracy at the masked tokens of some passages, windows of 64 tokens."""
    tokenizer = network.load_minilm_tokenizer()
    rng = np.random.default_rng(0)
    batches = [
        mask_batch(batch, tokenizer, rng, ratio=(ratio, ratio))
        for batch in epoch_batches(windows(list(passages), tokenizer, LENGTH), 4096, rng)
    ]
    model = network.build(tensors)
    weight = model.bert.embeddings.word_embeddings.weight.detach()
    return evaluate(model, weight, batches, autocast=False)


def some_of(passages: Sequence[str], most: int) -> list[str]:
    """At most so many of some passages, the same every time."""
    chosen = np.random.default_rng(0).permutation(len(passages))[:most]
    return [passages[i] for i in np.sort(chosen)]


def passages_never_seen(data: Path) -> dict[str, list[str]]:
    """By kind of text: all that was held out, each kind of it, the unseen sources, AG News."""
    passages = split(read_passages(data / "permissive"))
    news = pd.read_csv(data / "ag_news" / "test.csv")
    return {
        "held-out passages": passages.all_held_out(),
        **{f"held out: {kind}": texts for kind, texts in sorted(passages.held_out.items())},
        **{f"never trained on: {name}": texts for name, texts in passages.unseen.items()},
        "never trained on: AG News": some_of(news["text"].tolist(), MOST),
    }


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


def print_table(title: str, names: Sequence[str], rows: Mapping[str, Callable[[str], str]]) -> None:
    """A table with a column for each file of weights; every row is printed when it is there."""
    print(f"\n| {title} | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for row, cell in rows.items():
        print(f"| {row} | {' | '.join(cell(name) for name in names)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--split", choices=["dev", "test"], default="dev", help="of STS-B")
    parser.add_argument("--weights", type=Path, nargs="+", default=[bundled.WEIGHTS])
    parser.add_argument("--epochs", type=int, nargs="+", default=[5])
    parser.add_argument("--only", choices=["masked", "sts"], help="one half of the tables")
    args = parser.parse_args()
    if "NEURALVIZ_DATA" not in os.environ:
        parser.error("set NEURALVIZ_DATA to the folder with permissive/, stsb/ and ag_news/")
    data = Path(os.environ["NEURALVIZ_DATA"])
    weights = {str(path): load_file(path) for path in args.weights}
    names = list(weights)

    if args.only != "sts":
        texts = passages_never_seen(data)
        for ratio in RATIOS:

            def accuracy(name: str, kind: str, ratio: float = ratio) -> str:
                loss, share = masked_accuracy(texts[kind], weights[name], ratio)
                return f"{share:.1%} ({loss:.3f} nats)"

            print_table(
                f"{ratio:.0%} masked",
                names,
                {f"{kind}, {len(texts[kind]):,}": partial(accuracy, kind=kind) for kind in texts},
            )
    if args.only != "masked":
        pairs = pd.read_csv(data / "stsb" / f"{args.split}.csv")
        sentences = [*pairs["sentence1"], *pairs["sentence2"]]

        def loaded(name: str) -> neuralviz.models.LanguageModel:
            bert, tokenizer, fingerprint = network.load(Path(name))
            return assemble("bundled", fingerprint, bert, tokenizer)

        def neural(name: str, epochs: int) -> str:
            embedder = neuralviz.NeuralEmbedder(loaded(name), epochs=epochs)
            return f"{spearman(embedder.encode(sentences), pairs):.3f}"

        print_table(
            f"STS-B {args.split}, {len(pairs):,} pairs",
            names,
            {
                **{f"neural, {n} epochs": partial(neural, epochs=n) for n in args.epochs},
                "mean pooling, same model": lambda name: (
                    f"{spearman(mean_pooled(loaded(name), sentences), pairs):.3f}"
                ),
                "TF-IDF": lambda _name: f"{spearman(tf_idf(sentences), pairs):.3f}",
            },
        )


if __name__ == "__main__":
    main()
