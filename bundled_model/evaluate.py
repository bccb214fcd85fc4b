"""Measure the bundled model: masked tokens it never saw, STS-B, neighbours of texts, and its cost.

    NEURALVIZ_DATA=… python bundled_model/evaluate.py [--split test] [--weights FILE …]

Prints tables in markdown, a column for each file of weights; the figures of the model card come
from them. Accuracy is that of the masked tokens in windows of up to 64 tokens, by kind of text:
passages that the checksum held out, and sources of which nothing is trained on. AG News is there
twice, as it is, and as prose: without most datelines, and without what HTML left in it. (The first
bundled model was trained on other texts, which hold nearly all of the held-out speeches.)
Spearman's correlation is between the human score of a sentence pair and the cosine similarity of
the two sentences' embeddings. On the example corpus, it is the share of texts whose ten nearest
others vote for their topic, and for their form, by raw and by centred vectors; on an even sample of
AG News, for their class. The recorded map uses five epochs. The last table says how large each file
is, and how long it takes to load and to micro-tune on a sentence: all files take turns, and a
figure is the median of the turns.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar, get_args

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz
from bundled_model.passages import read_passages, split
from bundled_model.train import at_least, evaluate, evaluation_batches, shuffled, windows
from neuralviz.embedders import PooledEmbedder
from neuralviz.errors import ModelError
from neuralviz.maps.example import TEXTS
from neuralviz.maps.neighbours import K, find_neighbours, knn_right
from neuralviz.micro_tuning.settings import Precision
from neuralviz.models import LanguageModel, bundled
from neuralviz.models.bundled import network
from neuralviz.models.loading import assemble
from neuralviz.paths import sample_data
from neuralviz.words import many

LENGTH = 64  # tokens of a window
RATIOS = (0.15, 0.45, 0.75)
MOST = 2000  # articles
EXAMPLE_EPOCHS = (1, 5, 10, 30)
EXAMPLE_LABELS = ("topic", "form")
NEWS = 1000  # articles whose neighbours are looked at
NEWS_EPOCHS = (5, 10)
SENTENCE = "The baker had opened the shop before the first train came in."
TURNS = 7
SECTIONS = ("masked", "sts", "example", "news", "cost")
OF_DATA = {"masked", "sts", "news"}
M = TypeVar("M")

# "LONDON (Reuters) - ", "AP - ", "BAGHDAD, Iraq -- "
_DATELINE = re.compile(r"\s*(?:[A-Z][\w.']*,? )+(?:\([^)]*\) )?--? ")
# AG News has a blank in place of most ampersands: "Arcelor #39;s", " quot;No, quot; he said"
_ENTITY = re.compile(r"[ &]?(#\d+|quot|amp|lt|gt);")
_TAG = re.compile(r"<[^>]*>")


def masked_accuracy(
    model: LanguageModel, passages: Sequence[str], ratio: float
) -> tuple[float, float]:
    """Loss in nats and accuracy at the masked tokens of some passages, windows of 64 tokens."""
    sequences = windows(list(passages), model.tokenizer, LENGTH)
    batches = evaluation_batches(sequences, model.tokenizer, ratio)
    weight = model.network.get_output_embeddings().weight.detach()
    return evaluate(model.network, weight, batches, autocast=False)


def read_news(data: Path) -> pd.DataFrame:
    """AG News's test split: label, title and text."""
    return pd.read_csv(data / "ag_news" / "test.csv")


def as_prose(article: str) -> str:
    """An article of AG News without the usual datelines, and without what HTML left in it."""
    text = _TAG.sub(" ", html.unescape(_ENTITY.sub(r"&\1;", article)))
    return text[match.end() :] if (match := _DATELINE.match(text)) else text


def passages_never_seen(data: Path) -> dict[str, list[str]]:
    """By kind of text: all that was held out, each kind of it, the unseen sources, AG News."""
    passages = split(read_passages(data / "permissive"))
    news = shuffled(read_news(data)["text"].tolist())[:MOST]
    return {
        "held-out passages": passages.all_held_out(),
        **{f"held out: {kind}": texts for kind, texts in sorted(passages.held_out.items())},
        **{f"never trained on: {name}": texts for name, texts in passages.unseen.items()},
        "never trained on: AG News": news,
        "never trained on: AG News as prose": [as_prose(article) for article in news],
    }


