"""Train the bundled masked language model from all-MiniLM-L6-v2's weights.

The embedding table (words, positions, its layer norm) stays all-MiniLM-L6-v2's own and frozen.
The output layer is made of that table, and frozen, too (`output_layer`). Encoder and prediction
head are trained on the masked-token task. A sequence is masked at a ratio from 15 to 75 %, because
masking blueprints mask that much, and always by ``[MASK]``, because blueprints do. Light masking is
drawn more often.

The learning rate warms up, stays constant, and falls linearly to zero over the last steps, so a
run can be made longer after the fact: ``--steps`` is how long it stays constant, and the last
checkpoint of that phase can be gone on from at any time, with more steps or another decay.

    python bundled_model/train.py --passages permissive/ --run runs/bundled --steps 3000
    python bundled_model/train.py --passages permissive/ --run runs/bundled \\
        --steps 3000 --decay-steps 1000

A run that is interrupted goes on from its last checkpoint as if nothing had happened (on a GPU, but
for rounding); it has to be asked for with the same options. A finished one is gone on from with
``--start encoder_and_head.safetensors`` and another ``--run``.

With ``--keep-meaning``, the loss also counts how far the mean of a masked text's last states is
from the vector that all-MiniLM-L6-v2 gives to the whole text, so that the encoder keeps what it
knew of sentences (learning without forgetting, Li and Hoiem 2016). With ``--lessons``, it counts
how far the way in which one step on the text would move the last bias is from that vector, less the
mean of the batch's: what the model learns from a text then says more of what the text is about, and
less of what all texts have in common.

Matrix products are in bfloat16, and in float32 on a processor that has no instructions for it.
A GPU is used where there is one.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from transformers import BertForMaskedLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).parents[1]))

from bundled_model.muon import Muon
from bundled_model.output_layer import frequencies, make_output_layer
from bundled_model.passages import read_passages, split
from neuralviz.errors import ModelError
from neuralviz.micro_tuning.products import has_native_bf16
from neuralviz.models import bundled
from neuralviz.models.bundled import FACTORS, MAP
from neuralviz.models.bundled.network import (
    build,
    load_minilm,
    load_minilm_tokenizer,
    output_weight,
    trained_tensors,
)

MASK_RATIO = (0.15, 0.75)
OF_OUTPUT = (FACTORS, MAP)
# of a run that goes on
SAME_OPTIONS = (
    "seed", "length", "tokens", "warmup", "lr", "lr_head", "keep_meaning", "lessons",
    "dense_scale", "weight_decay",
)  # fmt: skip
CPU_ROWS, GPU_ROWS = 192, 4096  # of logits that exist at once
WORKERS = 4  # processes that make batches for a GPU
LOG_COLUMNS = (
    "step",
    "epoch",
    "lr_factor",
    "train_loss",
    "held_out_loss",
    "held_out_accuracy_15",
    "wikinews_accuracy_15",
    "distance_of_meaning",
    "distance_of_lessons",
    "seconds_per_step",
)


def windows(
    passages: list[str], tokenizer: PreTrainedTokenizerFast, length: int
) -> list[np.ndarray]:
    """Token ids of the passages, special tokens included, cut to windows of at most ``length``."""
    inner = length - 2
    out = []
    for start in range(0, len(passages), 4096):
        encoded = tokenizer(
            passages[start : start + 4096],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        for ids in encoded:
            for at in range(0, len(ids), inner):
                piece = ids[at : at + inner]
                if len(piece) >= 6 or at == 0:
                    whole = [tokenizer.cls_token_id, *piece, tokenizer.sep_token_id]
                    out.append(np.array(whole, dtype=np.int32))
    return out


def epoch_batches(
    sequences: list[np.ndarray], tokens_per_batch: int, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """One pass over the sequences in random batches of like length and bounded size."""
    lengths = np.array([len(s) for s in sequences])
    order = np.lexsort((rng.random(len(sequences)), lengths + rng.integers(0, 8, len(sequences))))
    batches, batch, longest = [], [], 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and longest * (len(batch) + 1) > tokens_per_batch:
            batches.append(batch)
            batch, longest = [], int(lengths[i])
        batch.append(i)
    batches.append(batch)
    for at in rng.permutation(len(batches)):
        yield [sequences[i] for i in batches[at]]


def batches_from(
    step: int, sequences: list[np.ndarray], tokens_per_batch: int, seed: int
) -> Iterator[list[np.ndarray]]:
    """Batches without end, pass after pass, from a step on: the same for whoever resumes there."""
    at = 0
    for epoch in count():
        rng = np.random.default_rng([seed, epoch])
        for batch in epoch_batches(sequences, tokens_per_batch, rng):
            if at >= step:
                yield batch
            at += 1


def mask_batch(
    batch: list[np.ndarray],
    tokenizer: PreTrainedTokenizerFast,
    rng: np.random.Generator,
    ratio: tuple[float, float] = MASK_RATIO,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masked input ids, attention mask and labels (-100 where not masked): each [text, token].

    Half of the sequences get a ratio in the lowest quarter of the range.
    """
    width = max(len(s) for s in batch)
    ids = np.full((len(batch), width), tokenizer.pad_token_id, dtype=np.int64)
    labels = np.full_like(ids, -100)
    attention = np.zeros_like(ids)
    for row, sequence in enumerate(batch):
        n = len(sequence)
        ids[row, :n] = sequence
        attention[row, :n] = 1
        inner = n - 2
        share = ratio[0] + (ratio[1] - ratio[0]) * rng.random() ** 2
        masked = max(1, round(inner * share))
        at = 1 + rng.choice(inner, size=min(masked, inner), replace=False)
        labels[row, at] = ids[row, at]
        ids[row, at] = tokenizer.mask_token_id
    return torch.from_numpy(ids), torch.from_numpy(attention), torch.from_numpy(labels)


