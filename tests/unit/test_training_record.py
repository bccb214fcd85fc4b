"""A training as it is watched: folded in any portions, written and read, carried out by a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuralviz.errors import Stopped
from neuralviz.jobs.training import LOOKS_FIRST, TrainOnCorpus, recorded_lessons
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef
from neuralviz.plots.training import accuracy_by_step_figure, moving_map_figure
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.loop import train
from neuralviz.training.record import (
    LESSONS_FORMAT,
    Lesson,
    Snapshot,
    Watch,
    kept_neighbours,
    make_change,
    new_neighbours,
)
from tests.support.trained import CORPUS
from tests.unit.test_training import FEW

LABELS = ["odd" if i % 2 else "even" for i in range(12)]


@pytest.fixture(scope="module")
def events(tiny: LanguageModel) -> list:
    watched = train(tiny, CORPUS, FEW, watch=Watch(CORPUS, LABELS), watch_every=2)
    return [make_change(event) for event in watched]


def same(first: Lesson, second: Lesson) -> bool:
    return LESSONS_FORMAT.pack([first]) == LESSONS_FORMAT.pack([second])


def test_events_fold_in_any_portions_and_come_back_from_a_file(events: list) -> None:
    together = Lesson(FEW).having(events)
    alone = Lesson(FEW)
    for event in events:
        alone = alone.having([event])
    assert same(together, alone)
    assert (together.step, together.steps, together.is_over) == (6, 6, True)
    assert together.accuracy.shape == (4, 4)
    assert [one.step for one in together.snapshots] == [0, 2, 4, 6]
    assert np.isfinite(together.curves).all()
    first = replace(together.snapshots[0], accuracy=None, right=None)
    unmeasured = replace(together, snapshots=(first,))
    back = LESSONS_FORMAT.unpack(LESSONS_FORMAT.pack((together, unmeasured, Lesson(FEW))))
    assert same(back[0], together)
    assert back[0].settings == FEW
    assert back[1].snapshots[0].accuracy is None
    assert back[2].step == 0


def test_two_encoders_are_trained_a_step_in_turn_and_go_on_where_they_were(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    corpus = CorpusStore().add("mine", ReadTexts(tuple(CORPUS), labels={"kind": tuple(LABELS)}))
    settings = (FEW, replace(FEW, pairs="dropout"))
    task = TrainOnCorpus(ModelRef.from_id(str(bert_folder)), corpus.id, "kind", settings, 10, 3)

    seen = []
    with pytest.raises(Stopped):
        for event in task.events(lambda: len(seen) >= 7):
            seen.append(event)
    result = task.fold(task.start(), seen)
    assert [lesson.step for lesson in result] == [3, 2]
    assert [number for number, _ in seen][:4] == [0, 1, 0, 1]
    assert [[one.step for one in lesson.snapshots][:1] for lesson in result] == [[0], [0]]

    ended = task.fold(task.start(), list(task.events(lambda: False)))
    assert [lesson.step for lesson in ended] == [6, 6]
    assert [int(np.isnan(lesson.curves[:, 1]).sum()) for lesson in ended] == [3, 2]
    assert task.progress(ended).share == 1
    assert [one.maps.shape for one in ended if one.maps is not None] == [(2, 10, 2), (3, 10, 2)]
    assert [[one.step for one in lesson.snapshots] for lesson in ended] == [[0, 6], [0, 3, 6]]
    assert task.progress(task.start()).total == 0
    said = [task.progress(task.fold(task.start(), seen[:n])) for n in (2, 3, 4, 6)]
    assert [one.is_last for one in said] == [False, False, False, True]  # once both were looked at
    doing = [one.doing for one in said]
    assert doing == ["Step 0 of 6", "Step 1 of 6", f"Step 1 of 6. {LOOKS_FIRST}", "Step 1 of 6"]
    back = task.unpack(task.pack(ended))
    assert all(map(same, back, ended))


@pytest.mark.parametrize(
    ("n", "length", "labels", "n_watched", "measured"),
    [
        (3, 4000, None, 3, "Measured on all 3 texts, read whole."),
        (1200, 100, None, 1000, "Measured on 1,000 of 1,200 texts, read whole."),
        (1200, 2000, ["a", "b", ""], 500, "Measured on 500 of 800 texts with a label, read whole."),
        (
            120, 50_000, ["a", "b"], 100,
            "Measured on 100 of 120 texts with a label, the first 10,000 characters of each.",
        ),
        (2, 900_000, None, 2, "Measured on all 2 texts, the first 500,000 characters of each."),
    ],
)  # fmt: skip
def test_a_watch_reads_texts_whole_and_a_million_characters_at_most(
    n: int, length: int, labels: list[str] | None, n_watched: int, measured: str
) -> None:
    class Reader:
        def of_layers(self, texts: list[str], should_stop: object, *, is_whole: bool) -> list:
            self.read = texts
            return [np.random.default_rng(0).normal(size=(len(texts), 4)).astype(np.float32)]

    texts = [f"{number:09} {'word ' * (length // 5 - 2)}" for number in range(n)]
    assert {len(text) for text in texts} == {length}
    reader = Reader()
    watch = Watch(texts, labels and (labels * n)[:n])
    assert len(watch.look(reader, 0).vectors) == n_watched == len(watch.watched)
    assert watch.measured == measured
    assert sum(map(len, reader.read)) <= 1_000_000
    if "whole" in measured:
        assert reader.read == [texts[i] for i in watch.watched]
    Watch(texts, n_texts=2000, characters=None).look(reader, 0)
    assert reader.read == texts


def test_texts_with_new_neighbours_are_named_with_the_nearest_before_and_now() -> None:
    near = (np.arange(200)[:, None] + np.arange(1, 11)) % 200  # the ten that follow
    far, moved = (near + 100) % 200, near.copy()
    moved[7] = far[7]

    def after(nearest: np.ndarray) -> Lesson:
        seen = (Snapshot(0, None, None, near), Snapshot(12, None, None, nearest))
        return Lesson(FEW, snapshots=seen)

    (one,) = new_neighbours(after(moved), 5)
    assert (one.text, one.kept, one.before, one.after) == (7, 0, 8, 108)
    assert not kept_neighbours(after(far)).any()
    assert len(new_neighbours(after(far), 5)) == 5
    assert new_neighbours(after(near), 5) == []


def test_a_map_leads_from_where_a_text_was_to_where_it_is() -> None:
    maps = np.arange(12.0).reshape(3, 2, 2)
    way, ring, dot, *rest = moving_map_figure(maps, 2, [0, 5, 9], ["a", "b"], ["x", "y"], [1]).data
    assert (list(way.x), list(way.y)) == ([2, 10], [3, 11])
    assert (list(ring.x), list(dot.y)) == ([2], [11])
    assert ring.name == "before training"
    assert len(rest) == len(moving_map_figure(maps, 0, [0, 5, 9], ["a", "b"], ["x", "y"], [1]).data)


def test_the_accuracies_before_and_after_are_written_and_steps_end_with_the_last() -> None:
    crops, dropout = known = recorded_lessons()
    figure = accuracy_by_step_figure(known, "chapter")
    assert [line.text[-1] for line in figure.data] == ["crops<br>63%", "dropout<br>58%"]
    written = [note.text for note in figure.layout.annotations]
    assert written == ["59%"]
    assert figure.layout.xaxis.tickvals[-1] == crops.steps == dropout.steps