def mean_pooled(model: LanguageModel, texts: Sequence[str]) -> np.ndarray:
    """[text, d_model] the neural paper's *avg*: mean of the last block's outputs, of length 1."""
    return PooledEmbedder(model, special_tokens=False).encode(texts)


def tf_idf(texts: list[str]) -> np.ndarray:
    """[text, word] TF-IDF vectors, fitted on the texts themselves, of length 1."""
    return TfidfVectorizer().fit_transform(texts).toarray()


def spearman(vectors: np.ndarray, pairs: pd.DataFrame) -> float:
    """Correlation of scores and products; the vectors are all first sentences, then all second."""
    first, second = np.split(vectors, 2)
    return float(spearmanr(np.einsum("pd,pd->p", first, second), pairs["score"]).statistic)


def print_table(
    title: str, models: Mapping[str, M], rows: Mapping[str, Callable[[M], str]]
) -> None:
    """A table with a column for each model; every row is printed when it is there."""
    print(f"\n| {title} | {' | '.join(models)} |\n|{' --- |' * (len(models) + 1)}")
    for row, cell in rows.items():
        print(f"| {row} | {' | '.join(map(cell, models.values()))} |", flush=True)


def print_masked(models: Mapping[str, LanguageModel], kinds: Mapping[str, list[str]]) -> None:
    """Accuracy at masked tokens of `passages_never_seen`, a table for each ratio."""

    def accuracy(model: LanguageModel, passages: list[str], ratio: float) -> str:
        loss, share = masked_accuracy(model, passages, ratio)
        return f"{share:.1%} ({loss:.3f} nats)"

    for ratio in RATIOS:
        rows = {
            f"{kind}, {len(passages):,}": partial(accuracy, passages=passages, ratio=ratio)
            for kind, passages in kinds.items()
        }
        print_table(f"{ratio:.0%} masked", models, rows)


def print_sts(
    models: Mapping[str, LanguageModel],
    pairs: pd.DataFrame,
    split_name: str,
    epochs: Sequence[int],
    precision: Precision,
) -> None:
    """Spearman's correlation of scores and products on a split of STS-B."""
    texts = [*pairs["sentence1"], *pairs["sentence2"]]

    def neural(model: LanguageModel, epochs: int) -> str:
        embedder = neuralviz.NeuralEmbedder(model, epochs=epochs, precision=precision)
        return f"{spearman(embedder.encode(texts), pairs):.3f}"

    how = "" if precision == "exact" else f"{precision}, "
    rows: dict[str, Callable[[LanguageModel], str]] = {
        f"neural, {how}{many(n, 'epoch')}": partial(neural, epochs=n) for n in epochs
    }
    rows["mean pooling (avg), same model"] = lambda model: (
        f"{spearman(mean_pooled(model, texts), pairs):.3f}"
    )
    rows["TF-IDF"] = lambda _model: f"{spearman(tf_idf(texts), pairs):.3f}"
    print_table(f"STS-B {split_name}, {len(pairs):,} pairs", models, rows)


def print_neighbours(
    models: Mapping[str, LanguageModel],
    title: str,
    texts: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    epochs: Sequence[int],
) -> None:
    """10-NN accuracy of texts by each kind of label, raw and centred vectors."""

    def accuracies(vectors: np.ndarray) -> str:
        near = find_neighbours(vectors, K)
        found = (float(knn_right(near, list(each), K).mean()) for each in labels.values())
        return ", ".join(f"{100 * one:.1f}%" for one in found)

    def neural(model: LanguageModel, epochs: int) -> str:
        vectors = neuralviz.NeuralEmbedder(model, epochs=epochs, precision="fast").encode(texts)
        return f"{accuracies(vectors)}; centred {accuracies(vectors - vectors.mean(axis=0))}"

    rows: dict[str, Callable[[LanguageModel], str]] = {
        f"neural, fast, {many(n, 'epoch')}": partial(neural, epochs=n) for n in epochs
    }
    rows["mean pooling (avg), same model"] = lambda model: accuracies(mean_pooled(model, texts))
    print_table(f"{title}, {K}-NN: {', '.join(labels)}", models, rows)


