"""One frozen network for many texts at once, each with its own tuned vectors."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuralviz.models.passes import encode_last

if TYPE_CHECKING:
    from transformers.modeling_outputs import BaseModelOutput

    from neuralviz.models import LanguageModel

HEAD_ONLY = "head"


def sharing_copy(network: nn.Module, paths: Iterable[str]) -> nn.Module:
    """A copy that shares all tensors, and all modules but those at or above ``paths``."""
    within: dict[str, set[str]] = {}
    for path in filter(None, paths):
        child, _, remainder = path.partition(".")
        within.setdefault(child, set()).add(remainder)
    copied = copy.copy(network)
    for name, value in vars(network).items():
        if isinstance(value, dict):  # of modules, of parameters, of hooks
            copied.__dict__[name] = copy.copy(value)
    for child, paths_below in within.items():
        copied._modules[child] = sharing_copy(network.get_submodule(child), paths_below)
    return copied


def _replace(network: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, module)


def _blocks_path(network: nn.Module) -> str:
    """Path of the list of transformer blocks; empty if the model has no plain list."""
    depth = getattr(network.config, "num_hidden_layers", None)
    for path, module in network.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return path
    return ""


class PerTextNetwork:
    """A frozen model with tuned 1-D parameters per text, ending before the output layer."""

    # shares the model's tensors; with ``reuse``, all below the lowest tuned parameter is computed
    # once (Appendix B); not thread-safe: make one per run, which takes milliseconds

    def __init__(self, model: LanguageModel, names: tuple[str, ...], *, reuse: bool = True) -> None:
        self.names = names
        self.rows = TunedRows()
        self._model = model
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
        self._precomputed = PrecomputedOutput()  # in the network when something is reused
        self._watched: nn.Module | None = (
            None  # for `run_frozen_part`, made when it is first needed
        )
        if self.cut == HEAD_ONLY:
            self._precomputed = PrecomputedEncoder()
            _replace(network, encoder, self._precomputed)
        elif self.cut is not None:
            blocks = network.get_submodule(self._blocks_path)
            self._precomputed = PrecomputedOutput(getattr(blocks[self.cut], "attention_type", None))
            tail = nn.ModuleList([self._precomputed, *blocks[self.cut :]])
            _replace(network, self._blocks_path, tail)
        self._network = network
        self._entry = self._find_entry(model) if self.cut == HEAD_ONLY else None
        if self._entry is not None:
            self._entry.is_multiplied = True

    def _find_entry(self, model: LanguageModel) -> PerTextLinear | None:
        """The head's linear layer that receives the encoder's output unchanged, if unique."""
        probe = torch.zeros(1, 1, model.d_model, device=model.device)
        modules = []

        def look(module: nn.Module, args: tuple) -> None:
            if args and args[0] is probe:
                modules.append(module)

        linears = [module for module in self._network.modules() if type(module) is PerTextLinear]
        hooks = [module.register_forward_pre_hook(look) for module in linears]
        parameters = dict(model.network.named_parameters())
        with torch.no_grad():
            self.at_positions(probe, {name: parameters[name][None] for name in self.names})
        for hook in hooks:
            hook.remove()
        return modules[0] if len(modules) == 1 else None

    @staticmethod
    def _output_bias_name(network: nn.Module, names: tuple[str, ...]) -> str | None:
        bias = network.get_output_embeddings().bias
        by_name = dict(network.named_parameters())
        return next((name for name in names if by_name[name] is bias), None)

    def _owners(self) -> dict[str, dict[str, str]]:
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
                tuned = PerTextLinear(module, self.rows, parts["bias"])
            elif type(module) is nn.LayerNorm:
                tuned = PerTextLayerNorm(module, self.rows, parts)
            else:
                tuned = PerTextModule(module, self.rows, parts)
            _replace(network, path, tuned)

    @torch.no_grad()
    def run_frozen_part(
        self, ids: Tensor, attention: Tensor, positions: tuple[Tensor, ...] = ()
    ) -> Tensor | None:
        """[row, token, width] output below the cut; […, width] at ``positions`` if head-only."""
        if self.cut is None:
            return None
        if self.cut == HEAD_ONLY:
            states = encode_last(self._model, ids, attention)
            states = states[positions] if positions else states
            return states if self._entry is None else F.linear(states, self._entry.weight)
        if self._watched is None:
            self._watched = self._watch_block_at_the_cut()
        self._watched(input_ids=ids, attention_mask=attention)
        return self._precomputed.block_input

    def _watch_block_at_the_cut(self) -> nn.Module:
        """A copy of the base model that records the input of the block at the cut."""
        # named within the base model, which the whole network's path begins with
        whole = self._model.network
        path = self._blocks_path.removeprefix(f"{whole.base_model_prefix}.")
        network = sharing_copy(whole.base_model, [f"{path}.{self.cut}"])
        block = network.get_submodule(path)[self.cut]
        precomputed = self._precomputed

        def note_input(_module: nn.Module, args: tuple, kwargs: dict) -> None:
            precomputed.block_input = args[0] if args else kwargs["hidden_states"]

        def note_output(_module: nn.Module, _args: tuple, output: object) -> None:
            precomputed.tuple_size = len(output) if isinstance(output, tuple) else None

        block.register_forward_pre_hook(note_input, with_kwargs=True)
        block.register_forward_hook(note_output)
        return network

    def at_positions(self, frozen_output: Tensor, values: dict[str, Tensor]) -> Tensor:
        """Output-layer inputs, head only; ``values`` are [text, dim] or [text, position, dim]."""
        self.rows.values = values
        self.rows.text_of = torch.arange(len(frozen_output), device=frozen_output.device)
        self._precomputed.output = frozen_output
        ids = torch.zeros(frozen_output.shape[:2], dtype=torch.long, device=frozen_output.device)
        return self._network(input_ids=ids).logits

    def at_tokens(
        self,
        ids: Tensor,
        attention: Tensor,
        frozen_output: Tensor | None,
        values: dict[str, Tensor],
        text_of: Tensor,
    ) -> Tensor:
        """[row, token, width] output-layer inputs; ``values`` are [row, dim]."""
        self.rows.values, self.rows.text_of = values, text_of
        self._precomputed.output = frozen_output
        return self._network(input_ids=ids, attention_mask=attention).logits


@dataclass(eq=False)
class TunedRows:
    """The tuned vectors that the modules of one `PerTextNetwork` read during a pass."""

    # parameter name to [row, dim] or [row, position, dim]
    values: dict[str, Tensor] = field(default_factory=dict)
    # [row] text of each row; consecutive rows of a text share their vectors
    text_of: Tensor | None = None

    def spread(self, name: str, ndim: int) -> Tensor:
        """A tuned vector, shaped [row, …, dim] to broadcast over activations of ``ndim`` axes."""
        value = self.values[name]
        if value.ndim == ndim:
            return value
        return value.view(len(value), *[1] * (ndim - 2), value.shape[-1])


class PerTextLinear(nn.Module):
    """A linear layer with one bias per row."""

    def __init__(self, linear: nn.Linear, rows: TunedRows, bias: str) -> None:
        super().__init__()
        self.weight, self.rows, self.name = linear.weight, rows, bias
        self.is_multiplied = False  # whether its input is already multiplied by its weight

    def forward(self, x: Tensor) -> Tensor:
        product = x if self.is_multiplied else F.linear(x, self.weight)
        return product + self.rows.spread(self.name, x.ndim)


class PerTextLayerNorm(nn.Module):
    """A layer norm with weight, bias or both per row."""

    def __init__(self, norm: nn.LayerNorm, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.norm, self.rows, self.names = norm, rows, names

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, self.norm.normalized_shape, None, None, self.norm.eps)
        weight, bias = (
            self.rows.spread(self.names[part], x.ndim) if part in self.names else frozen
            for part, frozen in (("weight", self.norm.weight), ("bias", self.norm.bias))
        )
        if weight is not None:
            x = x * weight
        return x if bias is None else x + bias


class PerTextModule(nn.Module):
    """Any other module with tuned vectors, run once per distinct vector."""

    def __init__(self, module: nn.Module, rows: TunedRows, names: dict[str, str]) -> None:
        super().__init__()
        self.module, self.rows, self.names = module, rows, names

    def forward(self, x: Tensor) -> Tensor:
        values = {part: self.rows.values[name] for part, name in self.names.items()}
        if any(value.ndim == x.ndim for value in values.values()):  # one for each position
            flat = {part: value.flatten(0, -2) for part, value in values.items()}
            pieces = [
                torch.func.functional_call(
                    self.module, {p: v[i] for p, v in flat.items()}, (token,)
                )
                for i, token in enumerate(x.flatten(0, -2).split(1))
            ]
            return torch.cat(pieces).unflatten(0, x.shape[:-1])
        _, counts = torch.unique_consecutive(self.rows.text_of, return_counts=True)
        pieces, row = [], 0
        for piece in x.split(counts.tolist()):
            text_values = {part: value[row] for part, value in values.items()}
            pieces.append(torch.func.functional_call(self.module, text_values, (piece,)))
            row += len(piece)
        return torch.cat(pieces)


class PrecomputedOutput(nn.Module):
    """Stands in for modules whose output is already known."""

    def __init__(self, attention_type: str | None = None) -> None:
        super().__init__()
        self.output: Tensor | None = None
        self.block_input: Tensor | None = None  # last input of the module replaced
        # length, if the module returns a tuple that starts with the output
        self.tuple_size: int | None = None
        if attention_type is not None:
            self.attention_type = attention_type  # ModernBERT asks each block for it

    def forward(self, *_args: object, **_kwargs: object) -> object:
        if self.tuple_size is None:
            return self.output
        return (self.output, *[None] * (self.tuple_size - 1))


class PrecomputedEncoder(PrecomputedOutput):
    def forward(self, *_args: object, **_kwargs: object) -> BaseModelOutput:
        # imported when the model is there: no two threads import transformers at once
        from transformers.modeling_outputs import BaseModelOutput

        class Output(BaseModelOutput):
            def __getattr__(self, name: str) -> None:
                """Whatever else a family's head asks its encoder for."""

        return Output(last_hidden_state=self.output)
