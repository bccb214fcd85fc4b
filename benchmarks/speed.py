"""Measure the speed of neural embeddings, mean pooling and SBERT-WK.

    NEURALVIZ_DATA=… python benchmarks/speed.py [--device cuda] [--sections sentences length …]

Each table is one run in which all methods take turns on the same texts; a figure is the median of
the turns. What counts is the ratio. *Plain* is the loop that the tests compare with: it tunes a
copy of the whole `transformers` model, one text at a time, on an even sample of the texts because
it is slow. bf16 takes part where the device computes in it.

Sections:

- ``sentences``: STS-B test sentences (made-up sentences if ``NEURALVIZ_DATA`` is not set) in one
  call, 10 epochs, with the cosine similarity to plain;
- ``length``, ``batch``, ``epochs``, ``layers``, ``size``: one setting varied at a time;
- ``single``: one text of 30 tokens, fast, as a multiple of what cannot be avoided: the forward pass
  over its inputs and one forward and backward pass of the output layer;
- ``profile``: where the time goes, and the rate of operations compared with the machine's peak;
- ``memory``: peak memory of the process after 1,000 and after 10,000 texts in one call.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # before torch, which reads how threads wait

# isort: split
import torch

from neuralviz.embedders import PooledEmbedder, SbertWkEmbedder
from neuralviz.embedders.base import Embedder
from neuralviz.micro_tuning.cross_entropy import cross_entropy, output_layer
from neuralviz.micro_tuning.inputs import Piece, group_inputs, mask_texts, pack_inputs
from neuralviz.micro_tuning.products import has_native_bf16
from neuralviz.micro_tuning.settings import PRECISIONS, TuningSettings
from neuralviz.models import LanguageModel
from neuralviz.models.tokens import TokenizedText, tokenize
from tests.support.plain_loop import plain_embedding, plain_micro_tune

LENGTHS = (5, 30, 120, 500)  # tokens
BATCHES = (1, 32, 512)
EPOCHS = (1, 5, 10)
ROUNDS = 3
PRODUCTS = ("mm", "addmm", "addmm_", "bmm", "baddbmm", "mkldnn_linear", "linear")

Encode = Callable[[list[str]], np.ndarray]


class Plain:
    """The plain loop as an encoder."""

    def __init__(
        self, model: LanguageModel, epochs: int, layers: tuple[str, ...] | None = None
    ) -> None:
        self.model, self.epochs, self.layers = model, epochs, layers or model.head_layers

    def __call__(self, texts: list[str]) -> np.ndarray:
        """[text, dim] embeddings."""
        tokenizer, out = self.model.tokenizer, []
        for text in texts:
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            deltas, _ = plain_micro_tune(
                self.model.network, tokenizer, [ids], self.layers, epochs=self.epochs
            )
            out.append(plain_embedding(deltas))
        return np.stack(out)


class Ours:
    """One of our embedders as an encoder, with a batch size."""

    def __init__(self, embedder: Embedder, batch: int = 32) -> None:
        self.embedder, self.batch = embedder, batch

    def __call__(self, texts: list[str]) -> np.ndarray:
        """[text, dim] embeddings."""
        return self.embedder.encode(texts, batch_size=self.batch)


def contestants(
    model: LanguageModel,
    names: list[str],
    *,
    epochs: int = 10,
    batch: int = 32,
    layers: tuple[str, ...] | None = None,
) -> dict[str, Encode]:
    """Encoders by name; ``layers`` are tuned, by default those of the head."""
    out: dict[str, Encode] = {}
    for name in names:
        if name == "plain":
            out[name] = Plain(model, epochs, layers)
        elif name == "mean":
            out[name] = Ours(PooledEmbedder(model), batch)
        elif name == "sbert-wk":
            out[name] = Ours(SbertWkEmbedder(model), batch)
        else:
            embedder = neuralviz.NeuralEmbedder(model, layers=layers, epochs=epochs, precision=name)
            out[name] = Ours(embedder, batch)
    return out


def precisions_of(model: LanguageModel) -> list[str]:
    """The precisions that the device computes in; others would measure their emulation."""
    names = [str(name) for name in PRECISIONS]
    return [name for name in names if "bf16" not in name or has_native_bf16(model.device)]


def race(
    runners: dict[str, Encode], texts: list[str], *, n_plain: int, rounds: int = ROUNDS
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Milliseconds a text, the median over turns, and the vectors of the last turn."""
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    vectors: dict[str, np.ndarray] = {}
    texts_of = {
        name: of_all_lengths(texts, n_plain) if name == "plain" else texts for name in runners
    }
    for name, encode in runners.items():
        encode(texts_of[name][:2])
    for _ in range(rounds):
        for name, encode in runners.items():
            wait()
            start = time.perf_counter()
            vectors[name] = encode(texts_of[name])
            wait()
            seconds[name].append((time.perf_counter() - start) / len(texts_of[name]))
    return {name: 1e3 * median(values) for name, values in seconds.items()}, vectors