class FrozenOutputCrossEntropy(torch.autograd.Function):
    """Cross entropy behind a frozen output matrix, a block of rows at a time.

    Forward makes the gradients at once, so logits [position, vocab] never exist as a whole.
    Where texts have goals, the gradients are those of the loss and ``share`` times the mean of
    1 - cosine of goal and lesson: the way in which a step down the text's loss moves the bias
    before the output layer.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, texts=None, goals=None, share=0.0):  # noqa: ANN001, ANN205
        rows_per_block = GPU_ROWS if hidden.is_cuda else CPU_ROWS
        scale = 1.0 / len(labels)
        grad_hidden = torch.empty_like(hidden)
        grad_bias = torch.zeros_like(bias)
        loss = hidden.new_zeros((), dtype=torch.float32)
        correct = torch.zeros_like(loss)
        for start in range(0, len(labels), rows_per_block):
            block = slice(start, start + rows_per_block)
            target = labels[block, None]
            logits = torch.mm(hidden[block], weight.T).float().add_(bias)  # [row, vocab]
            correct += (logits.argmax(1, keepdim=True) == target).sum()
            peak = logits.amax(1, keepdim=True)
            chosen = logits.gather(1, target)
            logits.sub_(peak).exp_()
            total = logits.sum(1, keepdim=True)
            loss += (total.log() + peak - chosen).sum()
            logits.mul_(scale / total)
            logits.scatter_add_(1, target, torch.full_like(chosen, -scale))
            grad_bias += logits.sum(0)
            grad_hidden[block] = torch.mm(logits.to(weight.dtype), weight)
        distance = torch.zeros_like(loss)
        if goals is not None:
            lessons = torch.zeros_like(goals).index_add_(0, texts, -grad_hidden.float())
            with torch.enable_grad():
                lessons.requires_grad_()
                distance = 1 - torch.cosine_similarity(lessons, goals).mean()
            (towards,) = torch.autograd.grad(distance, lessons)
            along = share * torch.mm(towards.to(weight.dtype), weight.T).float()  # [text, vocab]
            for start in range(0, len(labels), rows_per_block):
                block = slice(start, start + rows_per_block)
                p = torch.mm(hidden[block], weight.T).float().add_(bias).softmax(1)
                of_text = along[texts[block]]
                of_text -= (p * of_text).sum(1, keepdim=True)
                p *= of_text
                p *= -scale
                grad_bias += p.sum(0)
                grad_hidden[block] += torch.mm(p.to(weight.dtype), weight)
        ctx.save_for_backward(grad_hidden, grad_bias)
        accuracy, distance = correct * scale, distance.detach()
        ctx.mark_non_differentiable(accuracy, distance)
        return loss * scale, accuracy, distance

    @staticmethod
    def backward(ctx, grad_loss, _accuracy, _distance):  # noqa: ANN001, ANN205
        grad_hidden, grad_bias = ctx.saved_tensors
        return (
            grad_hidden * grad_loss.to(grad_hidden.dtype),
            None,
            grad_bias * grad_loss,
            *[None] * 4,
        )


def predict(model, weight, ids, attention, labels, autocast=True, goals=None, share=0.0):  # noqa: ANN001, ANN201
    """Mean cross entropy and accuracy over the masked positions of a batch, and its states.

    Args:
        model: a ``BertForMaskedLM``.
        weight: [vocab, d_model] of the output layer.
        ids, attention, labels: [text, token] as of `mask_batch`.
        autocast: compute in bfloat16.
        goals: [text, d_model] where what is learnt from each text should lead, if anywhere.
        share: of the distance from there, in the gradients.

    Returns:
        Loss in nats, accuracy 0 … 1, the last block's outputs [text, token, d_model], and the mean
        distance from the goals, 0 … 2.
    """
    with torch.autocast(weight.device.type, dtype=torch.bfloat16, enabled=autocast):
        states = model.bert(input_ids=ids, attention_mask=attention).last_hidden_state
        texts, tokens = (labels >= 0).nonzero(as_tuple=True)
        hidden = model.cls.predictions.transform(states[texts, tokens])
    loss, accuracy, distance = FrozenOutputCrossEntropy.apply(
        hidden.to(weight.dtype),
        weight,
        model.cls.predictions.bias,
        labels[texts, tokens],
        texts,
        goals,
        share,
    )
    return loss, accuracy, states, distance


def sentence_vectors(states: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """[text, d_model] mean of the states over all tokens, of length 1, as all-MiniLM-L6-v2's."""
    mask = attention[:, :, None].to(torch.float32)
    return torch.nn.functional.normalize((states.float() * mask).sum(1), dim=1)


