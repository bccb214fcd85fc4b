"""One frozen network run for many texts at once, each with tuned vectors of its own.

A `PerTextNetwork` is a shallow copy of the model's module tree: every parameter is the shared
model's own tensor, and nothing of the shared model is changed. In the copy

- modules that own a tuned 1-D parameter take it from a table with a row a text,
- the output layer is left out, so that what would go into it comes out,
- everything below the lowest tuned parameter is replaced by what it gave once (the paper's
  Appendix B): the whole encoder when only the head is tuned, with the head's first matrix product
  where only the bias behind it moves; else the blocks below.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from neuralviz.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from neuralviz.models import LanguageModel

HEAD_ONLY = "head"


@dataclass(eq=False)
class TunedRows:
    """The tuned vectors that the modules of one `PerTextNetwork` read while it runs.

    Attributes:
        values: parameter name to [row, dim], a row for each row of the activations; or to
            [row, position, dim], one for each of its positions too.
        text_of: [row] the text a row belongs to; rows of one text that follow each other have the
            same vectors.
    """

    values: dict[str, Tensor] = field(default_factory=dict)
    text_of: Tensor | None = None

    def spread(self, name: str, ndim: int) -> Tensor:
        """[row, …, dim] a tuned vector shaped to meet activations of ``ndim`` axes."""
        value = self.values[name]
        if value.ndim == ndim:
            return value
        return value.view(len(value), *[1] * (ndim - 2), value.shape[-1])


class _PerTextLinear(nn.Module):
    """A linear layer whose bias is the row's own."""

    def __init__(self, linear: nn.Linear, rows: TunedRows, bias: str) -> None:
        super().__init__()
        self.weight, self.rows, self.name = linear.weight, rows, bias
        self.is_multiplied = False  # whether it is given the product with its weight

    def forward(self, x: Tensor) -> Tensor:
        product = x if self.is_multiplied else F.linear(x, self.weight)
        return product + self.rows.spread(self.name, x.ndim)


class _PerTextLayerNorm(nn.Module):
    """A layer norm whose weight or bias, or both, are the row's own."""

    def __init__(self, norm: nn.LayerNorm, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.norm, self.rows, self.names = norm, rows, names

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, self.norm.normalized_shape, None, None, self.norm.eps)
        weight, bias = (
            self.rows.spread(self.names[part], x.ndim) if part in self.names else own
            for part, own in (("weight", self.norm.weight), ("bias", self.norm.bias))
        )
        if weight is not None:
            x = x * weight
        return x if bias is None else x + bias


class _PerTextModule(nn.Module):
    """Any other module that owns a tuned vector: run once for each that is another."""

    def __init__(self, module: nn.Module, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.module, self.rows, self.names = module, rows, names

    def forward(self, x: Tensor) -> Tensor:
        values = {part: self.rows.values[name] for part, name in self.names.items()}
        if any(value.ndim == x.ndim for value in values.values()):  # one for each position
            flat = {part: value.flatten(0, -2) for part, value in values.items()}
            pieces = [
                torch.func.functional_call(self.module, {p: v[i] for p, v in flat.items()}, (one,))
                for i, one in enumerate(x.flatten(0, -2).split(1))
            ]
            return torch.cat(pieces).unflatten(0, x.shape[:-1])
        _, counts = torch.unique_consecutive(self.rows.text_of, return_counts=True)
        pieces, row = [], 0
        for piece in x.split(counts.tolist()):
            own = {part: value[row] for part, value in values.items()}
            pieces.append(torch.func.functional_call(self.module, own, (piece,)))
            row += len(piece)
        return torch.cat(pieces)


class _Given(nn.Module):
    """Stands for modules whose output is already known."""

    def __init__(self, attention_type: str | None = None) -> None:
        super().__init__()
        self.output: Tensor | None = None
        self.seen: Tensor | None = None  # what the module that it stands for was last given
        self.tuple_size: int | None = None  # where the module returns a tuple, the output first
        if attention_type is not None:
            self.attention_type = attention_type  # ModernBERT asks each block for it

    def forward(self, *_args: object, **_kwargs: object) -> object:
        if self.tuple_size is None:
            return self.output
        return (self.output, *[None] * (self.tuple_size - 1))


class _GivenEncoder(_Given):
    def forward(self, *_args: object, **_kwargs: object) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.output)


