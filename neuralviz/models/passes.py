"""Forward passes: a network is tried when it is loaded, and each pass then gets what it needs.

A text's vector may depend on the text and the weights alone. Not every network keeps to that: some
look at the padding beside a text, some change with what they read before, some draw random numbers.
`trial.probe_encoder` finds out with a few short inputs; `encode_ids` then runs each pass so that
nothing but the text counts. What cannot be helped is refused with a sentence.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from neuralviz.errors import ModelError, shorten_reason

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neuralviz.models.language_model import TextModel

Batching = Literal["padded", "equal lengths", "single"]

_random_numbers = threading.Lock()


@dataclass(frozen=True)
class Habits:
    """What a network was seen to do when it read some inputs.

    Attributes:
        batching: which inputs may share a pass: ``padded``, any; ``equal lengths``, those that
            need no padding; ``single``, none.
        keeps_state: whether a pass changes the network, so that each pass gets a copy of it.
        draws: whether it draws random numbers, so that each pass begins with the same seed.
    """

    batching: Batching = "padded"
    keeps_state: bool = False
    draws: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a pass neither changes the network nor draws random numbers."""
        return not (self.keeps_state or self.draws)

    @property
    def cache_key(self) -> dict[str, int]:
        """What of it is a part of the key of kept vectors: nothing of most networks.

        The vectors of others were computed differently before each had passes of its own.
        """
        return {} if self.is_plain and self.batching == "padded" else {"passes": 2}

    def may_share_pass(self, first: int, length: int) -> bool:
        """Whether an input of ``length`` tokens may join a batch that begins with one of ``first``.

        Lengths are those of the inputs as the network gets them, special tokens included.
        """
        return self.batching == "padded" or (self.batching == "equal lengths" and first == length)


@dataclass(frozen=True)
class Behaviour(Habits):
    """The habits of an encoder, and the shape of what it gives.

    Attributes:
        n_layers: layers of hidden states, the embedding output included.
        d_model: values of a hidden state.
        ends_with_norm: whether the last hidden state is more than the output of the last block.
        options: further arguments of every pass.
    """

    n_layers: int = 0
    d_model: int = 0
    ends_with_norm: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cache_key(self) -> dict[str, int]:
        """As of `Habits`; also where the last layer once was the output of the last block."""
        return {"passes": 2} if self.ends_with_norm else super().cache_key


@dataclass(frozen=True)
class TokenTypes:
    """The token types of a text by itself, where a tokenizer gives others than 0.

    Attributes:
        prefix, suffix: of the special tokens around a text.
        text: of its own tokens.
    """

    prefix: tuple[int, ...]
    text: int
    suffix: tuple[int, ...]

    def fill(self, attention: Tensor) -> Tensor:
        """[row, token] types of inputs, by where there is a token, 1, and padding, 0."""
        types = torch.full_like(attention, self.text)
        types[:, : len(self.prefix)] = types.new_tensor(self.prefix)
        places = torch.arange(attention.shape[1], device=attention.device)
        from_end = attention.sum(dim=1, keepdim=True) - 1 - places
        for place, kind in enumerate(reversed(self.suffix)):
            types[from_end == place] = kind
        return types


def encode_ids(
    model: TextModel,
    ids: Tensor,
    attention: Tensor,
    *,
    call: Callable[..., Any] | None = None,
) -> Tensor:
    """Hidden states of one forward pass.

    Args:
        model: is only read.
        ids: [row, token] vocabulary ids.
        attention: [row, token] 1 where there is a token, 0 at padding.
        call: runs in place of the model's encoder.

    Returns:
        [layer, row, token, d_model]; layer 0 is the embedding output, the last layer what the model
        gives as its last hidden state.

    Raises:
        ModelError: the network cannot read an input of this length.
    """
    out = run_pass(model, ids, attention, call=call, output_hidden_states=True)
    return stack_layers(out, ids.shape[1])


def encode_last(model: TextModel, ids: Tensor, attention: Tensor) -> Tensor:
    """[row, token, d_model] last hidden states; arguments and errors as of `encode_ids`."""
    return run_pass(model, ids, attention)[0][:, : ids.shape[1]]


def run_pass(
    model: TextModel,
    ids: Tensor,
    attention: Tensor,
    *,
    call: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """The output of the model's encoder, or of ``call``, in a pass of its own; as `encode_ids`."""
    behaviour = model.behaviour
    if model.token_types is not None:
        options["token_type_ids"] = model.token_types.fill(attention)
    if call is None:
        call = model.network.base_model
        call = copy_network(call) if behaviour.keeps_state else call
    try:
        with seeded(0) if behaviour.draws else nullcontext():
            return call(input_ids=ids, attention_mask=attention, **behaviour.options, **options)
    except Exception as error:  # whatever an architecture makes of an input that it does not take
        if is_out_of_memory(error):
            raise
        raise ModelError(
            f"{model.id} ({model.family}) cannot read a text of {ids.shape[1]} tokens: "
            f"{shorten_reason(error)}."
        ) from error


def copy_network(network: nn.Module) -> nn.Module:
    """A copy with modules, buffers and configuration of its own.

    Parameters, and tokenizers of a sentence encoder, are the network's.
    """
    attributes = [value for module in network.modules() for value in vars(module).values()]
    tokenizers = [value for value in attributes if hasattr(value, "is_fast")]
    shared = [*network.parameters(), *tokenizers]
    return copy.deepcopy(network, {id(value): value for value in shared})


def is_out_of_memory(error: BaseException) -> bool:
    """Of a GPU; or of a CPU or of a library of a GPU, which torch reports without a type."""
    unnamed = (
        "can't allocate memory", "not enough memory", "out of memory", "alloc_failed", "bad_alloc"
    )  # fmt: skip
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in unnamed)
    )


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """torch's own random numbers from a seed, as if nobody else drew any; afterwards as before.

    What is drawn depends on nothing that was drawn before, so that a training goes on anywhere.
    """
    (entropy,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    with _random_numbers, torch.random.fork_rng():
        torch.manual_seed(int(entropy >> 1))
        yield


def stack_layers(out: Any, width: int) -> Tensor:
    """[layer, row, token, d_model] of a pass over inputs of so many tokens.

    Some architectures pad what they read, and some normalise after their last layer.
    """
    last = getattr(out, "last_hidden_state", None)
    layers = getattr(out, "hidden_states", None)
    if last is None or not layers:
        raise ValueError("it does not give the vectors of every token at every layer")
    layers = [*layers[:-1], last]
    if any(layer.ndim != 3 or layer.shape[1] < width for layer in layers):
        raise ValueError("some of its layers do not give one vector for each token")
    if len({layer.shape[2] for layer in layers}) > 1:
        raise ValueError("the vectors of its layers differ in size")
    return torch.stack([layer[:, :width] for layer in layers])
