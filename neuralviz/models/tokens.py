"""Texts as a model reads them: tokens, the words they belong to, and the chunks that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from sentencex import get_sentence_boundaries

from neuralviz.errors import (
    ModelError,
    SettingsError,
    TextError,
    UnreadableTextError,
    shorten_reason,
)
from neuralviz.words import ShortRepr

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from neuralviz.models.bundled import TextReader
    from neuralviz.models.language_model import TextModel

_Entry = TypeVar("_Entry")
MOSTLY_UNREADABLE = 0.5
# apostrophes, as in *don't* and *80's*, and the points of abbreviations such as *U.S.*
_JOINT = re.compile(r"(?<=[^\W_])['’`´](?=[^\W\d_])|(?<=\b[^\W\d_])\.(?=[^\W\d_]\b)")
_AT_LEAST = "It must contain at least one word."


@dataclass(frozen=True, eq=False, repr=False)
class TokenizedText(ShortRepr):
    """A text and its tokens, without special tokens."""

    text: str
    ids: np.ndarray  # [token] vocabulary ids
    tokens: tuple[str, ...]  # [token] as the vocabulary writes them (``##ing``, ``Ġthe``)
    spans: np.ndarray  # [token, 2] first and past-the-last character of each token in ``text``
    words: np.ndarray  # [token] index of the word each token belongs to
    unknown: np.ndarray  # [token] true where the vocabulary has nothing for the word
    chunks: tuple[slice, ...]  # of tokens, each fits the model's window

    def __len__(self) -> int:
        return len(self.ids)

    def piece(self, token: int) -> str:
        """The characters that a token stands for."""
        start, end = self.spans[token]
        return self.text[start:end]

    @property
    def word_spans(self) -> list[tuple[int, int]]:
        """First and past-the-last character of each word."""
        n_words = int(self.words.max()) + 1
        starts = np.full(n_words, len(self.text))
        ends = np.zeros(n_words, dtype=np.int64)
        np.minimum.at(starts, self.words, self.spans[:, 0])
        np.maximum.at(ends, self.words, self.spans[:, 1])
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    @property
    def word_texts(self) -> list[str]:
        return [self.text[start:end] for start, end in self.word_spans]

    @property
    def pieces(self) -> np.ndarray:
        """[word] in how many pieces the vocabulary has it; of *don't*, only *don* counts."""
        follows = np.isin(self.spans[:, 0], _find_joints(self.text))
        return np.maximum(1, np.bincount(self.words, ~follows))

    @property
    def in_pieces(self) -> np.ndarray:
        """[word in lower case, thus no name] whether the vocabulary has it in pieces alone."""
        is_lower = np.array([word.islower() for word in self.word_texts])
        return self.pieces[is_lower] > 1

    @property
    def is_spelt_out(self) -> bool:
        """Whether most words, symbols aside, or all are unknown, or known by letters alone."""
        letters = np.bincount(self.words, self.spans[:, 1] - self.spans[:, 0])
        is_lacking = np.bincount(self.words, self.unknown) > 0
        in_letters = (letters >= 4) & (letters / self.pieces < 2)
        is_word = [any(map(str.isalnum, word)) for word in self.word_texts]
        is_strange = (is_lacking | in_letters)[is_word]
        is_mostly = is_strange.sum() >= MOSTLY_UNREADABLE * len(is_strange) > 0
        return bool(is_mostly or self.unknown.all())


class Reader(NamedTuple):
    """A tokenizer as `tokenize` takes it."""

    encoder: Tokenizer
    room: int  # tokens of a chunk
    unknown_id: int | None = None


def encode_texts(
    tokenizer: Tokenizer, texts: Sequence[str], *, with_spans: bool = False
) -> list[Encoding]:
    """Tokenise texts without special tokens; `ModelError` if the tokenizer cannot read one."""
    encode = tokenizer.encode_batch if with_spans else tokenizer.encode_batch_fast
    try:
        return encode(list(texts), add_special_tokens=False)
    except Exception as error:  # the library has no error class
        raise ModelError(
            f"The model's tokenizer cannot read these texts: {shorten_reason(error)}."
        ) from error


def tokenize(model: TextModel | TextReader | Reader, texts: Sequence[str]) -> list[TokenizedText]:
    """Tokenise texts, and cut those longer than the model's window into chunks.

    Strings such as ``[MASK]`` are read as plain characters. `UnreadableTextError` if a text is
    empty, no string or without a token; `TextError` if there are no texts or they have no order.
    """
    check_several(texts)
    texts = list(texts)
    check_texts(texts)
    clean = list(map(to_utf8, texts))
    encodings = encode_texts(model.encoder, clean, with_spans=True)
    out = []
    for place, (text, encoding) in enumerate(zip(clean, encodings, strict=True)):
        if not encoding.ids:
            reason = f"has no character that the model can read. {_AT_LEAST}"
            raise UnreadableTextError(reason, place, len(texts))
        ids = np.asarray(encoding.ids, dtype=np.int64)
        spans = np.asarray(encoding.offsets, dtype=np.int64)
        out.append(
            TokenizedText(
                text=text,
                ids=ids,
                tokens=tuple(encoding.tokens),
                spans=spans,
                words=_number_words(encoding.word_ids, spans, text),
                unknown=ids == (-1 if model.unknown_id is None else model.unknown_id),
                chunks=_cut_chunks(text, spans, model.room),
            )
        )
    return out