def sharing_copy(network: nn.Module, paths: Iterable[str]) -> nn.Module:
    """A copy of which only the modules that lead to ``paths``, and those there, are its own.

    All others, and every tensor, are the network's: what is copied can be replaced or hooked.
    """
    within: dict[str, set[str]] = {}
    for path in filter(None, paths):
        child, _, below = path.partition(".")
        within.setdefault(child, set()).add(below)
    own = copy.copy(network)
    for name, value in vars(network).items():
        if isinstance(value, dict):  # of modules, of parameters, of hooks
            own.__dict__[name] = copy.copy(value)
    for child, paths_below in within.items():
        own._modules[child] = sharing_copy(network.get_submodule(child), paths_below)
    return own


def _replace(network: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, module)


def _blocks_path(network: nn.Module) -> str:
    """Path of the list of transformer blocks, empty where the model has no plain list."""
    depth = getattr(network.config, "num_hidden_layers", None)
    for path, module in network.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return path
    return ""


class PerTextNetwork:
    """The part of a frozen model from the lowest tuned parameter up to the output layer.

    Args:
        model: the shared model; it is read, never written.
        names: the tuned 1-D parameters.
        reuse: whether to compute what lies below them once. ``False`` runs the whole network
            every time: slower, and the same numbers.

    Not to be shared between threads: every run makes its own, which costs milliseconds.
    """

    def __init__(self, model: LanguageModel, names: tuple[str, ...], *, reuse: bool = True) -> None:
        self.names = names
        self.rows = TunedRows()
        self._whole = model.network
        output = model.network.get_output_embeddings()
        self.output_weight = output.weight.detach()
        self.output_bias = None if output.bias is None else output.bias.detach()
        self.output_bias_name = self._output_bias_name(model.network, names)
        paths = {id(module): path for path, module in model.network.named_modules()}
        output_path = paths[id(output)]

        layers = {layer.name: layer for layer in model.layers}
        parts = {layers[name].part for name in names}
        self._blocks_path = _blocks_path(model.network)
        self.cut: str | int | None = None
        if reuse and parts == {"head"}:
            self.cut = HEAD_ONLY
        elif reuse and "embeddings" not in parts and self._blocks_path:
            blocks_of_names = (layers[name].block for name in names)
            lowest = min(block for block in blocks_of_names if block is not None)
            self.cut = lowest or None  # below block 0 there is only the look-up of the embeddings

        owners = self._owners()
        encoder = model.network.base_model_prefix
        given_path = encoder if self.cut == HEAD_ONLY else self._blocks_path if self.cut else ""
        network = sharing_copy(model.network, [*owners, output_path, given_path])
        self._tune_modules(network, owners)
        _replace(network, output_path, nn.Identity())
        self._given = _Given()  # in the network when something is reused
        self._watched: nn.Module | None = None  # for `below`, made when it is first needed
        if self.cut == HEAD_ONLY:
            self._given = _GivenEncoder()
            _replace(network, encoder, self._given)
        elif self.cut is not None:
            blocks = network.get_submodule(self._blocks_path)
            self._given = _Given(getattr(blocks[self.cut], "attention_type", None))
            tail = nn.ModuleList([self._given, *blocks[self.cut :]])
            _replace(network, self._blocks_path, tail)
        self._network = network
        self._entry = self._find_entry(model) if self.cut == HEAD_ONLY else None
        if self._entry is not None:
            self._entry.is_multiplied = True

    def _find_entry(self, model: LanguageModel) -> _PerTextLinear | None:
        """The head's linear layer that gets the encoder's output as it is: its weight is frozen."""
        given = torch.zeros(1, 1, model.d_model, device=model.device)
        found = []

        def look(module: nn.Module, args: tuple) -> None:
            if args and args[0] is given:
                found.append(module)

        linears = [module for module in self._network.modules() if type(module) is _PerTextLinear]
        hooks = [module.register_forward_pre_hook(look) for module in linears]
        parameters = dict(model.network.named_parameters())
        with torch.no_grad():
            self.at_positions(given, {name: parameters[name][None] for name in self.names})
        for hook in hooks:
            hook.remove()
        return found[0] if len(found) == 1 else None

    @staticmethod
    def _output_bias_name(network: nn.Module, names: tuple[str, ...]) -> str | None:
        """The tuned name that is the output layer's bias, if any."""
        bias = network.get_output_embeddings().bias
        by_name = dict(network.named_parameters())
        return next((name for name in names if by_name[name] is bias), None)

    def _owners(self) -> dict[str, dict[str, str]]:
        """Path of each module with tuned parameters: what they are in it to their names."""
        owners: dict[str, dict[str, str]] = {}
        for name in self.names:
            if name != self.output_bias_name:
                path, _, part = name.rpartition(".")
                owners.setdefault(path, {})[part] = name
        return owners

    def _tune_modules(self, network: nn.Module, owners: dict[str, dict[str, str]]) -> None:
        for path, parts in owners.items():
            module = network.get_submodule(path)
            if type(module) is nn.Linear:
                tuned = _PerTextLinear(module, self.rows, parts["bias"])
            elif type(module) is nn.LayerNorm:
                tuned = _PerTextLayerNorm(module, self.rows, parts)
            else:
                tuned = _PerTextModule(module, self.rows, parts)
            _replace(network, path, tuned)

    @torch.no_grad()
    def below(self, ids: Tensor, attention: Tensor, at: tuple[Tensor, ...] = ()) -> Tensor | None:
        """What lies below the cut gives for [row, token] inputs: [row, token, width].

        None when nothing is reused. With ``at``, head-only, indices of rows and of tokens in any
        shape: […, width] what is there alone.
        """
        if self.cut is None:
            return None
        if self.cut == HEAD_ONLY:
            states = self._whole.base_model(input_ids=ids, attention_mask=attention)[0]
            states = states[at] if at else states
            return states if self._entry is None else F.linear(states, self._entry.weight)
        if self._watched is None:
            self._watched = self._watch_block_at_the_cut()
        self._watched(input_ids=ids, attention_mask=attention)
        return self._given.seen

    def _watch_block_at_the_cut(self) -> nn.Module:
        """A copy of the base model that notes what its block at the cut is given."""
        # named within the base model, which the whole network's path begins with
        path = self._blocks_path.removeprefix(f"{self._whole.base_model_prefix}.")
        network = sharing_copy(self._whole.base_model, [f"{path}.{self.cut}"])
        block = network.get_submodule(path)[self.cut]
        given = self._given

        def note_input(_module: nn.Module, args: tuple, kwargs: dict) -> None:
            given.seen = args[0] if args else kwargs["hidden_states"]

        def note_output(_module: nn.Module, _args: tuple, output: object) -> None:
            given.tuple_size = len(output) if isinstance(output, tuple) else None

        block.register_forward_pre_hook(note_input, with_kwargs=True)
        block.register_forward_hook(note_output)
        return network

    def at_positions(self, below: Tensor, values: dict[str, Tensor]) -> Tensor:
        """Head-only: [text, position, width] of `below` to the inputs of the output layer.

        ``values`` hold a row a text, or [text, position, dim] one a position.
        """
        self.rows.values = values
        self.rows.text_of = torch.arange(len(below), device=below.device)
        self._given.output = below
        ids = torch.zeros(below.shape[:2], dtype=torch.long, device=below.device)
        return self._network(input_ids=ids).logits

    def at_tokens(
        self, ids: Tensor, attention: Tensor, below: Tensor | None, values: dict[str, Tensor],
        text_of: Tensor,
    ) -> Tensor:  # fmt: skip
        """[row, token] inputs to [row, token, width] output-layer inputs.

        ``values`` hold a row a row of the inputs; ``below`` is what `below` gave for them.
        """
        self.rows.values, self.rows.text_of = values, text_of
        self._given.output = below
        return self._network(input_ids=ids, attention_mask=attention).logits


