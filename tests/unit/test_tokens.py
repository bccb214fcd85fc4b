"""Tokens, words and chunks of a text."""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.embedders import Embedder, embedder_spec, make_embedder
from neuralviz.embedders.base import find_unread
from neuralviz.errors import ModelError, UnreadTextWarning
from neuralviz.models import LanguageModel, TokenizedText, load_model, load_text_model, tokenize
from neuralviz.models.tokens import _cut_chunks
from neuralviz.words import name_texts

FAMILIES = ("bert", "roberta", "modernbert")  # word pieces, bytes trimmed, bytes with blanks


def read(model: LanguageModel, text: str) -> TokenizedText:
    (tokens,) = tokenize(model, [text])
    return tokens


def sizes(tokens: TokenizedText) -> list[int]:
    return [chunk.stop - chunk.start for chunk in tokens.chunks]


def assert_cover(chunks: tuple[slice, ...], n_tokens: int, room: int) -> None:
    """The chunks are the text's tokens in order: nothing lost, nothing twice, none too long."""
    ends = [0, *(chunk.stop for chunk in chunks)]
    assert [chunk.start for chunk in chunks] == ends[:-1]
    assert ends[-1] == n_tokens
    assert all(0 < chunk.stop - chunk.start <= room for chunk in chunks)


# --- chunks ------------------------------------------------------------------------------------


def word_spans(text: str) -> np.ndarray:
    """A token a word."""
    spans, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    return np.array(spans)


def chunk_texts(text: str, room: int) -> list[str]:
    spans = word_spans(text)
    chunks = _cut_chunks(text, spans, room)
    assert_cover(chunks, len(spans), room)
    return [text[spans[chunk][0, 0] : spans[chunk][-1, 1]] for chunk in chunks]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (9, ["One two three. Four five. Six seven eight nine."]),
        (8, ["One two three. Four five.", "Six seven eight nine."]),
        (5, ["One two three. Four five.", "Six seven eight nine."]),
        (4, ["One two three.", "Four five.", "Six seven eight nine."]),
        # a sentence longer than the room is cut, and what is left of it packed with the next
        (3, ["One two three.", "Four five.", "Six seven eight", "nine."]),
        (2, ["One two", "three.", "Four five.", "Six seven", "eight nine."]),
        (1, "One two three. Four five. Six seven eight nine.".split()),
    ],
)
def test_whole_sentences_are_packed(room: int, expected: list[str]) -> None:
    assert chunk_texts("One two three. Four five. Six seven eight nine.", room) == expected


def test_sentences_end_where_they_do_beside_wide_characters() -> None:
    text = "Ñandú 😀 éàü. Two 日本 three. Four."
    assert chunk_texts(text, 5) == ["Ñandú 😀 éàü.", "Two 日本 three. Four."]


@settings(deadline=None, max_examples=200)
@given(
    st.text(alphabet="ab 😀é.!?\n\t日’", min_size=1, max_size=200).filter(str.strip),
    st.integers(1, 12),
)
def test_any_text_is_covered(text: str, room: int) -> None:
    chunk_texts(text, room)


@settings(deadline=None, max_examples=60)
@given(text=st.text(min_size=1, max_size=300))
@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_of_any_text_that_can_be_read(family: str, small_model, text: str) -> None:
    model = small_model(family)
    from neuralviz.errors import TextError

    try:
        tokens = read(model, text)
    except TextError:
        assert not text.strip() or family == "bert"
        return
    assert_cover(tokens.chunks, len(tokens), model.room)
    assert tokens.spans.min() >= 0
    assert tokens.spans.max() <= len(tokens.text)
    assert (np.diff(tokens.words) >= 0).all()
    assert tokens.words[0] == 0
    assert (np.diff(tokens.words) <= 1).all()
    assert isinstance(tokens.is_spelt_out, bool)


def test_a_text_that_just_fits_is_one_chunk(bundled: LanguageModel) -> None:
    assert bundled.room == 510
    assert sizes(read(bundled, "dog. " * 255)) == [510]
    assert sizes(read(bundled, "dog. " * 256)) == [510, 2]


def test_the_sentence_encoder_needs_no_network() -> None:
    model = load_text_model(device="cpu")
    assert (model.id, model.n_blocks, model.d_model, model.window) == (
        "all-MiniLM-L6-v2",
        6,
        384,
        256,
    )
    assert not isinstance(model, LanguageModel)
    assert not model.network.training
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    text = read(model, "The old harbour lies quiet in the morning.")
    ids = model.tokenizer(text.text)["input_ids"]
    assert [*model.prefix_ids, *text.ids.tolist(), *model.suffix_ids] == ids
    with pytest.raises(ModelError, match="Micro-tuning needs a masked language model"):
        load_model(model.id)


# --- spans and words ---------------------------------------------------------------------------


