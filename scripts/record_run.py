"""Remake the recorded run that the Micro-tuning page opens with: sample_data/recorded_run.npz."""

from __future__ import annotations

import argparse
from pathlib import Path

import neuralviz
from neuralviz.micro_tuning import check_settings
from neuralviz.micro_tuning.events import RUN_FORMAT, RunRecord
from neuralviz.micro_tuning.watching import watch

TEXTS = (
    "She sat on the bank of the river and watched the boats.",
    "He rested at the river's edge and looked at the ships.",
    "The bank has raised its interest rates again.",
)
TARGET = Path(__file__).parents[1] / "sample_data" / "recorded_run.npz"


def record_run() -> RunRecord:
    """The bundled model on the texts, with the default settings."""
    model = neuralviz.load_model("bundled")
    settings = check_settings(model)
    return RunRecord(model.id, settings, TEXTS).having(list(watch(model, TEXTS, settings)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    output = parser.parse_args().output
    output.write_bytes(RUN_FORMAT.pack(record_run()))
    print(f"{output.name}: {output.stat().st_size / 1024:.0f} KB")
