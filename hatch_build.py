"""Puts the app into the wheel, inside the package, where `neuralviz/paths.py` finds it.

An editable install takes it from the checkout instead.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

APP = ("app.py", "pages", "sample_data", "licences", ".streamlit/config.toml")


class AppHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {path: f"neuralviz/_app/{path}" for path in APP}