def test_spans_map_back_to_the_text(bundled: LanguageModel) -> None:
    text = "Ünlü cafés\tare UNBELIEVABLY cheap!"
    tokens = read(bundled, text)
    assert tokens.tokens[:2] == ("un", "##lu")
    assert [tokens.piece(i) for i in range(2)] == ["Ün", "lü"]
    words = [text[a:b] for a, b in tokens.word_spans]
    assert words == ["Ünlü", "cafés", "are", "UNBELIEVABLY", "cheap", "!"]
    for (start, end), word in zip(tokens.word_spans, range(10), strict=False):
        pieces = [tokens.piece(i) for i in np.flatnonzero(tokens.words == word)]
        assert "".join(pieces) == text[start:end]


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_the_bytes_of_a_character_are_one_word(family: str, small_model) -> None:
    tokens = read(small_model(family), "日本語")
    assert len(tokens) > 3
    assert tokens.words.tolist() == [0] * len(tokens)
    assert tokens.word_spans == [(0, 3)]


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_what_an_apostrophe_joins_is_one_word(family: str, small_model) -> None:
    text = "I don't, can`t see the dogs' mother, ‘it’s’ 'rock' of the 80's in the U.S."
    tokens = read(small_model(family), text)
    for word in ("don't", "can`t", "it’s", "dogs", "rock", "80's", "U.S"):
        assert word in [word.strip() for word in tokens.word_texts]
    assert not {"t", "s"} & {word.strip() for word in tokens.word_texts}


def test_unknown_words_are_marked(bundled: LanguageModel) -> None:
    tokens = read(bundled, "A dog 😀 barks")
    assert [tokens.piece(i) for i in np.flatnonzero(tokens.unknown)] == ["😀"]


# --- texts that are not read -------------------------------------------------------------------


@cache
def embedder_of(method: str) -> Embedder:
    return make_embedder(method)


UNKNOWN = "are unknown to the model, so similarities to such texts"
EQUAL = "The model reads the same tokens in"


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        (["A dog.", "a dog .", "Á  DOG.", "a\u200b dog.", "A cat."], []),  # equal on purpose
        (["A dog.", "A dog.", "😀", "😀"], [f"half of the words of texts 3 and 4 {UNKNOWN}"]),
        (["😀 🎉", "A dog."], [f"half of the words of text 1 {UNKNOWN}"]),
        (
            ["The red dog 😀.", "The red dog 🎉.", "The red dog."],
            [f"{EQUAL} texts 1 and 2, although"],
        ),
        (
            ["ไทยแลนด์", "ภาษา", "A dog.", "🎉", "a 😀 b c", "a 🎉 b c"],
            [f"texts 1, 2 and 4 {UNKNOWN}", f"{EQUAL} texts 1, 2 and 4, although"],
        ),
        (["ば", "は"], [f"{EQUAL} texts 1 and 2"]),  # other syllables, which lose their marks
        (["Thanks 🙏", "ok 👍", "done ✅ ✅ ✅"], []),  # known words beside symbols
        (["ไทยแลนด์ 👍", "the ภาษา ไทยแลนด์"], [f"texts 1 and 2 {UNKNOWN}"]),
        (["שלום לך", "שָׁלוֹם לְךָ"], []),  # the points are left out on purpose
    ],
)
@pytest.mark.parametrize("method", ["mean", "neural", "sentence-transformer", "neural+mean"])
def test_texts_that_are_lost(method: str, texts: list[str], sentences: list[str]) -> None:
    said, unknown = find_unread(embedder_of(method), texts)
    assert bool(said) == bool(sentences)
    assert all(re.search(sentence, said) for sentence in sentences)
    assert said.count("The model reads") == ("equal" in said)
    assert not unknown or f"{name_texts(sorted(unknown))} {UNKNOWN}" in said
    assert bool(unknown) == (UNKNOWN in said)


@pytest.mark.parametrize("method", ["mean", "sentence-transformer"])
def test_python_warns_of_texts_that_are_lost(method: str) -> None:
    texts = ["The red dog 😀.", "The red dog 🎉.", "A cat."]
    with pytest.warns(UnreadTextWarning, match=EQUAL):
        first, second, third = embedder_of(method).encode(texts)
    assert first @ second == pytest.approx(1, abs=1e-6)
    assert first @ third < 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedder_of(method).encode(texts[1:])


@pytest.mark.parametrize("first", ["", "😀 "])
@pytest.mark.parametrize("n", [120, 200], ids=["short", "longer than what is looked at first"])
def test_a_sentence_encoder_cuts_texts(n: int, first: str) -> None:
    """all-MiniLM-L6-v2 reads 256 tokens; *mean* reads a text to its end."""
    long = "the river rose " * n
    texts = [f"{first}{long} fire", f"{first and '🎉 '}{long} snow"]
    assert (
        f"{EQUAL} texts 1 and 2" in find_unread(embedder_of("sentence-transformer"), texts).message
    )
    assert not find_unread(embedder_of("mean"), texts).message


def test_only_so_many_texts_are_looked_at() -> None:
    texts = ["😀", *["a"] * 1000]
    assert "(Only the first 1,000 of 1,001 texts" in find_unread(embedder_of("mean"), texts).message
    assert not find_unread(embedder_of("mean"), texts[::-1]).message


def test_a_tokenizer_without_a_token_for_unknown_words(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"] = {"type": "WordLevel", "vocab": content["model"]["vocab"], "unk_token": "?"}
    path.write_text(json.dumps(content))
    embedder = make_embedder(embedder_spec("mean", {}, model_id=str(folder)))
    with pytest.raises(ModelError, match=r"tokenizer cannot read these texts: .*Missing"):
        embedder.encode(["qqqqzzzz 😀"])


def test_unknown_words_where_only_the_vocabulary_names_them(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["unk_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = load_text_model(folder, device="cpu")
    assert read(model, "A dog 😀 barks").unknown.sum() == 1
