"""The bundled model's output layer: a row for each token, made from the embedding table.

It is made before the training, and stays as it is. What a text teaches the head is a sum of rows:
those of the tokens that came, less those of the tokens that were expected. So the rows are made
such that their sum over a text points to what the text means, which all-MiniLM-L6-v2 says: a linear
map of the table, and a factor for each token, both fitted to sentences of the training texts.

The fit alone would give much length to tokens that are frequent in these sentences, and would all
but lose some directions of the table, so that different tokens had nearly the same row. Hence each
factor is the geometric mean of the one that was fitted and of how rare the token is, and the map's
singular values are brought closer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch
from transformers import BertModel, PreTrainedTokenizerFast

from neuralviz.models.bundled import FACTORS, MAP

SENTENCES = 60_000
OF_A_PASSAGE = 2  # sentences, at most
WORDS = (4, 30)  # of a sentence
EPOCHS = 3
BATCH = 1024  # sentences
RATE_MAP, RATE_FACTORS = 2e-3, 2e-2
RARITY_POWER = 1.5
LEAST_SINGULAR = 0.1  # of the largest
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) +")


def make_output_layer(
    passages: Sequence[str],
    sequences: Sequence[np.ndarray],
    sentence_encoder: BertModel,
    tokenizer: PreTrainedTokenizerFast,
) -> dict[str, torch.Tensor]:
    """Factors of the tokens and the map from the embedding table, as `network.output_weight` takes.

    Args:
        passages: that sentences are drawn from.
        sequences: token ids of the training texts, whose frequencies count.
        sentence_encoder, tokenizer: all-MiniLM-L6-v2's.

    Returns:
        ``FACTORS``, [vocab], the factors, and ``MAP``, [1 + d_model, d_model], whose first row
        is added to the product with the others; in half precision, in which they are shipped.
    """
    table = sentence_encoder.embeddings.word_embeddings.weight.detach().float()
    rare = rarity(sequences, len(table)).to(table.device)
    bags, goals = bags_and_goals(draw_sentences(passages), sentence_encoder, tokenizer)
    fitted, mapping = fit(table - table.mean(dim=0), bags, goals, rare)
    factors = (fitted * rare).sqrt()
    factors /= factors.median()
    left, singular, right = torch.linalg.svd(mapping.double())
    milder = left * (singular / singular[0]).clamp_min(LEAST_SINGULAR).sqrt() @ right
    shift = table.double().mean(dim=0, keepdim=True)
    rows = (table - shift) @ milder
    milder *= table.norm(dim=1).mean() / rows.norm(dim=1).mean()  # rows as long as the table's
    made = {FACTORS: factors, MAP: torch.cat([-shift @ milder, milder])}
    return {name: tensor.half().cpu().contiguous() for name, tensor in made.items()}


def frequencies(sequences: Sequence[np.ndarray], vocab_size: int) -> np.ndarray:
    """[vocab] how often each token occurs, as a share, smoothed: none is 0."""
    counts = np.bincount(np.concatenate(sequences), minlength=vocab_size) + 0.5
    return counts / counts.sum()


def rarity(sequences: Sequence[np.ndarray], vocab_size: int) -> torch.Tensor:
    """[vocab] how rare each token is, 0 … 1.

    An inverse document frequency with tokens for documents: the log of how rarely a token occurs,
    smoothed, by that of the median token, 1 at most, to a power that was chosen on STS-B dev.
    """
    logs = -np.log(frequencies(sequences, vocab_size))
    return torch.from_numpy(np.minimum(logs / np.median(logs), 1.0) ** RARITY_POWER).float()


def draw_sentences(passages: Sequence[str], most: int = SENTENCES) -> list[str]:
    """Sentences of passages that are drawn at random, the same every time, from short to long."""
    rng = np.random.default_rng(0)
    drawn: list[str] = []
    for at in rng.permutation(len(passages)):
        if len(drawn) >= most:
            break
        sentences = [
            sentence
            for sentence in _BETWEEN_SENTENCES.split(passages[at])
            if WORDS[0] <= len(sentence.split()) <= WORDS[1]
        ]
        drawn += [sentences[i] for i in rng.permutation(len(sentences))[:OF_A_PASSAGE]]
    return sorted(drawn[:most], key=len)


@torch.no_grad()
def bags_and_goals(
    sentences: Sequence[str], sentence_encoder: BertModel, tokenizer: PreTrainedTokenizerFast
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Token ids of each sentence, and [sentence, d_model] its vector, less the mean of them all."""
    bags, vectors = [], []
    for start in range(0, len(sentences), 128):
        batch = tokenizer(list(sentences[start : start + 128]), padding=True, return_tensors="pt")
        batch = batch.to(sentence_encoder.device)
        mask = batch["attention_mask"]
        states = sentence_encoder(**batch).last_hidden_state * mask[:, :, None]
        vectors.append(torch.nn.functional.normalize(states.sum(dim=1), dim=1))
        lengths = mask.sum(dim=1).tolist()
        bags += [ids[1 : n - 1] for ids, n in zip(batch["input_ids"], lengths, strict=True)]
    goals = torch.cat(vectors)
    return bags, goals - goals.mean(dim=0)


def fit(
    rows: torch.Tensor, bags: Sequence[torch.Tensor], goals: torch.Tensor, factors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors and a map such that a text's rows, each by its factor, sum up to where its goal is.

    By Adam on the mean of 1 - cosine; a token that is in no text keeps its factor.

    Args:
        rows: [vocab, d_model] of the embedding table, less their mean.
        bags: [token] ids, for each text.
        goals: [text, d_model].
        factors: [vocab] that the fit begins with.

    Returns:
        [vocab] factors and [d_model, d_model] the map.
    """
    rng = np.random.default_rng(0)
    mapping = torch.eye(rows.shape[1], device=rows.device).requires_grad_()
    logs = factors.log().requires_grad_()
    optimizer = torch.optim.Adam(
        [{"params": [mapping], "lr": RATE_MAP}, {"params": [logs], "lr": RATE_FACTORS}]
    )
    for _ in range(EPOCHS):
        order = rng.permutation(len(bags))
        for start in range(0, len(order), BATCH):
            texts = order[start : start + BATCH]
            tokens = torch.cat([bags[i] for i in texts])
            lengths = torch.tensor([len(bags[i]) for i in texts], device=rows.device)
            of_text = torch.arange(len(texts), device=rows.device).repeat_interleave(lengths)
            scaled = rows[tokens] * logs[tokens].exp()[:, None]
            sums = rows.new_zeros(len(texts), rows.shape[1]).index_add(0, of_text, scaled)
            distance = 1 - torch.cosine_similarity(sums @ mapping, goals[texts]).mean()
            optimizer.zero_grad()
            distance.backward()
            optimizer.step()
    return logs.detach().exp(), mapping.detach()
