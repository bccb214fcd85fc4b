"""Remake the training that the Training page opens with: sample_data/recorded_training.npz.

python scripts/record_training.py

To be run after a change of the example, of the bundled weights, of the page's settings,
or of the training; a test says when. It takes a minute.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from neuralviz.headlines.training import describe_lessons
from neuralviz.jobs.training import RECORDED, add_textbooks, example_training
from neuralviz.paths import sample_data
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.record import LESSONS_FORMAT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--home", type=Path, help="folder of checkpoints, to go on another time")
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        os.environ["NEURALVIZ_HOME"] = str(args.home or folder)
        store = CorpusStore()
        corpus = add_textbooks(store)
        task = example_training(corpus, store.texts(corpus))
        lessons = task.start()
        for event in task.events(lambda: False):
            lessons = task.fold(lessons, [event])
            print(f"\r{task.progress(lessons).doing}  ", end="", flush=True)
    path = sample_data() / RECORDED
    path.write_bytes(LESSONS_FORMAT.pack(lessons))
    print(f"\n{describe_lessons(lessons, task.labels)}")
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
