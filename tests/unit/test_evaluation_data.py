"""Reading labelled data, and measuring on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.data import (
    GroupedData,
    LabelledData,
    ScoredData,
    Thresholds,
    corpus_data,
    guess_columns,
    guess_kind,
    labelled_data,
    make_data,
    read_data,
    scored_data,
)
from neuralviz.evaluation.measures import (
    MAX_ALIKE,
    alike_pairs,
    check_measures,
    count_kinds,
    measure,
    overlaps,
)
from neuralviz.evaluation.results import (
    EXPLAINED,
    Measured,
    MeasureSettings,
    QualityMap,
    _words,
    find_published,
    read_published,
)
from neuralviz.reading.pairs import Scale, number_pairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore

PAIRS = "sentence1,sentence2,score\na b,a b,5\na b,a c,4.5\nd e,f g,1\nh,i,0\n"
GROUPS = "text,group\na1,a\na2,a\nb1,b\nb2,b\nc1,c\n"
LABELS = "text,label\na,x\nb,x\nc,y\nd,y\n"
PHRASES = "original,generated,varies,value,fixed1,fixed2\n" + "".join(
    f"o{i},g{i} {quality},{quality},{i / 4},0.1,{fixed}\n"
    for quality in ("lexical", "semantic")
    for fixed in (0.1, 0.9)
    for i in range(4)
)


def read(content: str, roles=None, **options):
    return read_data(Source("d.csv", content.encode()), roles, **options)


def test_pairs_have_their_texts_once() -> None:
    data = read(PAIRS)
    assert isinstance(data, ScoredData)
    assert data.texts == ("a b", "d e", "h", "a c", "f g", "i")
    assert [data.texts[i] for i in data.second] == ["a b", "a c", "f g", "i"]
    assert data.by_default == ("correlations", "pairs", "triplets", "uniformity")
    assert data.describe() == ("4 scored pairs, 2 of them similar (≥ 4), 2 dissimilar (≤ 2)")
    assert data.grouping.n_triplets == 4 * 2  # the same text twice counts twice


def test_groups_and_anchors() -> None:
    assert read(LABELS).labels == ("x", "x", "y", "y")
    assert read(PHRASES).describe() == "16 generated phrases, varying in lexical, semantic"
    data = read(GROUPS)
    assert isinstance(data, GroupedData)
    assert data.grouping.n_triplets == 4 * 1 * 3
    with_roles = "text,group,role\nd,1,anchor\ns,1,\nt,1,summary\ne,2,Anchor\nu,2,summary\n"
    data = read(with_roles)
    assert data.grouping.anchor.tolist() == [True, False, False, True, False]
    assert data.grouping.n_triplets == 2 * 1 + 1 * 2
    assert "2 of them anchors; 4 triplets" in data.describe()
    data = read("text,group,role\nd,1,document\ns,1,summary\ne,2,\n")
    assert data.grouping.anchor.tolist() == [True, False, False]
    data = read("text,group,role\nd,1,query\ns,1,summary\ne,2,\n")
    assert data.grouping.anchor is None
    assert "No text in the column “role” has the role “anchor” or “document”" in data.notes[0]


def test_roles_name_columns() -> None:
    data = read(
        "Q,A,rating\nx,y,5\nx,z,1\nz,y,3\n", {"text1": "q", "text2": "A", "score": "rating"}
    )
    assert isinstance(data, ScoredData)
    data = read("id,text,topic,group\n1,x,t,g\n2,y,t,g\n3,z,u,h\n", {"label": "topic"})
    assert isinstance(data, LabelledData)
    content = "Text,text,group\nA.,one dog,1\nB.,two dogs,1\nC.,rain,2\n"
    assert read(content, {"text": "text"}).texts == ("one dog", "two dogs", "rain")
    for title in ("Text", "TEXT"):
        assert read(content, {"text": title}).texts == ("A.", "B.", "C.")
    for roles, says in (
        ({"text1": "score", "text2": "score"}, "two roles"),
        ({"wrong": "score"}, "Unknown role “wrong”"),
        ({"score": "none"}, "no column “none” for the role score"),
        ({"text1": " "}, "no column “ ” for the role text1"),
    ):
        with pytest.raises(SettingsError, match=says):
            read(PAIRS, roles)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "d.csv"),
        ("a,c\n1,2\n", "is not a data set. It needs one of these sets of columns"),
        ("sentence1,sentence2,score\na,b,high\nc,d,low\ne,f,\n", "0 pairs"),
        ("text,group\na,1\n", "1 text with a group"),
        ("text,label\na,1\n", "1 text with a label"),
        (PHRASES.splitlines()[0] + "\no,g,lexical,many,1,1\n", "0 texts with an original"),
    ],
)
def test_what_cannot_be_measured_on(content: str, said: str) -> None:
    with pytest.raises(TextError, match=said):
        read(content)


def test_the_digest_is_of_everything_that_counts() -> None:
    texts = [PAIRS, PAIRS.replace("4.5", "4.4"), GROUPS, GROUPS.replace("b2,b", "b2,a"), LABELS]
    digests = [read(text).digest for text in texts] + [read(PAIRS, thresholds=Thresholds(3)).digest]
    assert len(set(digests)) == len(digests)
    assert read(PAIRS).digest == digests[0]


def drawn(data, seed: int = 0, dim: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(data.texts), dim)).astype(np.float32)


def many_pairs(n: int = 60) -> ScoredData:
    rows = "".join(f"s{i},t{i},{i % 6}\n" for i in range(n))
    return read("sentence1,sentence2,score\n" + rows)


def test_all_measures_of_scored_pairs() -> None:
    data = many_pairs()
    vectors = drawn(data)
    found = measure(data, vectors, MeasureSettings(resamples=200))
    units = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    products = (units[data.first] * units[data.second]).sum(axis=1)
    np.testing.assert_allclose(found.products, products, atol=1e-12)
    c = found.correlations
    assert c.spearman == pytest.approx(stats.spearmanr(products, data.scores).statistic)
    assert c.pearson == pytest.approx(stats.pearsonr(products, data.scores).statistic)
    for variant in "bc":
        expected = stats.kendalltau(products, data.scores, variant=variant).statistic
        assert getattr(c, f"kendall_{variant}") == pytest.approx(expected)
    low, high = found.interval("spearman")
    assert -1 <= low < c.spearman < high <= 1
    assert found.pairs.total == 20 * 30
    assert found.triplets.total == 40 * 38
    alike = np.square(units[data.first] - units[data.second]).sum(axis=1)[data.is_similar]
    assert found.uniformity.alignment == pytest.approx(alike.mean())
    distances = ((units[:, None] - units[None]) ** 2).sum(axis=-1)
    off = ~np.eye(len(units), dtype=bool)
    assert found.uniformity.uniformity == pytest.approx(np.log(np.exp(-2 * distances[off]).mean()))
    assert not found.failed
    assert found.as_json()["triplets"]["total"] == 1520


@pytest.mark.parametrize("content", ["", GROUPS, LABELS, PHRASES], ids=lambda text: text[:9])
def test_every_measure_is_explained_and_in_tables_and_json(content: str) -> None:
    data = read(content) if content else many_pairs()
    measured = measure(data, drawn(data), MeasureSettings(measures=data.measures, resamples=200))
    for name in set(data.measures) - set(measured.failed):
        without = replace(measured, **{name: getattr(Measured(), name)})
        if name == "correlations":
            without = replace(without, resampled={})
        assert EXPLAINED[name]
        assert _words(without) != _words(measured), name
        assert without.as_json() != measured.as_json(), name


def test_equal_scores_have_no_correlation_and_say_so() -> None:
    data = read("sentence1,sentence2,score\na,b,3\nc,d,3\ne,f,3\n")
    with pytest.raises(NeuralvizError, match="All scores are equal"):
        check_measures(data, MeasureSettings(("correlations",)))
    found = measure(data, drawn(data), MeasureSettings(("correlations",)))
    assert "All scores are equal" in found.failed["correlations"]
    same = read(PAIRS)
    found = measure(same, np.ones((len(same.texts), 2)), MeasureSettings(("correlations", "pairs")))
    assert "All cosine similarities are equal" in found.failed["correlations"]
    assert found.as_json()["spearman"] is None
    assert (found.pairs.wrong, found.pairs.wrong_strict) == (4, 0)


def test_a_measure_that_fails_leaves_the_others() -> None:
    data = read("sentence1,sentence2,score\na,b,3\nc,d,2.5\ne,f,2.1\ng,h,4.1\n")
    assert check_measures(data, MeasureSettings()) == data.by_default
    found = measure(data, drawn(data), MeasureSettings(resamples=0))
    assert found.correlations is not None
    assert set(found.failed) == {"pairs", "triplets"}
    assert "Change the thresholds" in found.failed["pairs"]


def test_measures_that_the_data_are_not_made_for() -> None:
    with pytest.raises(SettingsError, match="cannot be used for correlations"):
        check_measures(read(GROUPS), MeasureSettings(("correlations",)))
    with pytest.raises(SettingsError, match="cannot be used for neighbours"):
        measure(read(GROUPS), np.eye(5), MeasureSettings(("neighbours",)))
    for content, said in (
        ("text,group\na,1\nb,1\nc,1\n", "All texts are in one group"),
        ("text,group\na,1\nb,2\nc,3\n", "has only one text"),
        ("text,label\na,1\nb,1\nc,1\n", "All texts have the same label"),
    ):
        with pytest.raises(NeuralvizError, match=said):
            check_measures(read(content), MeasureSettings())


def test_vectors_that_do_not_fit() -> None:
    data = read(GROUPS)
    with pytest.raises(NeuralvizError, match="4 vectors for the 5 different texts"):
        measure(data, np.eye(4))
    with pytest.raises(NeuralvizError, match="1 of 5 embeddings contain infinite or NaN"):
        measure(data, np.where(np.eye(5) * np.arange(5) == 4, np.nan, 1.0))


def test_products_and_alignment_are_of_anchors_with_others() -> None:
    """Documents at one end, summaries at another: nothing is alike but anchors and others are."""
    rows = "".join(
        f"d{i},{i},anchor\n" + "".join(f"s{i}.{k},{i},\n" for k in range(3)) for i in range(4)
    )
    data = read("text,group,role\n" + rows)
    vectors = np.array([[1.0, 0] if text[0] == "d" else [0, 1] for text in data.texts])
    found = measure(data, vectors)
    assert (found.triplets.same, found.triplets.diff) == (0, 0)
    assert (len(found.same), len(found.diff)) == (12, 36)
    assert not found.same.any()
    assert not found.diff.any()
    assert found.uniformity.alignment == pytest.approx(2)


@pytest.mark.parametrize("with_anchors", [False, True])
def test_pairs_that_are_alike_are_limited(with_anchors: bool) -> None:
    group = np.repeat([0, 1], 1600)
    anchor = np.arange(len(group)) % 2 == 0 if with_anchors else None
    pairs = alike_pairs(group, anchor, 0)
    assert len(pairs) == MAX_ALIKE  # of 1,280,000 with anchors, of 2,558,400 without
    assert (group[pairs[:, 0]] == group[pairs[:, 1]]).all()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert abs(group[pairs[:, 0]].mean() - 0.5) < 0.01
    if anchor is not None:
        assert anchor[pairs[:, 0]].all()
        assert not anchor[pairs[:, 1]].any()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text,label\na,x\nb,x\nc,y\nd,x\n", (3, 3)),
        ("text,group\na,x\nb,x\nc,y\nd,x\n", (3, 3)),
        ("text,group,role\na,x,anchor\nb,x,\nc,x,\nd,y,anchor\ne,y,\n", (3, 3)),
        (PAIRS, (2, 2)),
    ],
)
def test_each_pair_of_texts_counts_once(content: str, expected: tuple[int, int]) -> None:
    data = read(content)
    assert count_kinds(data) == expected
    products = measure(data, np.eye(len(data.texts)), MeasureSettings())
    assert (len(products.same), len(products.diff)) == expected


def test_what_was_published_is_of_these_data_alone() -> None:
    scores = np.repeat([5.0, 3.0, 0.0], [338, 507, 534])  # as many as in the STS test
    places = np.arange(len(scores))
    texts = [f"{side} {i}" for side in "ab" for i in places]
    data = scored_data("sts.csv", texts[: len(scores)], texts[len(scores) :], scores)
    assert find_published(data, "neural") is None
    sts = replace(data, benchmark="stsb")
    neural = find_published(sts, "neural")
    assert (neural.model, neural.values["pairs.wrong"]) == ("bert-base-uncased", 17_893)
    assert neural.source == "Tables 1, 3 and 4"
    mean = find_published(sts, "mean", "all-MiniLM-L6-v2")
    triplets = [mean.values[f"triplets.{name}"] for name in ("wrong", "same", "shared")]
    assert triplets == [945, 0.84, 0.67]
    mpnet = find_published(sts, "mean", "sentence-transformers/all-mpnet-base-v2")
    assert (mpnet.model, mpnet.values["spearman"]) == ("all-mpnet-base-v2", 0.834)
    assert find_published(sts, "") is None
    other = find_published(replace(sts, dissimilar=3.0), "neural-B3")  # other pairs are dissimilar
    assert "pairs.wrong" not in other.values
    assert (other.values["triplets.wrong"], other.values["kendall_b"]) == (582, 0.471)
    assert other.source == "Tables 9 and 12"
    assert find_published(replace(data, benchmark="mrpc"), "neural") is None  # others were counted


def test_every_row_that_was_published_has_its_counts() -> None:
    lines = read_published()
    assert len(lines) == 3 * 19
    assert {row for _, row in lines} == {row for benchmark, row in lines if benchmark == "stsb"}
    for line in lines.values():
        for kind in ("pairs", "triplets"):
            if total := line[f"{kind}_total"]:
                assert 0 < int(line[f"{kind}.wrong"]) < int(total)
                assert 0 < float(line[f"{kind}.diff"]) < float(line[f"{kind}.same"]) < 1


def test_paraphrases_by_quality_and_fixed_values() -> None:
    data = read(PHRASES)
    vectors = np.zeros((len(data.texts), 2))
    vectors[:, 0] = 1
    for phrase, place in enumerate(data.generated):  # the product rises with the value
        vectors[place] = [1, 1 - data.values[phrase]]
    lexical, semantic = measure(data, vectors).paraphrases
    assert (lexical.quality, semantic.quality) == ("lexical", "semantic")
    assert lexical.fixed1.tolist() == [0.1]
    assert lexical.fixed2.tolist() == [0.1, 0.9]
    np.testing.assert_allclose(lexical.kendall_c, 1)
    assert lexical.n.tolist() == [[4, 4]]


def test_ratios_are_cut_and_left_out_where_they_say_nothing() -> None:
    axis = np.array([0.1])
    values = [np.array([[value]]) for value in (0.4, 0.8, 0.1, -0.2, np.nan)]
    maps = [QualityMap("lexical", axis, axis, value, np.ones((1, 1))) for value in values]
    assert maps[0].ratio(maps[1])[0, 0] == pytest.approx(0.5)
    assert maps[1].ratio(maps[2])[0, 0] == 1.5
    assert np.isnan(maps[0].ratio(maps[3])[0, 0])
    assert np.isnan(maps[4].ratio(maps[0])[0, 0])


def test_overlaps_of_pairs_and_triplets() -> None:
    data = many_pairs()
    found, failed = overlaps(data, [drawn(data, 0), drawn(data, 1)])
    assert not failed
    assert set(found) == {"triplets", "pairs"}
    for number in range(2):
        counted = measure(data, drawn(data, number), MeasureSettings(resamples=0))
        assert found["triplets"].shared[number, number] == counted.triplets.wrong
        assert found["pairs"].shared[number, number] == counted.pairs.wrong
    assert overlaps(read(LABELS), [np.eye(4)] * 2) == ({}, {})


def table_of(content: str) -> Table:
    return read_table(Source("own.csv", content.encode()))


def guess_roles(table: Table) -> tuple[str, dict[str, str]]:
    kind = guess_kind(table)
    return kind, guess_columns(kind, table)


LONG = ["The river rose.", "A dog barks.", "It rains again.", "We ate bread."]


@pytest.mark.parametrize(
    ("heads", "row", "kind", "roles"),
    [
        ("nr,left,right,gold", "{i},{text} {i},{text} again {i},{x}", "pairs",
         {"text1": "left", "text2": "right", "score": "gold"}),
        ("left,right,year,relatedness", "{text} {i},{text} again {i},{y},{x}", "pairs",
         {"text1": "left", "text2": "right", "score": "relatedness"}),
        ("nr,review,stars", "{i},{text} {i},{x}", "labels", {"text": "review", "label": "stars"}),
        ("headline,body,section", "{text} {i},{text} is what happened {i},{label}", "labels",
         {"text": "body", "label": "section"}),
        ("summary,remark,section", "{text} {i},{text} It did. {i},{label}", "labels",
         {"text": "summary", "label": "section"}),
        ("text,group", "{text} {i},{label}", "groups", {"text": "text", "group": "group"}),
        ("sentence1,sentence2,score", "{i},{i},{x}", "pairs",
         {"text1": "sentence1", "text2": "sentence2", "score": "score"}),
        ("text,section", "{text} {i},{label}", "labels", {"text": "text", "label": "section"}),
        # data sets that many know
        ("pair_ID,entailment_label,sentence_A,sentence_B,relatedness_score",
         "{n},{n},{text} {i},{text} too {i},{b}", "pairs",
         {"text1": "sentence_A", "text2": "sentence_B", "score": "relatedness_score"}),
        ("id,qid1,qid2,question1,question2,is_duplicate",
         "{n},{n},{n},{text} {i},{text} too {i},{b}", "pairs",
         {"text1": "question1", "text2": "question2", "score": "is_duplicate"}),
        ("#1 ID,#2 ID,#1 String,#2 String,Quality", "{n},{n},{text} {i},{text} too {i},{b}",
         "pairs", {"text1": "#1 String", "text2": "#2 String", "score": "Quality"}),
        ("genre,year,Sentence 1,Sentence 2,Similarity Score",
         "{n},{n},{text} {i},{text} too {i},{b}", "pairs",
         {"text1": "Sentence 1", "text2": "Sentence 2", "score": "Similarity Score"}),
    ],
)  # fmt: skip
def test_columns_are_guessed(heads: str, row: str, kind: str, roles: dict[str, str]) -> None:
    lines = [
        row.format(i=i, text=LONG[i % 4], x=i % 5, y=2000 + i % 7, label=f"l{i % 3}", b=i % 2,
                   n=7 * i + 40)
        for i in range(24)
    ]  # fmt: skip
    assert guess_roles(table_of("\n".join([heads, *lines]))) == (kind, roles)


@pytest.mark.parametrize(
    ("missing", "form"), [("n/a", "{}"), ("-", "{} %"), ("?", "{},5"), ("not rated", "{}")]
)
def test_scores_of_which_some_are_missing_are_scores(missing: str, form: str) -> None:
    scores = [missing if i % 12 == 5 else form.format(i % 5) for i in range(48)]
    rows = [f"{i}\t{LONG[i % 4]} {i}\t{LONG[i % 4]} too {i}\t{s}" for i, s in enumerate(scores)]
    table = read_table(Source("p.tsv", "\n".join(["nr\tleft\tright\tgold", *rows]).encode()))
    roles = {"text1": "left", "text2": "right", "score": "gold"}
    assert guess_roles(table) == ("pairs", roles)
    data = make_data("p.tsv", table, roles)
    assert isinstance(data, ScoredData)
    plain = [float(s.strip(" %").replace(",", ".")) for s in scores if s != missing]
    assert data.scores.tolist() == plain
    assert "Skipped 4 rows: “gold” is not a number" in " ".join(data.notes)


def test_classes_and_numbers_of_pairs_are_no_scores() -> None:
    rows = [f"{7 * n % 40},a text of {n} words,the other of {n},{n % 3}" for n in range(12)]
    table = table_of("\n".join(["pair_ID,sentence1,sentence2,label", *rows]))
    assert guess_roles(table) == ("labels", {"text": "sentence1", "label": "label"})
    two = [row[:-1] + str(int(row[-1]) % 2) for row in rows]
    table = table_of("\n".join(["pair_ID,sentence1,sentence2,label", *two]))
    named = {"text1": "sentence1", "text2": "sentence2", "score": "label"}
    assert guess_roles(table) == ("pairs", named)


@pytest.mark.parametrize(
    ("scores", "scale", "bounds", "said"),
    [
        ([0, 1.5, 3, 5], (0, 5), (4, 2), ""),
        ([1, 2, 4, 5], (1, 5), (4.2, 2.6), "range from 1 to 5"),
        ([0, 0.5, 1], (0, 1), (0.8, 0.4), ""),
        ([0, 30, 60, 100], (0, 100), (80, 40), "between 0 and 100"),
        ([-0.9, 0, 0.95], (-1, 1), (0.6, -0.2), "between −0.9 and 0.95"),
        ([1, 3, 6, 7], (1, 7), (5.8, 3.4), "between 1 and 7"),
        ([1, 2.5, 9.5], (1, 10), (8.2, 4.6), "range from 1 to 10"),
        ([2.5, 4.5, 9.5], (0, 10), (8, 4), "range from 0 to 10"),
        ([1.5, 3, 4.8], (0, 5), (4, 2), "range from 0 to 5"),
        ([-5, -2, 0], (-5, 0), (-1, -3), "from −5 to 0"),
        ([3, 3, 3], (0, 5), (4, 2), ""),
    ],
)
def test_thresholds_and_training_follow_one_scale_of_the_scores(
    scores: list[float], scale: tuple[float, float], bounds: tuple[float, float], said: str
) -> None:
    of = Scale.from_scores(np.array(scores, float))
    assert (of.low, of.high) == scale
    assert of.scores(of.shares(np.array(scores))) == pytest.approx(scores)
    assert of.scores(np.array([0.8, 0.4])) == pytest.approx(bounds)
    texts = [str(i) for i in range(len(scores))]
    data = scored_data("p.csv", texts, [f"{t} too" for t in texts], np.array(scores, float))
    assert (data.similar, data.dissimilar) == pytest.approx(bounds)
    assert said in " ".join(data.notes)
    assert len(data.notes) == bool(said)
    assert "≤ -" not in data.describe()
    own, half = Thresholds(max(scores), min(scores) - 1), Thresholds(max(scores) + 9)
    given = scored_data("p.csv", texts, texts, np.array(scores, float), thresholds=own)
    assert given.notes == ()
    given = scored_data("p.csv", texts, texts, np.array(scores, float), thresholds=half)
    assert "80%" not in " ".join(given.notes)


def test_repeated_pairs_are_told_and_numbered_in_either_order() -> None:
    first, second = ["a", "b", "a", "c", "d"], ["b", "a", "b", "c", "a"]
    assert number_pairs(first, second).tolist() == [0, 0, 0, 1, 2]
    data = scored_data("p.csv", first, second, [0, 1, 5, 5, 4])
    assert data.numbers.tolist() == [0, 0, 0, 1, 2]
    said = "2 pairs repeat the texts of another pair. Intervals count such pairs as one."
    assert data.notes == (said,)
    rows = "".join(f"{a},{b},{n}\n" for n, (a, b) in enumerate(zip(first, second, strict=True)))
    pairs = read_pairs(Source("p.csv", f"sentence1,sentence2,score\n{rows}".encode()))
    assert pairs.notes == (said,)


def test_labels_that_no_two_texts_share_are_refused() -> None:
    labels = [f"{9 + n}.95" for n in range(30)]
    data = labelled_data("p.csv", [f"text {n}" for n in range(30)], labels)
    with pytest.raises(NeuralvizError, match="All 30 labels are different, as ids or measurements"):
        check_measures(data, MeasureSettings())


def test_a_label_that_is_too_rare_to_be_voted_for_is_told_with_its_cause() -> None:
    labels = ["a"] * 15 + ["b"] * 13 + ["c"] * 2
    data = labelled_data("p.csv", [f"text {n}" for n in range(30)], labels)
    assert measure(data, drawn(data), MeasureSettings(("neighbours",))).notes == (
        "The rarest label has 2 texts, so at most 1 of 10 neighbours can share it. Leave out "
        "rare labels, or use fewer neighbours.",
    )


def test_texts_without_a_label_do_not_count() -> None:
    data = labelled_data("p.csv", ["one", "two", "three", "one"], ["x", "", "y", "x"])
    assert (data.texts, data.labels) == (("one", "three"), ("x", "y"))
    assert data.notes == ("Skipped 1 row: duplicate text and label.",)


def test_a_saved_corpus_is_labelled_data(tmp_path: Path) -> None:
    store = CorpusStore(tmp_path)
    texts = tuple(f"text {i}" for i in range(8))
    read = ReadTexts(texts, labels={"kind": ("a", "b", "", "a") * 2, "n": ("1", "2") * 4})
    corpus = store.add("mine", read)
    data = corpus_data(store, corpus, "kind", "labels", max_rows=100)
    assert isinstance(data, LabelledData)
    assert data.name == "mine, kind"
    assert data.labels == ("a", "b", "a", "a", "b", "a")
    assert data.notes == ("Skipped 2 texts without a label.",)
    few = corpus_data(store, corpus, "n", "groups", max_rows=5)
    assert isinstance(few, GroupedData)
    assert len(few.rows) == 5
    assert few.notes == ("Using the first 5 of 8 texts.",)
    assert corpus_data(store, corpus, "n", "labels", max_rows=9).labels[:2] == ("1", "2")
