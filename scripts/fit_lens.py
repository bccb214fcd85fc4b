"""Fit what translates each layer of the bundled model to its last: bundled/lens.safetensors.

For every layer an affine map, by least squares with a small ridge, from the vectors of masked
tokens at this layer to those at the last (a tuned lens, but not by gradient descent). The texts
are four fifths of sample_data/textbooks.csv; on the others, the mean cross entropy of both lenses
is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import neuralviz
from neuralviz.micro_tuning.lens import LENS_FILE, read_layers, translate_bundled
from neuralviz.models import LanguageModel, tokenize
from neuralviz.models.passes import encode_ids, pad_inputs
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts

RIDGE = 1e-3  # of the mean squared length of a value
MASKED = 0.15  # of the tokens
TOGETHER = 32  # passages
HELD_OUT = 5  # every fifth passage
TRIED = 60  # passages on which the lenses are compared


def read_passages() -> list[str]:
    return list(read_texts(Source.from_path(sample_data() / "textbooks.csv")).texts)


def masked_vectors(model: LanguageModel, texts: list[str]) -> Iterator[torch.Tensor]:
    """[layer, position, d_model] vectors of masked tokens, a batch at a time."""
    draw = np.random.default_rng(0)
    for start in range(0, len(texts), TOGETHER):
        inputs, places = [], []
        for text in tokenize(model, texts[start : start + TOGETHER]):
            ids = np.array([*model.prefix_ids, *text.ids[text.chunks[0]], *model.suffix_ids])
            own = slice(len(model.prefix_ids), len(ids) - len(model.suffix_ids))
            is_masked = np.zeros(len(ids), dtype=bool)
            is_masked[own] = draw.random(len(ids[own])) < MASKED
            inputs.append(np.where(is_masked, model.mask_id, ids))
            places.append(is_masked)
        ids, attention = pad_inputs(inputs, model.pad_id, model.device)
        width = ids.shape[1]
        masked = torch.tensor(np.array([np.pad(row, (0, width - len(row))) for row in places]))
        with torch.no_grad():
            yield encode_ids(model, ids, attention)[:, masked]


def fit_maps(model: LanguageModel, texts: list[str]) -> dict[str, torch.Tensor]:
    """``weight`` [layer, d_model, d_model] and ``bias`` [layer, d_model], in half precision."""
    n, d = model.n_blocks, model.d_model
    gram = torch.zeros(n, d + 1, d + 1, dtype=torch.float64)
    product = torch.zeros(n, d + 1, d, dtype=torch.float64)
    for vectors in masked_vectors(model, texts):
        exact = vectors.double()
        inputs = torch.cat([exact[:-1], exact.new_ones(n, exact.shape[1], 1)], dim=2)
        gram += inputs.transpose(1, 2) @ inputs
        product += inputs.transpose(1, 2) @ exact[-1]
    scale = torch.diagonal(gram, dim1=1, dim2=2)[:, :-1].mean(dim=1)
    ridge = torch.diag(torch.tensor([1.0] * d + [0.0], dtype=torch.float64))
    solved = torch.linalg.solve(gram + RIDGE * scale[:, None, None] * ridge, product)
    return {"weight": solved[:, :-1].half().contiguous(), "bias": solved[:, -1].half().contiguous()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, help="how many to read; all by default")
    parser.add_argument("-o", "--output", type=Path, default=LENS_FILE)
    chosen = parser.parse_args()
    model = neuralviz.load_model("bundled", device="cpu")
    passages = read_passages()[: chosen.passages]
    held_out = passages[::HELD_OUT]
    maps = fit_maps(model, [text for i, text in enumerate(passages) if i % HELD_OUT])
    save_file(maps, chosen.output)
    print(f"{chosen.output.name}: {chosen.output.stat().st_size / 1024:.0f} KB")
    losses: dict[str, list[np.ndarray]] = {"raw": [], "translated": []}
    for text in tokenize(model, held_out[:TRIED]):
        some = range(0, len(text), 5)
        losses["raw"].append(read_layers(model, text, some).loss)
        translated = read_layers(model, text, some, translate=translate_bundled(chosen.output))
        losses["translated"].append(translated.loss)
    for name, values in losses.items():
        print(f"{name:10}", "  ".join(f"{loss:.2f}" for loss in np.mean(values, axis=0)), "nats")
