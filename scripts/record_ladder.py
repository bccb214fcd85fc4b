"""Remake the ladder that the page “Frozen features” opens with: sample_data/recorded_ladder.npz.

python scripts/record_ladder.py

To be run after a change of the example, of the defaults of `SimilaritySettings`, or of the
training; a test says when. It takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from safetensors.torch import load, save

from neuralviz.evaluation.ladder_results import LADDER_FORMAT
from neuralviz.headlines.layers import describe_best_layer, describe_ladder
from neuralviz.jobs.ladder import RECORDED, LookAtLayers, example_ladder
from neuralviz.paths import sample_data

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_results import Ladder, RungResult
    from neuralviz.jobs.task import Task


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    task = example_ladder()
    with TemporaryDirectory() as folder:
        os.environ["NEURALVIZ_HOME"] = folder
        seen = carried_out(LookAtLayers(task.model, task.pairs))
        climbed = carried_out(task)
    ladder = replace(
        climbed,
        layers=seen.layers,
        results={place: in_half(result) for place, result in climbed.results.items()},
    )
    path = sample_data() / RECORDED
    path.write_bytes(LADDER_FORMAT.pack(ladder))
    sentence, _ = describe_best_layer(ladder.layers, "spearman", "Spearman")
    print(f"\n{sentence}\n{describe_ladder(ladder)}")
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def carried_out(task: Task) -> Ladder:
    """What comes of a task, with its progress on the terminal."""
    ladder: Ladder = task.start()
    for event in task.events(lambda: False):
        ladder = task.fold(ladder, [event])
        print(f"\r{task.progress(ladder).doing}  ", end="", flush=True)
    return ladder


def in_half(result: RungResult) -> RungResult:
    """A result with weights of half precision, which take half the room and score alike."""
    weights = {name: value.half() for name, value in load(result.trained.weights).items()}
    return replace(result, trained=replace(result.trained, weights=save(weights)))


if __name__ == "__main__":
    main()