@torch.no_grad()
def teachers_vectors(teacher, ids, attention, labels, autocast=True):  # noqa: ANN001, ANN201
    """[text, d_model] what the teacher gives to texts without masks, of length 1.

    Args:
        teacher: a ``BertModel`` with all-MiniLM-L6-v2's weights.
        ids, attention, labels: [text, token] as of `mask_batch`.
        autocast: compute in bfloat16.
    """
    whole = torch.where(labels >= 0, labels, ids)
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=autocast):
        states = teacher(input_ids=whole, attention_mask=attention).last_hidden_state
    return sentence_vectors(states, attention)


@torch.no_grad()
def evaluate(model, weight, batches, autocast=True) -> tuple[float, float]:  # noqa: ANN001
    """Held-out loss and accuracy over prepared batches, weighted by masked positions."""
    sums = np.zeros(3)
    for ids, attention, labels in batches:
        n = int((labels >= 0).sum())
        batch = [tensor.to(weight.device) for tensor in (ids, attention, labels)]
        loss, accuracy, *_ = predict(model, weight, *batch, autocast)
        sums += np.array([float(loss) * n, float(accuracy) * n, n])
    return sums[0] / sums[2], sums[1] / sums[2]


class MaskedBatches(IterableDataset):
    """The masked batches from a step on, without end: those of `mask_batch`, each by its step.

    The processes of a `DataLoader` make them in turn.
    """

    def __init__(
        self,
        step: int,
        sequences: list[np.ndarray],
        tokens_per_batch: int,
        tokenizer: PreTrainedTokenizerFast,
        seed: int,
    ) -> None:
        self.step, self.sequences, self.tokens_per_batch = step, sequences, tokens_per_batch
        self.tokenizer, self.seed = tokenizer, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        turn, turns = (worker.id, worker.num_workers) if worker else (0, 1)
        batches = batches_from(self.step, self.sequences, self.tokens_per_batch, self.seed)
        for step, batch in enumerate(batches, self.step):
            if (step - self.step) % turns == turn:
                rng = np.random.default_rng([self.seed, 0, step])
                yield mask_batch(batch, self.tokenizer, rng)


