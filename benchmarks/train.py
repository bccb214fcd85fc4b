"""Measure a training step against the same step written plainly, and what snapshots cost.

    python benchmarks/train.py [--sections steps] [--models bundled] [--device cuda]

- ``steps``: a step of 64 crops of the sample textbooks by our loop, all that goes with it included
  (pairs, checks, alignment, uniformity), and the same step written plainly with `transformers` and
  torch on pairs that are ready: both sides padded by the tokenizer, the model with its dropout,
  mean pooling, cross entropy of the cosines, backward, Adam. They take turns on the same pairs; a
  figure is the median over the turns, and the ratio the median of the ratios of each turn.
- ``snapshots``: what a snapshot (10-NN accuracy at every layer, of as many texts as are watched by
  default) costs, as the share of a run of one epoch that snapshots before it, after it and a number
  in between take, by size of the corpus. Time of a step and of a snapshot are measured, the rest is
  reckoned: the sample's texts are repeated until there are enough.
"""

from __future__ import annotations

import argparse
import copy
import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # before torch, which reads how threads wait

# isort: split
import torch
from speed import bert_base, cpu_name, table, wait
from torch.nn import functional

from neuralviz.models import TextModel
from neuralviz.training import train
from neuralviz.training.learner import make_learner
from neuralviz.training.record import MOST_TEXTS, Watch
from neuralviz.training.settings import Pair, PairSource, TrainingSettings

BATCH = 64
MODELS = ("bundled", "BERT-base shape")
SIZES = (1_000, 4_000, 20_000, 100_000)  # texts of a corpus
BETWEEN = (0, 1, 6)  # snapshots, beside those before and after


def textbooks() -> tuple[list[str], list[str]]:
    """The sample corpus and its chapters."""
    path = Path(__file__).parents[1] / "sample_data" / "textbooks.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["chapter"] for row in rows]


class Plain:
    """The step written plainly."""

    def __init__(self, model: TextModel, settings: TrainingSettings) -> None:
        self.tokenizer, self.window = model.tokenizer, model.window
        self.network = copy.deepcopy(model.network.base_model).requires_grad_(True).train()
        self.adam = torch.optim.Adam(self.network.parameters(), lr=settings.peak_rate)
        self.temperature = settings.temperature

    def __call__(self, pairs: list[Pair]) -> float:
        """The loss before the step."""
        anchors = self.vectors([one.anchor for one in pairs])
        positives = self.vectors([one.positive for one in pairs])
        scores = functional.normalize(anchors) @ functional.normalize(positives).T
        target = torch.arange(len(pairs), device=scores.device)
        loss = functional.cross_entropy(scores / self.temperature, target)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        return loss.item()

    def vectors(self, texts: list[str]) -> torch.Tensor:
        """[text, dim] means of the tokens' vectors."""
        given = self.tokenizer(
            texts, padding=True, truncation=True, max_length=self.window, return_tensors="pt"
        ).to(self.network.device)
        states = self.network(**given).last_hidden_state
        mask = given["attention_mask"].unsqueeze(-1)
        return (states * mask).sum(dim=1) / mask.sum(dim=1)


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def show_steps(bundled: TextModel, args: argparse.Namespace) -> None:
    texts, _ = textbooks()
    rows = []
    for name in args.models:
        model = bundled if name == "bundled" else bert_base(args.device)
        settings = TrainingSettings(batch_size=args.batch, epochs=100)
        ours = train(model, texts, settings)
        next(ours)  # it has started
        source = PairSource(texts, settings)
        pairs = (one for epoch in range(100) for one in source.batches(epoch, args.batch))
        plain = Plain(model, settings)
        took: list[tuple[float, float]] = []
        for turn in range(args.rounds + 1):
            batch = next(pairs)
            while len(batch) < args.batch:  # the last of an epoch: no full step
                next(ours)
                batch = next(pairs)
            both = [partial(next, ours), partial(plain, batch)]
            order = (0, 1) if turn % 2 else (1, 0)
            seconds = {place: timed(both[place]) for place in order}
            took.append((seconds[0], seconds[1]))
        del took[0]  # warms up
        ratios = [one / other for one, other in took]
        rows.append([
            name,
            f"{1e3 * median(one for one, _ in took):,.0f} ms",
            f"{1e3 * median(other for _, other in took):,.0f} ms",
            f"{median(ratios):.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        ])  # fmt: skip
    print(f"A step of {args.batch} crops of the sample textbooks.\n")
    table(["model", "our loop", "plain", "ratio", "from … to"], rows)


def show_snapshots(model: TextModel, args: argparse.Namespace) -> None:
    texts, chapters = textbooks()
    many = -(-MOST_TEXTS // len(texts))
    watched, labels = (texts * many)[:MOST_TEXTS], (chapters * many)[:MOST_TEXTS]
    watch = Watch(watched, labels)
    settings = TrainingSettings(batch_size=BATCH, epochs=100)
    learner = make_learner(model, settings)
    snapshot = timed(lambda: watch.look(learner, 0))
    ours = train(model, texts, settings)
    next(ours)
    step = median(timed(lambda: next(ours)) for _ in range(args.rounds))
    rows = []
    for size in SIZES:
        training = step * size / BATCH
        cost = snapshot * min(size, MOST_TEXTS) / MOST_TEXTS
        shares = [cost * (2 + n) / (training + cost * (2 + n)) for n in BETWEEN]
        rows.append([f"{size:,}", f"{training:,.0f} s", f"{cost:,.0f} s", *(
            f"{share:.0%}" for share in shares
        )])  # fmt: skip
    print(
        f"Snapshots of {MOST_TEXTS:,} texts, bundled model; one takes as long as "
        f"{snapshot / step:.0f} steps. Share of a run of one epoch, by number of snapshots.\n"
    )
    heads = [f"{2 + n} snapshots" for n in BETWEEN]
    table(["texts of the corpus", "all steps", "one snapshot", *heads], rows)


SHOW = {"steps": show_steps, "snapshots": show_snapshots}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sections", nargs="+", default=list(SHOW), choices=SHOW)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--batch", type=int, default=BATCH, help="pairs of a step")
    parser.add_argument("--rounds", type=int, default=8, help="steps that are timed")
    parser.add_argument("--device", help="cpu, cuda …; default: the fastest available")
    args = parser.parse_args()
    bundled = neuralviz.load_model("bundled", device=args.device)
    on = torch.cuda.get_device_name() if bundled.device.type == "cuda" else cpu_name()
    threads = "" if bundled.device.type == "cuda" else f", {torch.get_num_threads()} threads"
    print(f"{on}{threads}; torch {torch.__version__}\n")
    for section in args.sections:
        SHOW[section](bundled, args)


if __name__ == "__main__":
    main()