# of a model, its layers and whether reuse is wished for: whether it is possible
_routes: WeakKeyDictionary[LanguageModel, dict[tuple[tuple[str, ...], bool], bool]] = (
    WeakKeyDictionary()
)


def per_text_network(
    model: LanguageModel, names: tuple[str, ...], *, reuse: bool = True
) -> PerTextNetwork:
    """A `PerTextNetwork` that is known to give the whole model's numbers.

    An architecture may look at what this module replaces or at the padding beside a shorter text.
    So on the first use of a model and layers the network is compared with the whole model on two
    short inputs; where reuse does not agree, the whole network is run in every step.

    Raises:
        ModelError: these layers of the model cannot be tuned text by text, or its weights are no
            finite numbers.
    """
    known = _routes.setdefault(model, {})
    if (names, reuse) in known:
        return PerTextNetwork(model, names, reuse=known[names, reuse])
    for route in [True, False] if reuse else [False]:
        try:
            network = PerTextNetwork(model, names, reuse=route)
            agrees = _agrees(model, network)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            agrees = False  # a module cannot do with what was replaced around it
        if agrees:
            known[names, reuse] = route
            return network
    if not all(bool(parameter.isfinite().all()) for parameter in model.network.parameters()):
        raise ModelError(
            f"The weights of {model.id} are broken: some are no finite numbers. Fetch it anew, or "
            "use another model."
        )
    raise ModelError(
        f"{model.id} ({model.family}) is built in a way that these layers cannot be tuned for each "
        "text on its own; choose other layers, or a model such as bert-base-uncased."
    )