def sample(texts: list[str], n: int) -> list[str]:
    """An even sample, in order."""
    return texts[:: max(1, len(texts) // n)][:n]


def of_all_lengths(texts: list[str], n: int) -> list[str]:
    """The middle one of each of ``n`` equal parts, by length."""
    by_length = sorted(texts, key=len)
    return [by_length[int((part + 0.5) * len(texts) / n)] for part in range(min(n, len(texts)))]


def wait() -> None:
    """For a GPU to be done with what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def sentences(n: int) -> list[str]:
    """An even sample of the STS-B test sentences, or some made from example texts."""
    folder = os.environ.get("NEURALVIZ_DATA")
    if folder:
        import pandas as pd

        table = pd.read_csv(Path(folder) / "stsb" / "test.csv")
        return sample(list(dict.fromkeys([*table["sentence1"], *table["sentence2"]])), n)
    subjects = ["A man", "Two dogs", "The committee", "A young woman", "Some children"]
    verbs = ["is watching", "crossed", "talked about", "left", "is painting", "remembers"]
    objects = ["the old bridge.", "a field of snow.", "the price of oil.", "a small red boat."]
    made = [f"{s} {v} {o}" for s in subjects for v in verbs for o in objects]
    return sample(made, n) if n <= len(made) else (made * (n // len(made) + 1))[:n]


def of_length(model: LanguageModel, n_tokens: int, n_texts: int) -> list[str]:
    """Different texts of so many tokens: words of one token each, as sentences have them."""

    def count(text: str) -> int:
        return len(model.encoder.encode(text, add_special_tokens=False).ids)

    words = [word for text in sentences(400) for word in text.split() if count(word) == 1]
    starts = np.linspace(0, len(words) - n_tokens, n_texts).astype(int)
    return [" ".join(words[start : start + n_tokens]) for start in starts]


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print it in markdown."""
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def ratios(ms: dict[str, float], to: str = "plain") -> list[str]:
    """Throughput relative to another, and the milliseconds of that one."""
    return [f"{value:.1f} ms" if n == to else f"{ms[to] / value:.1f} ×" for n, value in ms.items()]


def show_sentences(model: LanguageModel, args: argparse.Namespace) -> None:
    texts = sentences(args.texts)
    names = ["plain", *precisions_of(model), "mean", "sbert-wk"]
    ms, vectors = race(contestants(model, names, batch=args.batch), texts, n_plain=args.plain_texts)
    at = [texts.index(text) for text in of_all_lengths(texts, args.plain_texts)]
    rows = []
    for name in names:
        row = [name, f"{ms[name]:.1f}", f"{ms['plain'] / ms[name]:.1f} ×", "", "", ""]
        if name in precisions_of(model):
            cosines = (vectors[name][at] * vectors["plain"]).sum(axis=1)
            to_exact = (vectors[name] * vectors["exact"]).sum(axis=1)
            row[3:] = [f"{cosines.mean():.5f}", f"{cosines.min():.5f}", f"{to_exact.min():.5f}"]
        rows.append(row)
    print(f"{len(texts)} sentences in one call, 10 epochs (plain: {len(at)} of them).\n")
    heads = ["", "ms per text", "throughput", "cosine to plain, mean", "lowest", "to exact, lowest"]
    table(heads, rows)


def show_lengths(model: LanguageModel, args: argparse.Namespace) -> None:
    names = ["plain", *precisions_of(model), "mean", "sbert-wk"]
    rows = []
    for length in LENGTHS:
        texts = of_length(model, length, 1 if length > 200 else 4)
        ms, _ = race(contestants(model, names, batch=1), texts, n_plain=1)
        rows.append([str(length), *ratios(ms)])
    print("One text at a time, by number of tokens; 10 epochs; throughput relative to plain.\n")
    table(["tokens", *names], rows)


def show_batches(model: LanguageModel, args: argparse.Namespace) -> None:
    names = ["plain", *precisions_of(model), "mean", "sbert-wk"]
    rows = []
    for batch in BATCHES:
        texts = sentences(max(8, batch))
        rounds = 1 if batch > 100 else ROUNDS
        ms, _ = race(contestants(model, names, batch=batch), texts, n_plain=4, rounds=rounds)
        rows.append([str(batch), *ratios(ms)])
    print("Sentences, by batch size; 10 epochs; throughput relative to plain.\n")
    table(["batch", *names], rows)


def show_epochs(model: LanguageModel, args: argparse.Namespace) -> None:
    names = ["plain", *precisions_of(model)]
    rows = []
    for epochs in EPOCHS:
        ms, _ = race(contestants(model, names, epochs=epochs), sentences(32), n_plain=4)
        rows.append([str(epochs), *ratios(ms)])
    print("32 sentences in a batch, by number of epochs; throughput relative to plain.\n")
    table(["epochs", *names], rows)


def show_layers(model: LanguageModel, args: argparse.Namespace) -> None:
    names = ["plain", *precisions_of(model)]
    blocks = tuple(  # the gradient of a key's bias is zero but for rounding
        layer.name
        for layer in model.layers
        if layer.part == "block" and not layer.name.endswith("key.bias")
    )
    rows = []
    for name, layers in (
        ("head", model.head_layers),
        ("last block", model.last_block_layers),
        (f"all {model.n_blocks} blocks", blocks),
    ):
        runners = contestants(model, names, layers=layers)
        ms, vectors = race(runners, sentences(16), n_plain=4)
        lowest = (vectors["fast"] * vectors["exact"]).sum(axis=1).min()
        rows.append([name, *ratios(ms), f"{lowest:.5f}"])
    print("16 sentences in a batch, by tuned layers (weights and biases except those of keys); "
          "10 epochs; throughput relative to plain.\n")  # fmt: skip
    table(["layers", *names, "cosine of fast to exact, lowest"], rows)


def show_sizes(model: LanguageModel, args: argparse.Namespace) -> None:
    names = ["plain", *precisions_of(model), "mean"]
    rows = []
    for name, one in (("bundled", model), ("BERT-base shape", bert_base(args.device))):
        runners = contestants(one, names, batch=args.batch)
        ms, vectors = race(runners, sentences(args.size_texts), n_plain=2)
        cosine = (vectors["fast"] * vectors["exact"]).sum(axis=1).mean()
        rows.append([name, *ratios(ms), f"{ms['exact']:.2f}", f"{ms['fast']:.2f}", f"{cosine:.5f}"])
    print("Sentences, by model (BERT-base shape has random weights); 10 epochs.\n")
    table(["model", *names, "exact, ms", "fast, ms", "cosine of fast to exact"], rows)


def bert_base(device: str | None) -> LanguageModel:
    """A model of BERT-base's shape with random weights and the bundled vocabulary."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    network = BertForMaskedLM(BertConfig())
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        neuralviz.load_model("bundled").tokenizer.save_pretrained(folder)
        return neuralviz.load_model(folder, device=device)


def pieces_of(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> list[Piece]:
    """What goes through the network in an epoch."""
    inputs = mask_texts(model, texts, settings)
    return [pack_inputs(model, group) for group in group_inputs(model, inputs)]


def show_single(model: LanguageModel, args: argparse.Namespace) -> None:
    (text,) = of_length(model, 30, 1)
    embedder = neuralviz.NeuralEmbedder(model, precision="fast")
    (tokens,) = tokenize(model, [text])
    (piece,) = pieces_of(model, [tokens], embedder.settings)
    layer = output_layer(model)

    @torch.no_grad()
    def least() -> None:
        states = model.network.base_model(input_ids=piece.ids, attention_mask=piece.attention)[0]
        at = states[piece.row, piece.column]
        cross_entropy(at, layer.weight, layer.bias, piece.labels)

    least()
    embedder.encode([text])
    ratio = median(timed(lambda: embedder.encode([text])) / timed(least) for _ in range(40))
    print(f"One text of 30 tokens, fast: {ratio:.2f} times the forward pass over its "
          f"{len(piece.ids)} inputs and one pass of the output layer.\n")  # fmt: skip


def show_profile(model: LanguageModel, args: argparse.Namespace) -> None:
    from torch.profiler import ProfilerActivity, profile

    on_gpu = model.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]
    spent = attrgetter("self_device_time_total" if on_gpu else "self_cpu_time_total")
    texts = sentences(32)
    weights = sum(p.numel() for name, p in model.network.named_parameters() if "layer." in name)
    vocab, width = output_layer(model).weight.shape
    dtypes = {"exact": torch.float32, "bf16": torch.bfloat16}
    size = 2048
    rows = []
    for precision in precisions_of(model):
        embedder = neuralviz.NeuralEmbedder(model, precision=precision)
        pieces = pieces_of(model, tokenize(model, texts), embedder.settings)
        positions = sum(len(piece.labels) for piece in pieces)
        tokens = sum(int(piece.attention.sum()) for piece in pieces)
        epochs = 1 if embedder.settings.is_fast else embedder.settings.epochs
        operations = 2 * weights * tokens + 4 * positions * vocab * width * epochs
        embedder.encode(texts)
        took = median(timed(lambda e=embedder: e.encode(texts)) for _ in range(5))
        square = torch.randn(size, size, device=model.device).to(
            dtypes["bf16" if embedder.settings.in_bf16 else "exact"]
        )
        peak = 2 * size**3 / min(timed(lambda s=square: s @ s) for _ in range(10))
        with profile(activities=activities) as seen:
            embedder.encode(texts)
            wait()
        events = [event for event in seen.key_averages() if event.key.startswith("aten::")]
        total = sum(map(spent, events)) if on_gpu else sum(map(spent, seen.key_averages()))
        shares = [
            sum(spent(event) for event in events if event.key.removeprefix("aten::") in kind)
            for kind in (PRODUCTS, ("exp_", "amax", "sub_", "sum", "softmax", "logsumexp"))
        ]
        shares.append(total - sum(shares))
        rate = operations / took
        rows.append([precision, *(f"{share / total:.0%}" for share in shares),
                     f"{rate / 1e9:,.0f}", f"{peak / 1e9:,.0f}", f"{rate / peak:.0%}"])  # fmt: skip
    whose = "the GPU's busy time" if on_gpu else "the time"
    print(f"32 sentences: shares of {whose}, and the rate of the unavoidable operations "
          "(one forward pass; the output layer, forward and backward, in every epoch of exact and "
          f"in the first of fast) compared with a product of {size} × {size}.\n")  # fmt: skip
    heads = ["", "matrix products", "softmax", "all else", "GFLOP/s", "of the machine", "share"]
    table(heads, rows)


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def show_memory(model: LanguageModel, args: argparse.Namespace) -> None:
    program = (
        "import sys, neuralviz\n"
        "from tests.support.memory import peak_memory\n"
        f"model = neuralviz.load_model('bundled', device={str(model.device)!r})\n"
        "texts = [f'text {i} of many' for i in range(int(sys.argv[1]))]\n"
        "neuralviz.NeuralEmbedder(model, epochs=2, precision='fast').encode(texts)\n"
        "print(peak_memory())\n"
    )
    peaks = []
    for n in (1_000, 10_000):
        done = subprocess.run(
            [sys.executable, "-c", program, str(n)],
            cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(done.stdout.split()[-1]) / 1e9)
    print(f"Peak memory of the process: {peaks[0]:.2f} GB after 1,000 texts in one call, "
          f"{peaks[1]:.2f} GB after 10,000.\n")  # fmt: skip


SHOW = {
    "sentences": show_sentences,
    "length": show_lengths,
    "batch": show_batches,
    "epochs": show_epochs,
    "layers": show_layers,
    "size": show_sizes,
    "single": show_single,
    "profile": show_profile,
    "memory": show_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sections", nargs="+", default=list(SHOW), choices=SHOW)
    parser.add_argument("--device", help="cpu, cuda …; default: the fastest available")
    parser.add_argument("--texts", type=int, default=128, help="number of sentences")
    parser.add_argument(
        "--plain-texts", type=int, default=16, help="how many of them are used for plain"
    )
    parser.add_argument("--size-texts", type=int, default=16, help="number of sentences for size")
    parser.add_argument("--batch", type=int, default=32, help="batch size")
    args = parser.parse_args()

    model = neuralviz.load_model("bundled", device=args.device)
    on = torch.cuda.get_device_name() if model.device.type == "cuda" else cpu_name()
    threads = "" if model.device.type == "cuda" else f", {torch.get_num_threads()} threads"
    print(f"{on}{threads}; torch {torch.__version__}\n")
    for section in args.sections:
        SHOW[section](model, args)


def cpu_name() -> str:
    """What the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


if __name__ == "__main__":
    main()
