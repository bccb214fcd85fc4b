"""Predictions at masked positions and blanks, before and after micro-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from neuralviz.errors import SettingsError, ShouldStop, TextError, check_stop, never
from neuralviz.micro_tuning.blanks import BLANK, MAX_SCALE, split_at_blanks
from neuralviz.micro_tuning.cross_entropy import rows_at_once
from neuralviz.micro_tuning.events import Candidate, FilledBlank, MaskedPredictions, TextDelta
from neuralviz.micro_tuning.inputs import MaskedInput, Piece, group_inputs, mask_texts, pack_inputs
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork
from neuralviz.micro_tuning.probe import per_text_network
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models import LanguageModel, TextModel
from neuralviz.models.tokens import TokenizedText
from neuralviz.words import many

MAX_PIECES = 50  # of words, among the likeliest tokens of a blank, that are passed over


@torch.no_grad()
def predict_masked(
    model: LanguageModel,
    text: TokenizedText,
    settings: TuningSettings,
    all_deltas: Sequence[Sequence[np.ndarray] | None],
    top: int = 5,
    at_most: int | None = None,
    should_stop: ShouldStop = never,
) -> list[MaskedPredictions]:
    """Predict up to ``at_most`` masked positions of a text, once per entry of ``all_deltas``.

    An entry holds one [dim] delta per layer; None is the pretrained model. ``top`` tokens are kept
    per position. Raises `SettingsError` if deltas or ``top`` do not fit, and `Stopped`.
    """
    _check_top(model, top)
    network = per_text_network(model, settings.layers)
    values = [_tuned_values(model, settings.layers, deltas) for deltas in all_deltas]
    parts: list[list[tuple[Tensor, ...]]] = [[] for _ in all_deltas]
    inputs = mask_texts(model, [text], settings)
    if at_most is not None:
        n_before = np.cumsum([0, *(len(entry.masked) for entry in inputs)])[:-1]
        inputs = inputs[: np.searchsorted(n_before, at_most)]
    for group in group_inputs(model, inputs):
        piece = pack_inputs(model, group)
        frozen_output = _run_frozen_part(network, piece)
        for tuned, columns in zip(values, parts, strict=True):
            check_stop(should_stop)
            predicted = _predict(network, piece, frozen_output, tuned, top)
            columns.append((piece.input_of_row[piece.row], piece.token_of, *predicted))
    return [_join_in_order(model, part, at_most) for part in parts]


@torch.no_grad()
def predict_tokens(
    model: LanguageModel, text: TokenizedText, chunk: slice, tokens: Sequence[int], top: int = 3
) -> MaskedPredictions:
    """Predict ``tokens`` of a text's ``chunk`` (indices in the text), all masked at once."""
    _check_top(model, top)
    places, layers = np.array(sorted(tokens)), model.check_layers(None)
    ids = text.ids.copy()
    ids[places] = model.mask_id
    n_before = len(model.prefix_ids) - chunk.start
    entry = MaskedInput(
        ids=np.concatenate([model.prefix_ids, ids[chunk], model.suffix_ids]).astype(np.int64),
        masked=places + n_before,
        labels=text.ids[places],
        tokens=places,
        text=0,
        number=0,
        weight=1 / len(places),
    )
    network, piece = per_text_network(model, layers), pack_inputs(model, [entry])
    values, frozen_output = _tuned_values(model, layers, None), _run_frozen_part(network, piece)
    predicted = _predict(network, piece, frozen_output, values, top)
    columns = piece.input_of_row[piece.row], piece.token_of, *predicted
    return _join_in_order(model, [columns], None)


def _check_top(model: LanguageModel, top: int) -> None:
    if not 1 <= top <= model.vocab_size:
        raise SettingsError(
            f"The number of predictions must be from 1 to {model.vocab_size:,}, not {top}."
        )