def _agrees(model: LanguageModel, network: PerTextNetwork) -> bool:
    """Whether two inputs of different lengths and weights give the whole model's logits.

    And whether gradients come back to the weights.
    """
    own = model.encoder.encode("a", add_special_tokens=False).ids[:1]
    inputs = [
        [*model.prefix_ids, *own * n, model.mask_id, *model.suffix_ids] for n in (1, 4)
    ]  # the first is padded
    width = max(map(len, inputs))
    padded = [entry + [model.pad_id] * (width - len(entry)) for entry in inputs]
    ids = torch.tensor(padded, device=model.device)
    attention = torch.tensor(
        [[int(at < len(entry)) for at in range(width)] for entry in inputs], device=model.device
    )
    row, column = attention.nonzero(as_tuple=True)
    parameters = dict(model.network.named_parameters())
    of_text = [  # each text has weights of its own, as after some steps
        {
            name: (parameters[name].detach() * (1 + 0.1 * number) + 0.01 * number)
            for name in network.names
            if name != network.output_bias_name
        }
        for number in range(len(inputs))
    ]
    with torch.no_grad():
        expected = torch.cat(
            [
                torch.func.functional_call(
                    model.network, own, (torch.tensor([entry], device=model.device),)
                ).logits[0]
                for own, entry in zip(of_text, inputs, strict=True)
            ]
        )
    head_only = network.cut == HEAD_ONLY
    values = {
        name: torch.stack([own[name] for own in of_text]).requires_grad_() for name in of_text[0]
    }
    below = network.below(ids, attention)
    with torch.enable_grad():
        if head_only:
            assert below is not None
            out = network.at_positions(below, values)[row, column]
        else:
            text_of = torch.arange(len(inputs), device=model.device)
            out = network.at_tokens(ids, attention, below, values, text_of)[row, column]
        if values:  # raises where a layer plays no part
            torch.autograd.grad(out.square().sum(), list(values.values()))
    logits = out.detach() @ network.output_weight.T
    if network.output_bias is not None:
        logits = logits + network.output_bias
    return bool((logits - expected).abs().max() <= 1e-3 * expected.abs().max())
