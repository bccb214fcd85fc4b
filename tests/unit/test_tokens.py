"""Tokens, words and chunks of a text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.models import LanguageModel, TokenizedText, tokenize
from neuralviz.models.tokens import _chunks
from tests.support.models import SENTENCES

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
    chunks = _chunks(text, spans, room)
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


def test_paragraphs_end_a_sentence() -> None:
    assert chunk_texts("no full stop\n\nnone here either", 4) == [
        "no full stop",
        "none here either",
    ]


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
    assert 0 <= tokens.unreadable_share <= 1


@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_of_a_long_text_begin_with_sentences(family: str, small_model) -> None:
    model = small_model(family)
    text = " ".join(s for s in SENTENCES if len(read(model, s)) <= model.room - 3)
    text = f"{text} {text}"
    tokens = read(model, text)
    assert len(tokens.chunks) >= 3
    assert_cover(tokens.chunks, len(tokens), model.room)
    for chunk in tokens.chunks:
        own = text[tokens.spans[chunk.start, 0] : tokens.spans[chunk.stop - 1, 1]].strip()
        assert own.startswith(tuple(s.split()[0] for s in SENTENCES)), own
        assert own.endswith("."), own


def test_a_text_that_just_fits_is_one_chunk(bundled: LanguageModel) -> None:
    assert bundled.room == 510
    assert sizes(read(bundled, "dog. " * 255)) == [510]
    assert sizes(read(bundled, "dog. " * 256)) == [510, 2]


def test_twenty_thousand_words(bundled: LanguageModel) -> None:
    sentence = "The dog barks at the boats in the harbour. "
    length = len(read(bundled, sentence))
    tokens = read(bundled, sentence * 2223)
    assert max(sizes(tokens)) <= 510
    assert sum(sizes(tokens)) == len(tokens)
    assert len(tokens) == 2223 * length
    assert all(size % length == 0 for size in sizes(tokens))  # no sentence is cut


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


@pytest.mark.parametrize("family", FAMILIES)
def test_words_have_no_blank_inside(family: str, small_model) -> None:
    text = "The baker's dog,  barks\nat 😀😀 日本語 x"
    tokens = read(small_model(family), text)
    words = [text[a:b].strip() for a, b in tokens.word_spans]
    assert not any(character.isspace() for word in words for character in word)
    assert "".join(words) == "".join(text.split())


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_the_bytes_of_a_character_are_one_word(family: str, small_model) -> None:
    tokens = read(small_model(family), "日本語")
    assert len(tokens) > 3
    assert tokens.words.tolist() == [0] * len(tokens)
    assert tokens.word_spans == [(0, 3)]


def test_unknown_words_are_marked(bundled: LanguageModel) -> None:
    tokens = read(bundled, "A dog 😀 barks")
    assert [tokens.piece(i) for i in np.flatnonzero(tokens.unknown)] == ["😀"]


def test_a_byte_level_vocabulary_knows_every_word(small_model) -> None:
    model = small_model("roberta")
    assert model.unknown_id is None
    assert not read(model, "A dog 😀 barks").unknown.any()


ENGLISH = "The fishermen mend their nets while a heavy rain falls on the quiet harbour."
RUSSIAN = "Рыбаки чинят свои сети, пока над тихой гаванью идёт сильный дождь."
CHINESE = "渔民们在修补渔网,大雨落在安静的港口。"


def test_what_can_be_read(bundled: LanguageModel) -> None:
    assert read(bundled, ENGLISH).unreadable_share < 0.1
    assert read(bundled, RUSSIAN).unreadable_share > 0.5
    assert read(bundled, CHINESE).unreadable_share > 0.5
    assert read(bundled, "😀 😀 😀").unreadable_share == 1


def test_what_a_byte_level_vocabulary_can_read(small_model) -> None:
    model = small_model("roberta")
    assert read(model, " ".join(SENTENCES[:3])).unreadable_share < 0.5
    assert read(model, RUSSIAN).unreadable_share > 0.6
    assert read(model, CHINESE).unreadable_share >= 0.5  # two of four: the marks can be read


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Die Katze schläft den ganzen Nachmittag auf dem warmen Fensterbrett.", True),
        ("Kissa nukkui koko iltapäivän lämpimällä ikkunalaudalla ja heräsi vasta illalla.", True),
        ("Кошка весь день спала на тёплом подоконнике.", True),
        ("القطة نامت طوال اليوم على النافذة", True),
        ("The cat slept all afternoon on the warm sill of the kitchen window.", False),
        ("The neuroscientist photographed bioluminescent jellyfish.", False),
    ],
)
def test_texts_in_other_languages(text: str, foreign: bool, bundled: LanguageModel) -> None:
    assert read(bundled, text).looks_foreign is foreign
