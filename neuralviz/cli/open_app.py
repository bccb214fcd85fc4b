"""The command that opens the app."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from neuralviz.paths import app_folder
from neuralviz.server_settings import server_settings

commands = typer.Typer(add_completion=False)


@commands.command(
    "app", context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def open_app(
    context: typer.Context,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port. Default: 8501, or the next free one."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help=(
                "Address to listen on. Use 0.0.0.0 to make the app available to the whole network."
            )
        ),
    ] = "localhost",
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help=(
                "For a site that strangers use: small inputs, only the models that come with "
                "neuralviz, and nothing saved can be changed."
            ),
        ),
    ] = False,
) -> None:
    """Open the app in the browser.

    The options of `streamlit run` may follow, such as `--server.headless true` to open no browser.
    """
    if demo:
        os.environ["NEURALVIZ_DEMO"] = "1"
    server_settings()  # reports a wrong setting before anything starts
    command = [sys.executable, "-m", "streamlit", "run", str(app_folder() / "app.py")]
    command += [f"--server.address={host}"]
    command += [f"--server.port={port}"] if port else []
    os.execv(sys.executable, [*command, *context.args])
