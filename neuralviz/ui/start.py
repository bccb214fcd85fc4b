"""Starts the app with ``python -m neuralviz.ui.start``, once Streamlit knows all its options."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click
from streamlit.web import cli

from neuralviz.paths import app_folder

REFUSED = 2


def main() -> None:
    """Check the options of this process, then serve until the server ends."""
    arguments = [str(app_folder() / "app.py"), *sys.argv[1:]]
    sentence = refusal(arguments)
    if sentence:
        print(sentence, file=sys.stderr)
        raise SystemExit(REFUSED)
    cli.main(["run", *arguments], prog_name="streamlit")


def refusal(arguments: list[str]) -> str:
    """Why ``streamlit run`` would not take some arguments; empty where it would."""
    try:
        surplus = cli.main_run.make_context("neuralviz app", list(arguments)).params["args"]
    except click.NoSuchOption as error:
        closest = get_close_matches(error.option_name, error.possibilities or (), n=1)
        hint = f"Did you mean {closest[0]}?" if closest else _ALL_OPTIONS
        return f"neuralviz app has no option {error.option_name}. {hint}"
    except click.UsageError as error:
        return error.format_message()
    except SystemExit as error:  # an option that may not be given on the command line
        return f"{error.code}."
    return (
        f"neuralviz app does not know what “{surplus[0]}” means. {_ALL_OPTIONS}" if surplus else ""
    )


_ALL_OPTIONS = (
    "`neuralviz app --help` lists the options. Those of `streamlit run` may follow, such as "
    "`--server.headless true`, which opens no browser."
)

if __name__ == "__main__":
    main()
