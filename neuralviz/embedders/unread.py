"""Texts that a model's tokenizer does not tell apart, or does not know."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from neuralviz.words import many, name_texts

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder

MOST_TEXTS = 10_000  # that are looked at
UNKNOWN_SHARE = 0.5  # of a text's tokens
_ACCENTS = re.compile(r"[\u0300-\u036f]")


def describe_unread(embedder: Embedder, texts: Sequence[str]) -> str:
    """What is to be said of texts that the embedder's tokenizers lose; empty where all is well.

    It names texts at least half of whose tokens are unknown, and texts that become the same tokens
    although they differ by more than case, accents, white space and invisible characters, which
    many tokenizers leave out on purpose.

    Args:
        embedder: any; of a concatenation, all parts count.
        texts: the first 10,000 are looked at.
    """
    n_texts, texts = len(texts), list(islice(texts, MOST_TEXTS))
    sentences: dict[str, None] = {}
    for part in embedder.parts:
        tokens = part.token_ids([text for text in texts if text.strip()])
        places = [place for place, text in enumerate(texts) if text.strip()]
        unknown = [
            place
            for place, ids in zip(places, tokens, strict=False)
            if ids and sum(token is None for token in ids) >= UNKNOWN_SHARE * len(ids)
        ]
        if unknown:
            them = "it" if len(unknown) == 1 else "them"
            sentences[
                f"At least half of the tokens of {name_texts(unknown)} are unknown to the model, "
                f"so similarities to {them} mean nothing. Use a model that knows the language."
            ] = None
        if same := _find_equal(texts, dict(zip(places, tokens, strict=False))):
            others = many(len(same) - 1, "other group")
            more = f" The same holds for {others} of texts." if len(same) > 1 else ""
            sentences[
                f"The model reads the same tokens in {name_texts(same[0])}, although they differ, "
                f"so their vectors are equal.{more}"
            ] = None
    if sentences and n_texts > MOST_TEXTS:
        sentences[f"(Only the first {MOST_TEXTS:,} of {n_texts:,} texts were looked at.)"] = None
    return " ".join(sentences)


def _find_equal(texts: Sequence[str], tokens: dict[int, tuple[int | None, ...]]) -> list[list[int]]:
    """Places of texts that have the same tokens and different content."""
    groups: dict[tuple[int | None, ...], list[int]] = defaultdict(list)
    for place, ids in tokens.items():
        groups[ids].append(place)
    found = []
    for group in groups.values():
        if len({texts[place] for place in group}) > 1:
            first_of = {_content(texts[place]): place for place in reversed(group)}
            if len(first_of) > 1:
                found.append(sorted(first_of.values()))
    return found


def _content(text: str) -> str:
    """A text without case, accents, white space and invisible characters."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return "".join(char for char in plain if unicodedata.category(char)[0] not in "CZ")