def evaluation_batches(
    sequences: list[np.ndarray], tokenizer: PreTrainedTokenizerFast, ratio: float = MASK_RATIO[0]
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The sequences masked at one ratio, the same way every time."""
    rng = np.random.default_rng(1)
    return [
        mask_batch(batch, tokenizer, rng, ratio=(ratio, ratio))
        for batch in epoch_batches(sequences, 8192, rng)
    ]


def shuffled(texts: list[str]) -> list[str]:
    """The texts in an order of their own, the same every time."""
    return [texts[i] for i in np.random.default_rng(1).permutation(len(texts))]


def make_optimizers(
    model: BertForMaskedLM, lr: float, lr_head: float, weight_decay: float, own_muon: bool
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for all of one dimension; the fresh head learns faster."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]

    def groups(matrices: bool) -> list[dict]:
        return [
            {
                "params": [
                    p for n, p in trained
                    if (p.ndim == 2) == matrices and n.startswith("cls.") == head
                ],
                "lr": rate,
                "peak": rate,
            }
            for head, rate in ((False, lr), (True, lr_head))
        ]  # fmt: skip

    muon = (Muon if own_muon else torch.optim.Muon)(
        groups(True),
        lr=lr,
        weight_decay=weight_decay,
        momentum=0.95,
        adjust_lr_fn="match_rms_adamw",
    )
    adam = torch.optim.AdamW(groups(False), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    return [muon, adam]


def log_frequencies(sequences: list[np.ndarray], vocab_size: int) -> torch.Tensor:
    """[vocab] log of how often each token occurs, smoothed: where the output bias starts."""
    logs = np.log(frequencies(sequences, vocab_size))
    return torch.from_numpy((logs - logs.mean()).astype(np.float32))


@torch.no_grad()
def scale_dense(model: BertForMaskedLM, factor: float) -> None:
    """Multiply weights and bias of the head's dense layer.

    The layer norm behind it takes out nearly all of it (not all, as GELU is between them), so that
    predictions hardly change; but the rates of micro-tuning are absolute, and a step on the bias
    goes less far.
    """
    dense = model.cls.predictions.transform.dense
    dense.weight *= factor
    dense.bias *= factor


def learning_rate_factor(step: int, warmup: int, steps: int, decay_steps: int) -> float:
    """Factor on the learning rate at a step: warm-up, constant, linear to zero."""
    if step < warmup:
        return (step + 1) / warmup
    if step < steps or not decay_steps:
        return 1.0
    return max(0.0, 1.0 - (step - steps) / decay_steps)


def mean(values: Sequence[torch.Tensor]) -> np.ndarray:
    """The mean over the first axis, as numbers."""
    return torch.stack(list(values)).mean(dim=0).cpu().numpy()


def append_row(path: Path, row: Sequence[object]) -> None:
    """Append a row to a CSV file."""
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(row)


def write_beside_and_move(path: Path, write) -> None:  # noqa: ANN001
    """Write a file under another name and move it into place."""
    part = path.with_name(path.name + ".part")
    write(part)
    part.replace(path)


def last_checkpoint(run: Path, steps: int, decay_steps: int) -> dict | None:
    """What a run goes on from: of a decay only where it is the same one.

    Raises:
        ValueError: the rate was constant for more than ``steps`` steps.
    """
    if decay_steps and (run / "decay.pt").exists():
        found = torch.load(run / "decay.pt", weights_only=True)
        if (found["steps"], found["decay_steps"]) == (steps, decay_steps):
            return found
    if not (run / "constant.pt").exists():
        return None
    found = torch.load(run / "constant.pt", weights_only=True)
    if found["step"] > steps:
        raise ValueError(f"the run in {run} has taken {found['step']} steps: ask for that many")
    return found


def identity(weights: Path | None) -> str:
    """Which weights a run starts from; empty for all-MiniLM-L6-v2's."""
    return bundled.fingerprint(weights.read_bytes()) if weights else ""


def at_least(least: int) -> Callable[[str], int]:
    """A whole number that an option takes."""

    def read(said: str) -> int:
        number = int(said)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return number

    read.__name__ = "whole number"  # argparse says "invalid whole number value"
    return read


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--passages", type=Path, required=True, help="folder of the permissive passages"
    )
    parser.add_argument(
        "--run", type=Path, required=True, help="folder for checkpoints and the log"
    )
    parser.add_argument(
        "--start", type=Path, help="weights that a new run starts from, instead of MiniLM's"
    )
    parser.add_argument(
        "--steps", type=at_least(0), default=3000, help="last step of the constant phase"
    )
    parser.add_argument(
        "--decay-steps", type=at_least(0), default=0, help="steps of linear decay after it"
    )
    parser.add_argument("--warmup", type=at_least(0), default=100)
    parser.add_argument("--lr", type=float, default=5e-4, help="peak learning rate of the encoder")
    parser.add_argument(
        "--lr-head", type=float, default=2e-3, help="peak learning rate of the head"
    )
    parser.add_argument(
        "--keep-meaning",
        type=float,
        default=0.0,
        help="weight of the distance between a masked text's mean-pooled states and "
        "all-MiniLM-L6-v2's vector of the whole text",
    )
    parser.add_argument(
        "--lessons",
        type=float,
        default=0.0,
        help="weight of the distance between what a text's masked tokens teach the last bias and "
        "all-MiniLM-L6-v2's vector of the whole text",
    )
    parser.add_argument(
        "--dense-scale",
        type=float,
        default=1.0,
        help="what a new run multiplies the head's dense layer by: the larger it is, the less a "
        "step of micro-tuning on its bias moves",
    )
    parser.add_argument(
        "--last-dense-scale",
        type=float,
        default=1.0,
        help="what the same layer is multiplied by once more, when the weights are finished "
        "(with --decay-steps); a finished run can be asked for again with another factor",
    )
    parser.add_argument("--weight-decay", type=float, default=0.01, help="of the matrices")
    parser.add_argument("--length", type=at_least(8), default=128, help="tokens per window")
    parser.add_argument("--tokens", type=at_least(8), default=4096, help="tokens per batch")
    parser.add_argument("--threads", type=at_least(1), default=torch.get_num_threads())
    parser.add_argument("--every", type=at_least(1), default=250, help="steps between checkpoints")
    parser.add_argument("--seed", type=at_least(0), default=0)
    args = parser.parse_args(argv)
    if args.last_dense_scale != 1.0 and not args.decay_steps:
        parser.error("--last-dense-scale needs --decay-steps: weights are finished after these")
    options = {name: getattr(args, name) for name in SAME_OPTIONS}
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)  # a new run's head begins at random
    try:
        start = load_file(args.start) if args.start else {}
        model = build(start or None)  # in eval mode: without dropout
        options["start"] = identity(args.start)
        found = last_checkpoint(args.run, args.steps, args.decay_steps)
        passages = split(read_passages(args.passages))
    except (OSError, SafetensorError, ModelError, ValueError) as error:
        parser.error(str(error))
    for name, value in found["options"].items() if found else ():
        if options[name] != value:
            which = "other weights" if name == "start" else value
            parser.error(f"the run in {args.run} was begun with --{name.replace('_', '-')} {which}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bfloat16 = has_native_bf16(device)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.set_float32_matmul_precision("high")
        torch.backends.cuda.enable_cudnn_sdp(False)  # it takes long to plan for every new shape
    args.run.mkdir(parents=True, exist_ok=True)

    tokenizer = load_minilm_tokenizer()
    sequences = windows(passages.train, tokenizer, args.length)
    checks = [
        evaluation_batches(windows(texts, tokenizer, args.length)[:400], tokenizer)
        for texts in (shuffled(passages.all_held_out()), shuffled(passages.unseen["Wikinews"]))
    ]
    total_tokens = sum(map(len, sequences))
    print(f"{len(sequences):,} windows, {total_tokens:,} tokens")

    model = model.to(device)
    if bfloat16 and not on_gpu:
        model.set_attn_implementation("eager")  # sdpa is slower on CPUs in bf16 at these lengths
    teacher = None
    if args.keep_meaning or args.lessons:
        teacher = load_minilm()[0].to(device)
        if bfloat16 and not on_gpu:
            teacher.set_attn_implementation("eager")
    names = set(trained_tensors(model))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)
    own_muon = on_gpu or not bfloat16  # on a GPU, torch's own is slow: one matrix at a time
    optimizers = make_optimizers(model, args.lr, args.lr_head, args.weight_decay, own_muon)
    output = found["output"] if found else {n: t for n, t in start.items() if n in OF_OUTPUT}
    if not output:
        encoder = load_minilm()[0].to(device)
        output = make_output_layer(passages.train, sequences, encoder, tokenizer)
    weight = output_weight(
        model.bert.embeddings.word_embeddings.weight.detach(),
        *(output[name].to(device, torch.float32) for name in OF_OUTPUT),
    )
    weight = weight.to(torch.bfloat16 if bfloat16 else torch.float32)
    scale_dense(model, args.dense_scale)
    if not args.start:
        with torch.no_grad():
            model.cls.predictions.bias.copy_(log_frequencies(sequences, len(tokenizer)))

    step = 0
    if found:
        step = found["step"]
        model.load_state_dict(found["tensors"], strict=False)
        for optimizer, saved in zip(optimizers, found["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        print(f"Resuming from step {step}")
    log_path = args.run / "log.csv"
    if not log_path.exists():
        append_row(log_path, LOG_COLUMNS)

    last = args.steps + args.decay_steps
    batches = iter(
        DataLoader(
            MaskedBatches(step, sequences, args.tokens, tokenizer, args.seed),
            batch_size=None,
            num_workers=WORKERS if on_gpu else 0,
            pin_memory=on_gpu,
            prefetch_factor=8 if on_gpu else None,
        )
    )
    seconds = time.perf_counter if on_gpu else lambda: time.process_time() / args.threads
    losses, distances, clock = [], [], seconds()
    while step < last:
        factor = learning_rate_factor(step, args.warmup, args.steps, args.decay_steps)
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = group["peak"] * factor
        masked = [tensor.to(device, non_blocking=True) for tensor in next(batches)]
        vectors = goals = None
        if teacher is not None:
            vectors = teachers_vectors(teacher, *masked, autocast=bfloat16)
            if args.lessons and len(vectors) > 1:
                goals = vectors - vectors.mean(dim=0)
        loss, _, states, lesson = predict(
            model, weight, *masked, autocast=bfloat16, goals=goals, share=args.lessons
        )
        total = loss
        if teacher is not None:
            distance = 1 - (vectors * sentence_vectors(states, masked[1])).sum(1).mean()
            distances.append(torch.stack([distance.detach(), lesson]))
            total = loss + args.keep_meaning * distance
        total.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        step += 1
        if step % 25 == 0:
            meaning = f" distances {mean(distances[-25:]).round(3)}" if distances else ""
            print(f"step {step} loss {mean(losses[-25:]):.3f}{meaning}", flush=True)
        if step % args.every and step != last:
            continue
        (held_out_loss, accuracy), (_, news) = (
            evaluate(model, weight, check, autocast=bfloat16) for check in checks
        )
        took, clock = seconds() - clock, seconds()
        row = [
            step,
            f"{step * args.tokens / total_tokens:.2f}",
            f"{factor:.3f}",
            f"{mean(losses):.4f}",
            f"{held_out_loss:.4f}",
            f"{accuracy:.4f}",
            f"{news:.4f}",
            *(f"{one:.4f}" for one in (mean(distances) if distances else [np.nan] * 2)),
            f"{took / len(losses):.3g}",
        ]
        print("  ".join(map(str, row)), flush=True)
        losses, distances = [], []
        state = {
            "step": step,
            "steps": args.steps,
            "decay_steps": args.decay_steps,
            "options": options,
            "output": output,
            "tensors": {n: t.contiguous() for n, t in trained_tensors(model).items()},
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        }
        name = "constant.pt" if step <= args.steps else "decay.pt"
        write_beside_and_move(args.run / name, lambda p, s=state: torch.save(s, p))
        append_row(log_path, row)
    if args.decay_steps:
        scale_dense(model, args.last_dense_scale)
        half = {n: t.detach().cpu().half().contiguous() for n, t in trained_tensors(model).items()}
        half |= output
        write_beside_and_move(
            args.run / "encoder_and_head.safetensors", lambda p: save_file(half, p)
        )


if __name__ == "__main__":
    main()
