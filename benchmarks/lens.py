"""Measure the lens of a model without a head: how near a token's vector is to its own row.

    python benchmarks/lens.py

Prints a table in markdown of all-MiniLM-L6-v2 on all tokens of ``triplet_groups.csv``: at each
layer, the share of the tokens whose own row of the embedding table is the nearest by cosine
similarity and by dot product, and of tokens that are masked in turn, the share whose row is among
the five nearest by either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuralviz  # noqa: F401  # before torch, which reads how threads wait

# isort: split
import torch
from torch.nn.functional import normalize

from neuralviz.models import MINILM, TextModel, TokenizedText, load_text_model, tokenize
from neuralviz.models.passes import encode_ids, pad_inputs
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts

TOGETHER = 32  # inputs of a forward pass
FEW = 5  # nearest rows


def read_vectors(model: TextModel, text: TokenizedText, *, masked: bool) -> Iterator[torch.Tensor]:
    """[layer, token, d_model] vectors of a text's tokens, each masked in turn or none."""
    ids = np.array([*model.prefix_ids, *text.ids, *model.suffix_ids])
    places = len(model.prefix_ids) + np.arange(len(text))
    if not masked:
        inputs = pad_inputs([ids], model.pad_id, model.device)
        yield encode_ids(model, *inputs)[:, 0, places]
        return
    for some in np.split(places, range(TOGETHER, len(places), TOGETHER)):
        hidden = np.tile(ids, (len(some), 1))
        hidden[np.arange(len(some)), some] = model.tokenizer.mask_token_id
        inputs = pad_inputs(list(hidden), model.pad_id, model.device)
        yield encode_ids(model, *inputs)[:, np.arange(len(some)), some]


def rank_rows(vectors: torch.Tensor, table: torch.Tensor, ids: np.ndarray) -> np.ndarray:
    """[layer, token] how many rows are nearer to a token's vector than its own."""
    scores = vectors @ table.T
    own = scores.gather(2, torch.tensor(ids).expand(len(scores), -1)[..., None])
    return (scores > own).sum(dim=2).numpy()


@torch.no_grad()
def main() -> None:
    model = load_text_model(MINILM, device="cpu")
    table = model.network.get_input_embeddings().weight
    texts = tokenize(
        model, read_texts(Source.from_path(sample_data() / "triplet_groups.csv")).texts
    )
    ranks: dict[tuple[bool, str], list[np.ndarray]] = {}
    for masked in (False, True):
        for text in texts:
            vectors = torch.cat(list(read_vectors(model, text, masked=masked)), dim=1)
            unit = normalize(vectors, dim=-1), normalize(table, dim=-1)
            for name, (states, rows) in {"cosine": unit, "dot product": (vectors, table)}.items():
                ranks.setdefault((masked, name), []).append(rank_rows(states, rows, text.ids))
    columns = {key: np.concatenate(values, axis=1) for key, values in ranks.items()}
    print(f"{sum(map(len, texts))} tokens of {len(texts)} texts\n")
    heads = ["layer", *(f"{name}, masked" if masked else name for masked, name in columns)]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for layer in range(model.n_blocks + 1):
        shares = [
            (rank[layer] < (FEW if masked else 1)).mean() for (masked, _), rank in columns.items()
        ]
        print(f"| {layer} | {' | '.join(f'{share:.1%}' for share in shares)} |")


if __name__ == "__main__":
    main()