def print_example(models: Mapping[str, LanguageModel]) -> None:
    """Neighbours in the example corpus, by topics and forms."""
    example = pd.read_csv(sample_data() / TEXTS)
    labels = {name: example[name].tolist() for name in EXAMPLE_LABELS}
    print_neighbours(models, "Example corpus", example["text"].tolist(), labels, EXAMPLE_EPOCHS)


def print_news(models: Mapping[str, LanguageModel], news: pd.DataFrame) -> None:
    """Neighbours in an even sample of AG News, by classes; `benchmarks/knn.py` takes the same."""
    n = min(NEWS, len(news))
    sample = news.iloc[[len(news) * i // n for i in range(n)]]
    labels = {"class": sample["label"].tolist()}
    title = f"AG News, {n:,} of {len(news):,} texts"
    print_neighbours(models, title, sample["text"].tolist(), labels, NEWS_EPOCHS)


def print_cost(models: Mapping[str, LanguageModel]) -> None:
    """Size of the files, seconds to load each, and seconds to micro-tune on a sentence."""
    tasks: dict[str, Callable[[str], object]] = {
        "seconds to load": lambda path: network.load(Path(path)),
        "seconds to micro-tune on a sentence, 1 epoch": lambda path: neuralviz.NeuralEmbedder(
            models[path], epochs=1
        ).encode([SENTENCE]),
    }
    took: dict[tuple[str, str], list[float]] = {}
    for turn in range(1 + TURNS):  # the first warms up
        for task, work in tasks.items():
            for path in models:
                began = time.perf_counter()
                work(path)
                if turn:
                    took.setdefault((task, path), []).append(time.perf_counter() - began)
    rows: dict[str, Callable[[str], str]] = {
        "MB of the file": lambda path: f"{Path(path).stat().st_size / 1e6:.2f}"
    }
    for task in tasks:
        rows[task] = lambda path, task=task: f"{median(took[task, path]):.3f}"
    print_table("cost", {path: path for path in models}, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--split", choices=["dev", "test"], default="dev", help="of STS-B")
    parser.add_argument("--weights", type=Path, nargs="+", default=[bundled.WEIGHTS])
    parser.add_argument("--epochs", type=at_least(1), nargs="+", default=[5], help="on STS-B")
    parser.add_argument(
        "--precision", choices=get_args(Precision), default="exact", help="on STS-B"
    )
    parser.add_argument(
        "--only",
        choices=SECTIONS,
        nargs="+",
        default=SECTIONS,
        help="of the tables; all by default",
    )
    args = parser.parse_args()
    if not os.environ.get("NEURALVIZ_DATA") and OF_DATA & set(args.only):
        parser.error("set NEURALVIZ_DATA to the folder with permissive/, stsb/ and ag_news/")
    data = Path(os.environ.get("NEURALVIZ_DATA", ""))
    models, kinds, pairs, news = {}, {}, pd.DataFrame(), pd.DataFrame()
    try:
        if "sts" in args.only:
            pairs = pd.read_csv(data / "stsb" / f"{args.split}.csv")
        for path in args.weights:
            models[str(path)] = assemble(LanguageModel, "bundled", *network.load(path))
        if "masked" in args.only:
            kinds = passages_never_seen(data)
        if "news" in args.only:
            news = read_news(data)
    except (OSError, ValueError, ModelError) as error:
        parser.error(str(error))
    if "masked" in args.only:
        print_masked(models, kinds)
    if "sts" in args.only:
        print_sts(models, pairs, args.split, args.epochs, args.precision)
    if "example" in args.only:
        print_example(models)
    if "news" in args.only:
        print_news(models, news)
    if "cost" in args.only:
        print_cost(models)


if __name__ == "__main__":
    main()