def _join_in_order(
    model: LanguageModel, parts: Sequence[tuple[Tensor, ...]], at_most: int | None
) -> MaskedPredictions:
    columns = [torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")[:at_most]
    inputs, tokens, probabilities, losses, ids, shares = (column[order] for column in columns)
    words = tuple(tuple(model.tokenizer.convert_ids_to_tokens(row)) for row in ids.tolist())
    return MaskedPredictions(inputs, tokens, probabilities, losses, words, shares)


def _tuned_values(
    model: LanguageModel, layers: Sequence[str], deltas: Sequence[np.ndarray] | None
) -> dict[str, Tensor]:
    parameters = dict(model.network.named_parameters())
    values = {name: parameters[name].detach()[None] for name in layers}
    if deltas is None:
        return values
    shapes = [np.shape(delta) for delta in deltas]
    if shapes != [tuple(value.shape[1:]) for value in values.values()]:
        raise SettingsError("Pass one delta per tuned layer, each of the layer's size.")
    return {
        name: value + torch.as_tensor(delta, dtype=value.dtype, device=value.device)
        for (name, value), delta in zip(values.items(), deltas, strict=True)
    }


def _predict(
    network: PerTextNetwork,
    piece: Piece,
    frozen_output: Tensor | None,
    values: dict[str, Tensor],
    top: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Probability and loss of the label, and ids and probabilities of the likeliest tokens."""
    vectors = _output_layer_inputs(network, piece, frozen_output, values)
    rows = rows_at_once(len(network.output_weight))  # logits never exist all at once
    parts = []
    for block, labels in zip(vectors.split(rows), piece.labels.split(rows), strict=True):
        log_probability = _compute_logits(network, block, values).log_softmax(dim=1)
        loss = -log_probability.gather(1, labels[:, None]).squeeze(1)
        likeliest, ids = log_probability.topk(top, dim=1)
        parts.append((loss.neg().exp(), loss, ids, likeliest.exp()))
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def _compute_logits(network: PerTextNetwork, vectors: Tensor, values: dict[str, Tensor]) -> Tensor:
    """[position, vocab] logits from [position, width] output-layer inputs."""
    logits = vectors @ network.output_weight.T
    bias = values.get(network.output_bias_name or "", network.output_bias)
    if bias is not None:
        logits += bias
    return logits


def _run_frozen_part(network: PerTextNetwork, piece: Piece) -> Tensor | None:
    positions = (piece.row, piece.column) if network.cut == HEAD_ONLY else ()
    return network.run_frozen_part(piece.ids, piece.attention, positions=positions)


def _output_layer_inputs(
    network: PerTextNetwork, piece: Piece, frozen_output: Tensor | None, values: dict[str, Tensor]
) -> Tensor:
    rows = {name: value for name, value in values.items() if name != network.output_bias_name}
    if network.cut == HEAD_ONLY:
        assert frozen_output is not None
        return network.at_positions(frozen_output[None], rows)[0]
    row_values = {name: value.expand(len(piece.ids), -1) for name, value in rows.items()}
    out = network.at_tokens(
        piece.ids, piece.attention, frozen_output, row_values, piece.text_of_row
    )
    return out[piece.row, piece.column]


@torch.no_grad()
def fill_blanks(
    model: LanguageModel,
    sentence: str,
    deltas: Sequence[tuple[float, TextDelta]],
    top: int = 5,
    hidden: str = "",  # a word that is listed, too, if it is one token
) -> tuple[FilledBlank, ...]:
    """Predict blanks (``___`` or ``[MASK]``) with and without (scale, delta), scale -2 … 2.

    The scaled deltas are summed; each blank gets ``top`` tokens, pieces of words only if it follows
    a letter. Raises `TextError` for no or too many blanks or a long sentence, `SettingsError` for
    unusable deltas, scales or ``top``, `ModelError` for layers that cannot be tuned.
    """
    _check_top(model, top)
    masked = _mask_blanks(model, sentence)
    summed = _sum_deltas(model, deltas)
    network = per_text_network(model, tuple(summed))
    piece = pack_inputs(model, [masked])
    frozen_output = _run_frozen_part(network, piece)
    probabilities = []
    for layer_deltas in (None, list(summed.values())):
        values = _tuned_values(model, tuple(summed), layer_deltas)
        vectors = _output_layer_inputs(network, piece, frozen_output, values)
        logits = _compute_logits(network, vectors, values)
        if not bool(logits.isfinite().all()):
            raise SettingsError(
                "With this delta the model's predictions are not finite numbers. Scale the delta "
                "down, or micro-tune with a lower learning rate."
            )
        probabilities.append(logits.double().softmax(dim=-1))
    in_words = [part[-1:].isalnum() for part in split_at_blanks(sentence)[:-1]]
    blanks = zip(*probabilities, in_words, strict=True)
    ids = model.encoder.encode(f" {hidden}", add_special_tokens=False).ids
    more_ids = ids if hidden and len(ids) == 1 else []
    return tuple(_fill_blank(model, before, after, top, inner, more_ids)
                 for before, after, inner in blanks)  # fmt: skip


@torch.no_grad()
def compare_at_blank(
    model: LanguageModel, layers: tuple[str, ...], all_deltas: Iterable[Sequence[np.ndarray]]
) -> Iterator[np.ndarray]:
    """[vocab] rise of each token's log probability at a mask without context, per deltas."""
    network, piece = (
        per_text_network(model, layers),
        pack_inputs(model, [_mask_blanks(model, BLANK)]),
    )
    frozen_output = _run_frozen_part(network, piece)

    def log_probability(deltas: Sequence[np.ndarray] | None) -> Tensor:
        values = _tuned_values(model, layers, deltas)
        vectors = _output_layer_inputs(network, piece, frozen_output, values)
        return _compute_logits(network, vectors, values)[0].log_softmax(dim=0)

    before = log_probability(None)
    yield from ((log_probability(deltas) - before).cpu().numpy() for deltas in all_deltas)


def _mask_blanks(model: LanguageModel, sentence: str) -> MaskedInput:
    parts = split_at_blanks(sentence)
    # The blank before a masked token belongs to the token, in vocabularies that have it there.
    pieces = [*(part.rstrip() for part in parts[:-1]), parts[-1]]
    encodings = model.encoder.encode_batch(pieces, add_special_tokens=False)
    ids, blanks = list(model.prefix_ids), []
    for number, encoding in enumerate(encodings):
        if number:
            blanks.append(len(ids))
            ids.append(model.mask_id)
        ids += encoding.ids
    n_tokens = len(ids) - len(model.prefix_ids)
    if n_tokens > model.room:
        raise TextError(
            f"The sentence has {many(n_tokens, 'token')}; the model reads at most "
            f"{model.room:,} at once. Shorten it."
        )
    positions = np.array(blanks)
    return MaskedInput(
        ids=np.array([*ids, *model.suffix_ids]),
        masked=positions,
        labels=np.full_like(positions, model.mask_id),  # nobody knows them, and nothing asks
        tokens=positions,
        text=0,
        number=0,
        weight=1.0,
    )


def _sum_deltas(
    model: LanguageModel, deltas: Sequence[tuple[float, TextDelta]]
) -> dict[str, np.ndarray]:
    if not deltas:
        raise SettingsError("Choose at least one delta.")
    sizes = {layer.name: layer.size for layer in model.layers}
    change: dict[str, np.ndarray] = {}
    for scale, delta in deltas:
        if not -MAX_SCALE <= scale <= MAX_SCALE:
            raise SettingsError(f"A delta can be scaled by −2 to 2, not {scale:g}.")
        for name, values in zip(delta.layers, delta.values, strict=True):
            fits = delta.model_id == model.id and sizes.get(name) == len(values)
            if not fits or not np.isfinite(values).all():
                raise SettingsError(
                    f"This delta does not fit the model “{model.id}”, or is not known yet. Choose "
                    "a text that this model has been micro-tuned on."
                )
            change[name] = change.get(name, 0.0) + scale * values.astype(np.float64)
    return change


def _fill_blank(
    model: LanguageModel,
    before: Tensor,
    after: Tensor,
    top: int,
    in_word: bool,
    more_ids: list[int],
) -> FilledBlank:
    prefix = getattr(model.encoder.model, "continuing_subword_prefix", None) or ""

    def continues(token: int) -> bool:
        return bool(prefix) and str(model.encoder.id_to_token(token)).startswith(prefix)

    def candidates(scores: Tensor) -> tuple[Candidate, ...]:
        tokens = scores.topk(min(len(scores), top + MAX_PIECES)).indices.tolist()
        words = [token for token in tokens if in_word or not continues(token)]
        return tuple(
            Candidate(
                spell_token(model, token).removeprefix(prefix),
                float(before[token]),
                float(after[token]),
            )
            for token in dict.fromkeys([*(words or tokens)[:top], *more_ids])
        )

    return FilledBlank(candidates(before), candidates(after), candidates(after - before))


def spell_token(model: TextModel, token: int) -> str:
    spelling = model.encoder.decode([token], skip_special_tokens=False).strip()
    return spelling or model.tokenizer.convert_ids_to_tokens(token)