def to_utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def find_unknown_id(encoder: Tokenizer, unknown: str | None) -> int | None:
    """Id of the vocabulary's unknown token, else of ``unknown``; None if bytes spell everything."""
    vocabulary = encoder.get_vocab(with_added_tokens=False)
    bytes_of_bpe = (chr(0x100 + byte) for byte in range(33))  # ByteLevel's names of bytes 0 … 32
    if all(name in vocabulary for name in bytes_of_bpe) or "<0x00>" in vocabulary:
        return None
    token = getattr(encoder.model, "unk_token", None) or unknown
    return None if token is None else encoder.token_to_id(token)


def check_tokenizer(encoder: Tokenizer, model_id: str) -> None:
    """Raise `ModelError` for a tokenizer that knows no word, or splits words at random."""
    special = sum(token.special for token in encoder.get_added_tokens_decoder().values())
    if encoder.get_vocab_size() <= special:
        raise ModelError(
            f"{model_id} has an empty vocabulary: its tokenizer.json is missing, or has {special} "
            "special tokens and no other. Save the tokenizer again; transformers 5 ignores "
            "`vocab_file`, so make it with `vocab` or `from_pretrained`."
        )
    if getattr(encoder.model, "dropout", None):
        raise ModelError(
            f"The tokenizer of {model_id} splits words at random. Set “dropout” in its "
            "tokenizer.json to null."
        )


def check_several(texts: object) -> None:
    """Raise `TextError` for a single string, a set, or anything else that is no list of texts."""
    if isinstance(texts, set | frozenset):
        raise TextError("A set has no order, so its vectors could not be told apart. Use a list.")
    if isinstance(texts, str | bytes | bytearray) or not isinstance(texts, Iterable):
        raise TextError(
            "Texts must be strings in a list, an array or a column of a table, not "
            f"{type(texts).__name__}."
        )


def check_tokenized(texts: Iterable[object]) -> None:
    entry = next((text for text in texts if not isinstance(text, TokenizedText)), None)
    if entry is not None:
        raise SettingsError(
            f"Texts must be tokenised, as neuralviz.models.tokenize gives them, not {entry!r:.60}."
        )


def check_texts(texts: Sequence[str]) -> None:
    """Raise `UnreadableTextError` if a text is empty or no string."""
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            reason = f"is not a string but {type(text).__name__}."
            raise UnreadableTextError(reason, place, len(texts))
        if not text.strip():
            raise UnreadableTextError(f"is empty. {_AT_LEAST}", place, len(texts))


def _number_words(word_ids: Sequence[int | None], spans: np.ndarray, text: str) -> np.ndarray:
    words = np.array([-1 if word is None else word for word in word_ids])
    is_blank = np.array([text[start : start + 1].isspace() for start in spans[:, 0]])
    touches = (spans[:-1, 1] >= spans[1:, 0]) & ~is_blank[1:]  # bytes of a character share its span
    is_continued = (words[1:] >= 0) & (words[1:] == words[:-1])
    is_continued |= np.isin(spans[1:, 0], _find_joints(text))
    return np.cumsum(np.append(False, ~(touches & is_continued)))


def _find_joints(text: str) -> list[int]:
    """The places of signs within words, and those behind them."""
    return [place for match in _JOINT.finditer(text) for place in match.span()]


def _cut_chunks(text: str, spans: np.ndarray, room: int) -> tuple[slice, ...]:
    """Slices of at most ``room`` tokens: whole sentences packed, longer sentences cut."""
    n_tokens = len(spans)
    if n_tokens <= room:
        return (slice(0, n_tokens),)
    ends = np.array([b["end_index"] for b in get_sentence_boundaries("en", text)])
    # A sentence ends before the first token that starts behind its last character.
    cuts = np.unique(np.append(np.searchsorted(spans[:, 0], ends), n_tokens))
    chunks, start = [], 0
    fits = 0  # end of the last sentence that still fits after `start`
    for cut in cuts[cuts > 0]:
        if cut - start > room and fits > start:
            chunks.append(slice(start, fits))
            start = fits
        while cut - start > room:
            chunks.append(slice(start, start + room))
            start += room
        fits = int(cut)
    if n_tokens > start:
        chunks.append(slice(start, n_tokens))
    return tuple(chunks)


def batch_while(
    entries: Iterable[_Entry], fits: Callable[[list[_Entry], _Entry], bool]
) -> Iterator[list[_Entry]]:
    """Entries in order, in batches that grow while ``fits`` accepts the next entry."""
    batch: list[_Entry] = []
    for entry in entries:
        if batch and not fits(batch, entry):
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch
