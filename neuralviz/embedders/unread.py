"""Texts that a model's tokenizer does not know, or cannot tell apart."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from neuralviz.words import name_texts

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder

MOST_TEXTS = 1000  # that are checked
MOST_CHARACTERS = 2000  # of each
_VOICING = "\u3099\u309a"  # marks that make another Japanese syllable


def describe_unread(embedder: Embedder, texts: Sequence[str], n_texts: int = 0) -> str:
    """A message on texts that the embedder's tokenizers lose; empty if there are none.

    It names texts at least half of whose words are unknown, stray symbols aside, and different
    texts with equal tokens. Only the first 1,000 of ``n_texts`` texts are checked.
    """
    n_texts = n_texts or len(texts)
    texts = list(islice(texts, MOST_TEXTS))
    beginnings = [text[:MOST_CHARACTERS] for text in texts]
    sentences: dict[str, None] = {}
    for part in embedder.parts:
        tokens = part.token_ids(beginnings)
        if not tokens:
            continue  # there is no tokenizer
        unknown = [
            place
            for place, (text, ids) in enumerate(zip(beginnings, tokens, strict=True))
            if _is_mostly_unknown(text, ids)
        ]
        if unknown:
            them = "it" if len(unknown) == 1 else "them"
            sentences[
                f"At least half of the words of {name_texts(unknown)} are unknown to the model, "
                f"so similarities to {them} mean nothing. Use a model that knows the language."
            ] = None
        groups = _find_equal(texts, tokens)
        if groups and beginnings != texts:
            places = list(chain(*groups))
            candidates = [texts[place] for place in places]
            whole_groups = _find_equal(candidates, part.token_ids(candidates))
            groups = [[places[index] for index in group] for group in whole_groups]
        if groups:
            sentences[
                f"The model reads the same tokens in {name_texts(groups[0])}, although they "
                "differ, so their vectors are equal."
            ] = None
    if sentences and n_texts > MOST_TEXTS:
        sentences[f"(Only the first {MOST_TEXTS:,} of {n_texts:,} texts were looked at.)"] = None
    return " ".join(sentences)


def _is_mostly_unknown(text: str, ids: Sequence[int | None]) -> bool:
    n_unknown = sum(token is None for token in ids)
    n_symbols = sum(not any(map(str.isalnum, word)) for word in text.split())
    n_words = len(ids) - n_symbols
    return n_unknown > 0 and (n_unknown == len(ids) or 2 * (n_unknown - n_symbols) >= n_words > 0)


def _find_equal(texts: Sequence[str], tokens: Sequence[tuple[int | None, ...]]) -> list[list[int]]:
    """Places of the first of the texts that differ although their tokens are equal, by tokens."""
    groups: dict[tuple[int | None, ...], dict[str, int]] = defaultdict(dict)
    for place, (text, ids) in enumerate(zip(texts, tokens, strict=True)):
        groups[ids].setdefault(text, place)
    equal = []
    for group in groups.values():
        if len(group) > 1:
            first_of = {_strip_content(text): place for text, place in reversed(group.items())}
            equal += [sorted(first_of.values())] * (len(first_of) > 1)
    return equal


def _strip_content(text: str) -> str:
    return "".join(
        char
        for char in unicodedata.normalize("NFKD", text.casefold())
        if char in _VOICING
        or ((kind := unicodedata.category(char)) != "Mn" and kind[0] not in "CZ")
    )
