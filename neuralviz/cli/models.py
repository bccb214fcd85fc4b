"""Commands that list, inspect, export and delete models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from huggingface_hub import errors, scan_cache_dir

import neuralviz.models
from neuralviz.cli.console import confirm_deleting, print_message, printable, status
from neuralviz.cli.options import YesOption
from neuralviz.errors import ModelError
from neuralviz.models.shared import delete_encoder, shared_model, trained_encoder, trained_encoders
from neuralviz.training.similarity.kept import (
    delete_similarity_model,
    is_similarity_model,
    model_path,
    similarity_models,
)
from neuralviz.training.similarity.settings import RUNG_NAMES

commands = typer.Typer(
    help="List, inspect, export and delete models.", no_args_is_help=True, add_completion=False
)


@commands.command("list")
def list_models() -> None:
    """List the models available offline."""
    typer.echo("bundled\n  6 layers, width 384, uncased English; included")
    typer.echo(
        "all-MiniLM-L6-v2\n  6 layers, width 384, uncased English; included; a sentence "
        "encoder, so it cannot be micro-tuned"
    )
    for encoder in trained_encoders():
        model = printable(str(encoder.record.get("model", "?")))
        typer.echo(f"{encoder.name}\n  trained here, from {model}; cannot be micro-tuned")
    for scorer in similarity_models():
        frozen = printable(scorer.model)
        typer.echo(
            f"{scorer.name}\n  similarity model over {frozen}, {RUNG_NAMES[scorer.rung]}; for "
            "`neuralviz score`"
        )
    for name, size in _cached_models():
        typer.echo(f"{name}\n  downloaded, {size}")
    typer.echo(
        "\nYou can also use any masked language model by its Hugging Face Hub ID, such "
        "as\nbert-base-uncased, or from a folder."
    )


def _cached_models() -> Iterator[tuple[str, str]]:
    try:
        repositories = scan_cache_dir().repos
    except (errors.CacheNotFound, OSError):
        return
    for repository in sorted(repositories, key=lambda r: r.repo_id):
        for revision in repository.revisions:
            files = {file.file_name: file.file_path for file in revision.files}
            if "config.json" not in files or not any(n.endswith(".safetensors") for n in files):
                continue
            try:
                config = json.loads(files["config.json"].read_text("utf-8"))
            except (OSError, ValueError):
                continue
            if any("ForMaskedLM" in str(name) for name in config.get("architectures") or ()):
                yield repository.repo_id, repository.size_on_disk_str
                break


@commands.command("delete")
def delete(
    name: Annotated[str, typer.Argument(help="Name of a model that was trained here.")],
    yes: YesOption = False,
) -> None:
    """Delete a trained encoder or similarity model. Embeddings computed with it are kept."""
    is_encoder = trained_encoder(name) is not None
    is_similarity = not is_encoder and is_similarity_model(name)
    kind = "similarity model" if is_similarity else "encoder"
    if (is_encoder or is_similarity) and not yes:
        confirm_deleting(f"Delete the {kind} “{name}”?")
    (delete_similarity_model if is_similarity else delete_encoder)(name)
    print_message(f"Deleted the {kind} “{name}”.")


@commands.command("layers")
def list_layers(
    model: Annotated[
        str, typer.Argument(help=("Model: “bundled”, a Hugging Face Hub ID, or a folder."))
    ] = "bundled",
) -> None:
    """List the layers of a model that can be micro-tuned (its 1-D parameters), by block."""
    loaded = shared_model(model)
    heading = None
    for layer in loaded.layers:
        if layer.block_name != heading:
            heading = layer.block_name
            typer.echo(heading)
        marks = "  [head]" * (layer.name in loaded.head_layers)
        marks += "  [last_block]" * (layer.name in loaded.last_block_layers)
        typer.echo(f"  {layer.size:>6}  {layer.name}{marks}")
    typer.echo(
        "\n[head] layers are tuned by default; `last_block` selects the layers marked [last_block]."
    )


@commands.command("export")
def export(
    model: Annotated[
        str,
        typer.Argument(
            help=(
                "Model: “bundled”, “all-MiniLM-L6-v2”, the name of a trained encoder, a Hugging "
                "Face Hub ID, or a folder."
            )
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Output folder, new or empty.")],
) -> None:
    """Export a model in float32, as a folder that `transformers` can load.

    A sentence encoder becomes a folder that `sentence-transformers` can load.
    """
    if trained_encoder(model) is None and is_similarity_model(model):
        raise ModelError(
            f"“{model}” is a similarity model: a small network over the layers of a frozen model, "
            f"which only `neuralviz score` can use. It is the file {model_path(model)}; copy that."
        )
    with status(f"Exporting {model} …"):
        written = neuralviz.models.export(model, folder)
    print_message(f"Exported “{model}” to {written}.")
