"""Vectors that were computed elsewhere: what is read of files, refused, and kept for a corpus."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralviz.embedders.specs import EmbedderSpec, list_models, make_embedder, method_labels
from neuralviz.errors import ModelError, TextError
from neuralviz.jobs.mapping import MakeMaps, MapChoice
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.plots.theme import method_colour
from neuralviz.reading import vectors
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors, list_vector_columns, read_vectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import find_imported, import_vectors, imported_label, imported_specs
from neuralviz.store.vectors import KeptEmbedder, text_keys
from neuralviz.store.writing import write_vectors

TEXTS = ("rain", "snow", "rain", "bread", "salt", "a choir", "a river")
VECTORS = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


def npy(array: np.ndarray) -> Source:
    file = io.BytesIO()
    np.save(file, array)
    return Source("mine.npy", file.getvalue())


def table(**columns: object) -> Source:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return Source("mine.parquet", file.getvalue())


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int64", ">f8"])
def test_arrays_of_numbers_are_read_as_float32(kind: str) -> None:
    array = np.arange(12).reshape(4, 3).astype(kind)
    read = read_vectors(npy(np.asarray(array, order="F")))
    np.testing.assert_array_equal(read.vectors, np.arange(12).reshape(4, 3))
    assert (read.vectors.dtype, read.columns, read.name) == (np.float32, {}, "mine.npy")


def patched(old: bytes, new: bytes) -> Source:
    """An array of five values whose header says something else."""
    return Source("mine.npy", npy(np.ones((5, 1))).content.replace(old, new))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "ran"
    array = np.array([[Evil(path), 1]], dtype=object)
    with pytest.raises(TextError, match=r"damaged, or not a \.npy file of numbers"):
        read_vectors(npy(array))
    assert not path.exists()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (npy(np.ones(5)), r"mine.npy has the shape \(5,\). It must have one row per text"),
        (npy(np.array([["a", "b"]])), "holds values of the type <U1, not numbers"),
        (npy(np.ones((0, 4))), "holds no vectors"),
        (patched(b"(5, 1), }", b"(-1,-5),}"), "is damaged, or not a .npy file"),
        (patched(b"(5, 1), }", b"(9**9,9)}"), "is damaged, or not a .npy file"),
        (patched(b"(5, 1), }", b"(True,5)}"), "is damaged, or not a .npy file"),
        (patched(b"NUMPY\x01", b"NUMPY\x09"), "is damaged, or not a .npy file"),
        (npy(np.ones((3, 1))), "have one value. They need at least 2"),
        (npy(np.array([[1, 2], [np.nan, 1], [np.inf, 0]])), r"row 2 \(and 1 more\) of mine.npy "
         "contains NaN or infinite values"),
        (npy(np.array([[1e30, 2]])), "row 1 of mine.npy contains values above 1e"),
        (Source("mine.npy", b"\x93NUMPY\x01\x00 no header"), "damaged, or not a .npy file"),
        (Source("mine.npy", npy(np.ones((3, 4))).content[:-1]), "damaged, or not a .npy file"),
        (Source("mine.npy", b"PK\x03\x04 an archive"), "damaged, or not a .npy file"),
        (Source("mine.npy", b""), "is empty"),
        (Source("mine.pkl", b"x"), "neither .npy nor .parquet"),
        (Source("mine.parquet", b"x"), "damaged, or not a Parquet file"),
        (table(text=["a", "b"]), "no column with lists of numbers"),
        (table(a=[[1.0, 2.0]], b=[[1.0, 2.0]]), "more than one column with lists of numbers"),
        (table(vector=[[1.0, 2.0], [1.0]]), "have different lengths"),
        (table(vector=[[1.0, 2.0], None]), "has no vector in row 2"),
        (table(vector=[[1.0, 2.0], [1.0, None]]), "row 2 of mine.parquet contains NaN"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(source: Source, sentence: str) -> None:
    with pytest.raises(TextError, match=sentence):
        read_vectors(source)


def test_too_many_values_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(vectors, "MOST_VALUES", 11)
    for source in (npy(np.ones((3, 4))), table(vector=np.ones((3, 4)).tolist())):
        with pytest.raises(TextError, match=r" has 3 × 4 values. Up to"):
            read_vectors(source)


def test_a_parquet_file_brings_its_texts_and_its_vector_column(tmp_path: Path) -> None:
    write_vectors(tmp_path / "out.parquet", list("abcdefg"), TEXTS, VECTORS)
    read = read_vectors(Source.from_path(tmp_path / "out.parquet"))
    np.testing.assert_array_equal(read.vectors, VECTORS)
    assert tuple(read.strings("text")) == TEXTS
    other = table(
        n=[[1, 2]], Embedding=pa.FixedSizeListArray.from_arrays([1.0, 2.0], 2), title=["x"]
    )
    assert read_vectors(other).vectors.tolist() == [[1, 2]]
    assert read_vectors(other).strings("title") == ["x"]
    assert list_vector_columns(other) == ["Embedding"]
    both = table(tags=[[1, 2]], minilm=[[0.5, 2]], text=["x"], vector=[[3, 4]])
    assert list_vector_columns(both) == ["vector", "minilm"]
    assert read_vectors(both, "minilm").vectors.tolist() == [[0.5, 2]]
    with pytest.raises(TextError, match=r"no vectors in a column “text”.*minilm"):
        read_vectors(both, "text")
    assert list_vector_columns(Source("x.parquet", b"x")) == []
    assert list_vector_columns(Source("x.csv", b"vector")) == []


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusStore:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    return CorpusStore()


def test_vectors_are_kept_by_text_and_found_again(store: CorpusStore) -> None:
    corpus = store.add("c", ReadTexts(TEXTS))
    by_row = import_vectors(store, corpus, ReadVectors("rows.npy", VECTORS)).kept
    kept = store.vectors.get(by_row, store.keys(corpus))
    np.testing.assert_array_equal(kept[[0, 1, 3, 4, 5, 6]], VECTORS[[0, 1, 3, 4, 5, 6]])
    np.testing.assert_array_equal(kept[2], VECTORS[0])  # of equal texts the first counts
    order = np.random.default_rng(1).permutation(7)
    more = np.concatenate([VECTORS[order], np.ones((1, 4), np.float32)])
    texts = (*(TEXTS[i] for i in order), "not in the corpus")
    read = ReadVectors("texts.parquet", more, {"text": pa.array(texts)})
    by_text = import_vectors(store, corpus, read).kept
    np.testing.assert_array_equal(
        store.vectors.get(by_text, store.keys(corpus))[[1, 3]], VECTORS[[1, 3]]
    )
    assert np.isnan(store.vectors.losses(by_text, store.keys(corpus))).all()

    def place_of(spec: EmbedderSpec) -> KeptEmbedder:
        return find_imported([store.vectors], spec, store.keys(corpus))[1]

    found = imported_specs(CorpusStore().vectors, lambda: store.keys(corpus))
    assert list(found) == ["file: rows.npy", "file: texts.parquet"]
    assert place_of(found["file: rows.npy"]) == by_row
    newer = import_vectors(store, corpus, ReadVectors("rows.npy", VECTORS + 1)).kept
    found = imported_specs(store.vectors, lambda: store.keys(corpus))  # both of the name are there
    assert list(found) == ["file: rows.npy", "file: texts.parquet", "file: rows.npy (2)"]
    assert place_of(found["file: rows.npy"]) == by_row
    assert place_of(found["file: rows.npy (2)"]) == newer
    assert imported_label(store, corpus, newer) == "file: rows.npy (2)"
    again = import_vectors(store, corpus, ReadVectors("rows.npy", VECTORS)).kept
    assert imported_label(store, corpus, again) == "file: rows.npy"  # the same vectors
    assert imported_specs(store.vectors, lambda: text_keys(["x", "y"])) == {}
    keys = store.keys(corpus)
    store.delete(corpus)
    assert not store.vectors.has_vectors(by_row, keys).any()
    assert not store.vectors.has_vectors(by_text, keys).any()


def test_vectors_that_are_not_those_of_the_texts_are_refused(store: CorpusStore) -> None:
    corpus = store.add("c", ReadTexts(TEXTS))
    with pytest.raises(TextError, match=r"rows.npy has 6 rows, but “c” has 7 texts"):
        import_vectors(store, corpus, ReadVectors("rows.npy", VECTORS[1:]))
    with pytest.raises(TextError, match="no vector for 5 of the 6 different texts of “c”"):
        import_vectors(store, corpus, read_vectors(of_texts(text=["rain", "x"])))
    assert store.vectors.embedders() == ()
    gone = EmbedderSpec("imported", "", (("digest", "d"), ("file", "gone.npy")))
    with pytest.raises(TextError, match=r"gone.npy” has no vector for 6 of the 6.*or was deleted"):
        find_imported([store.vectors], gone, store.keys(corpus))


def of_texts(**columns: object) -> Source:
    """A parquet file in which the vector of the row n is [n, 1], beside some columns."""
    (n, *_) = map(len, columns.values())  # type: ignore[arg-type]
    return table(**columns, vector=[[float(row), 1.0] for row in range(n)])


ORDER = [5, 3, 0, 6, 4, 1, 2]  # the texts of a file, by their places in the corpus
SHUFFLED = [TEXTS[place] for place in ORDER]
IDS = tuple(f"d{place}" for place in range(7))
NAMES = [IDS[place] for place in ORDER]


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"text": pa.array(SHUFFLED).dictionary_encode()}, "text"),  # a pandas Categorical
        ({"text": pa.array(SHUFFLED, pa.dictionary(pa.int8(), pa.large_string()))}, "text"),
        ({"text": pa.array(SHUFFLED, pa.large_string())}, "text"),
        ({"Text ": pa.array(SHUFFLED, pa.string_view())}, "Text "),
        ({"text": pa.array([text.encode() for text in SHUFFLED], pa.binary())}, "text"),
        ({"documents": SHUFFLED}, "documents"),
        ({"nr": range(7), "what it says": SHUFFLED}, "what it says"),
        ({"title": NAMES, "Inhalt": [f" {text}\r\n" for text in SHUFFLED]}, "Inhalt"),
        ({"text": SHUFFLED[::-1], "id": NAMES, "content": SHUFFLED[::-1]}, "text"),
        ({"doc": NAMES}, "doc"),
        ({"title": ["x"] * 7, "_id": pa.array(NAMES).dictionary_encode()}, "_id"),
        ({"text": [*SHUFFLED, "another"], "score": range(8)}, "text"),
        ({"doc": ["e1", *NAMES]}, "doc"),
    ],
)
def test_vectors_find_their_texts_whatever_the_column(store, columns: dict, column: str) -> None:
    corpus = store.add("c", ReadTexts(TEXTS, ids=IDS))
    source = of_texts(**columns)
    done = import_vectors(store, corpus, read_vectors(source))
    assert f"in the column “{column}”." in done.matched
    frame = pd.read_parquet(io.BytesIO(bytes(source.content)))  # not our reader
    frame[column] = [one.decode() if isinstance(one, bytes) else one for one in frame[column]]
    written = [str(one).strip() for one in frame[column]]
    kept = store.vectors.get(done.kept, store.keys(corpus))
    wanted = TEXTS if "rain" in written else IDS
    right = [frame["vector"][written.index(one)].tolist() for one in wanted]
    if "rain" not in written:
        right[2] = right[0] if written.index("d0") < written.index("d2") else right[2]
    assert kept.tolist() == right


@pytest.mark.parametrize(
    "column", [[6.0, 4.0, 1.0, 7.0, 5.0, 2.0, 3.0], [6, 4, 1, 7, 5, 2, 3], list("6417523")]
)
def test_ids_are_found_as_numbers_and_as_text(store: CorpusStore, column: list) -> None:
    numbered = store.add("c", ReadTexts(TEXTS))  # whose ids are 1 to 7
    padded = store.add("d", ReadTexts(TEXTS, ids=tuple(f"00{n}" for n in range(1, 8))))
    for corpus in (numbered, padded):
        done = import_vectors(store, corpus, read_vectors(of_texts(id=column)))
        assert done.matched.startswith("Matched by the IDs in the column “id”.")
        kept = store.vectors.get(done.kept, store.keys(corpus))
        assert kept[:, 0].tolist() == [2, 5, 2, 1, 4, 0, 3]  # "rain" is the first and the third


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "beside the vectors are: none.*match by row"),
        ({"rank": [6, 4, 1, 7, 5, 2, 3]}, "neither the texts of “c” nor IDs .*: “rank”"),
        ({"id": range(7)}, "neither the texts"),  # the corpus counts from 1
        ({"id": range(9)}, "neither the texts"),  # of which 1 to 7 are others
        ({"text": list("abcdefg"), "id": range(1, 8)}, "the texts in “text” are not"),
        ({"comment": list("abcdefg"), "id": range(1, 8)}, "the texts in “comment” are not"),
        ({"Inhalt": [*SHUFFLED[:5], "", ""], "id": range(1, 8)}, "the texts in “Inhalt” are not"),
        *(({name: [6, 4, 1, 7, 5, 2, 3]}, f"neither the texts.*“{name}”")
          for name in ("cluster_id", "author_id", "paid", "valid", "Grid")),
        ({"doc": IDS, "text": list("abcdefg")}, "the texts in “text” are not. If the IDs are"),
        ({"doc": IDS, "Inhalt": [*SHUFFLED[:5], "", ""]}, "the texts in “Inhalt” are not"),
        ({"doc": IDS, "Inhalt": [*TEXTS[:5], "cut", "off"]}, "the texts in “Inhalt” are not"),
        ({"text": [*SHUFFLED[:5], "snow!", None]}, "no vector for 1 of the 6 different texts of "
         "“c” .column “text”."),
        ({"documents": pa.array([*SHUFFLED[:5], None, "x"]).dictionary_encode()}, "“documents”"),
        ({"a": SHUFFLED, "b": SHUFFLED[::-1]}, "columns “a” and “b”. Rename the one"),
    ],
)  # fmt: skip
def test_vectors_without_known_texts_are_refused_unless_they_are_in_order(
    store: CorpusStore, columns: dict, sentence: str
) -> None:
    corpus = store.add("c", ReadTexts(TEXTS, ids=IDS if "doc" in columns else None))
    n = len(next(iter(columns.values()), TEXTS))
    source = table(**columns, vector=[[float(row), 1.0] for row in range(n)])
    with pytest.raises(TextError, match=sentence):
        import_vectors(store, corpus, read_vectors(source))
    assert store.vectors.embedders() == ()
    if n == len(TEXTS) and "a" not in columns:
        done = import_vectors(store, corpus, read_vectors(source), in_order=True)
        assert done.matched.startswith("Matched by row, in the order of the corpus.")
        assert store.vectors.get(done.kept, store.keys(corpus))[3, 0] == 3


@pytest.mark.parametrize("texts", [TEXTS, (*TEXTS, "x", "x")])
def test_of_several_vectors_of_a_text_the_first_is_used(store, texts: tuple[str, ...]) -> None:
    corpus = store.add("c", ReadTexts(TEXTS, ids=IDS))
    nearest = [*IDS[1:], *IDS][: len(texts)]  # names other texts
    done = import_vectors(store, corpus, read_vectors(of_texts(text=texts, nearest=nearest)))
    several = "Of 1 text with several different vectors, the first is used."
    assert done.matched == f"Matched by the texts in the column “text”. {several}"
    kept = store.vectors.get(done.kept, store.keys(corpus))[:, 0]
    assert kept.tolist() == [0, 1, 0, 3, 4, 5, 6]


def test_line_breaks_of_another_system_are_no_difference(store: CorpusStore) -> None:
    texts = ("one\ntwo", "three\nfour\nfive", "six", "\r\n".join("ab"))
    corpus = store.add("c", ReadTexts(texts))
    windows = ["three\r\nfour\rfive", "a\r\nb", "one\r\ntwo", "six"]
    done = import_vectors(store, corpus, read_vectors(of_texts(text=windows)))
    assert store.vectors.get(done.kept, store.keys(corpus))[:, 0].tolist() == [2, 0, 3, 1]


def test_equal_texts_whose_vectors_round_otherwise_are_equal(store: CorpusStore) -> None:
    equal = VECTORS[[0, 1, 0, 3, 4, 5, 6]]
    equal[2] *= 1 + 1e-6
    corpus = store.add("c", ReadTexts(TEXTS))
    done = import_vectors(store, corpus, ReadVectors("rows.npy", equal))
    assert done.matched == "Matched by row, in the order of the corpus."


def test_imported_vectors_are_a_method_without_a_model(store: CorpusStore) -> None:
    corpus = store.add("c", ReadTexts(TEXTS))
    kept = import_vectors(store, corpus, ReadVectors("rows.npy", VECTORS)).kept
    spec = EmbedderSpec.from_json(kept.spec)
    assert method_labels([spec, spec]) == ("file: rows.npy", "file: rows.npy · 2")
    assert (spec.learns, spec.singles, list_models([spec])) == (False, (), ())
    assert method_colour(spec.label) not in {method_colour(m) for m in ("neural", "mean", "tf-idf")}
    with pytest.raises(ModelError, match="there is no model to embed with"):
        make_embedder(spec)
    task = MakeMaps.for_current_models(corpus.id, [MapChoice(spec, ProjectionSettings("pca"))])
    events = list(task.events(lambda: False))
    (made,) = KeptMaps(store).list_maps(corpus)
    assert made.embedder == kept.id
    assert task.fold(task.start(), events).event is not None
