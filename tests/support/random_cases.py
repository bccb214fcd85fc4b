"""Models, texts and settings of micro-tuning, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from neuralviz.micro_tuning.frozen_tail import count_candidates
from neuralviz.micro_tuning.inputs import FASTEST_RATE
from neuralviz.models import LanguageModel
from tests.support.models import random_model

TOLERANCES = (0.02, 0.005, 0.002, 0.001, 0.0005)
FAMILIES = ("bert", "roberta", "distilbert", "mpnet", "electra")
KEY_BIASES = ("key.bias", "k_lin.bias", "attn.k.bias")  # softmax makes their gradient zero
BLUEPRINTS = (((2, 1), (1, 1), (1, 2), (1, 3)), ((1, 1),), ((3, 1), (1, 2)), ((5, 2),))
LENGTHS = (1, 2, 5, 12, 25, 38, 60, 100)
SPREADS = (0.02, 0.1, 0.3, 0.6, 1.2)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
WIDTHS = (8, 16, 32, 64)


def block_layers(model: LanguageModel) -> list[str]:
    names = [layer.name for layer in model.layers if layer.part == "block"]
    return [name for name in names if not name.endswith(KEY_BIASES)]


def output_bias(model: LanguageModel) -> list[str]:
    return [layer.name for layer in model.layers if layer.size == model.vocab_size]


LAYERS: dict[str, Callable[[LanguageModel], list[str]]] = {
    "head": lambda model: list(model.head_layers),
    "one of the head": lambda model: [model.head_layers[0]],
    "last block": lambda model: [n for n in block_layers(model) if n in model.last_block_layers],
    "some": lambda model: [*block_layers(model)[::5], model.head_layers[-1]],
    "all blocks": block_layers,
    "output bias": output_bias,
    "output bias and head": lambda model: [*output_bias(model), *model.head_layers],
}
FOLLOWED = tuple(name for name in LAYERS if "output bias" not in name)  # fast may differ there


@dataclass(frozen=True)
class Case:
    """A model, texts and settings."""

    family: str
    vocab: int
    width: int
    n_blocks: int
    spread: float
    seed: int
    lengths: tuple[int, ...]
    layers: str
    blueprints: tuple[tuple[int, int], ...]
    epochs: int
    learning_rate: float

    def model(self, device: str = "cpu") -> LanguageModel:
        return random_model(
            self.family,
            vocab=self.vocab,
            width=self.width,
            n_blocks=self.n_blocks,
            spread=self.spread,
            seed=self.seed,
            device=device,
        )

    @property
    def texts(self) -> list[str]:
        """Of common words, and of words that are all as common as each other."""
        drawn, texts = random.Random(self.seed), []
        for n_tokens in self.lengths:
            skew = drawn.choice((1, 3))
            words = [int((self.vocab - 6) * drawn.random() ** skew) for _ in range(n_tokens)]
            texts.append(" ".join(f"w{word}" for word in words))
        return texts

    def options(self, model: LanguageModel) -> dict:
        return {
            "layers": LAYERS[self.layers](model),
            "blueprints": self.blueprints,
            "epochs": self.epochs,
            "learning_rate": self.learning_rate,
        }

    def has_frozen_tail(self, tolerance: float) -> bool:
        """Whether *fast* leaves words out; otherwise it is exact."""
        few = count_candidates(self.vocab, tolerance) < self.vocab
        return few and self.learning_rate <= FASTEST_RATE


def drawn_case(seed: int) -> Case:
    """A case that no release of a testing library changes."""
    drawn = random.Random(seed)
    return Case(
        family=drawn.choice(FAMILIES),
        vocab=int(60 * 50 ** drawn.random()),
        width=drawn.choice(WIDTHS),
        n_blocks=drawn.randint(1, 4),
        spread=drawn.choice(SPREADS),
        seed=seed,
        lengths=tuple(drawn.choice(LENGTHS) for _ in range(3)),
        layers=drawn.choice(FOLLOWED),
        blueprints=drawn.choice(BLUEPRINTS),
        epochs=drawn.randint(2, 12),
        learning_rate=drawn.choice(RATES),
    )


def case_for_fast(seed: int) -> tuple[Case, float]:
    """A case of a larger vocabulary, in most of which *fast* leaves words out, and a tolerance."""
    vocab = int(300 * 40 ** random.Random(seed + 99).random())
    return replace(drawn_case(seed), vocab=vocab), TOLERANCES[seed % len(TOLERANCES)]
