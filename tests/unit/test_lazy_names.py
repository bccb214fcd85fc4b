"""Names that packages import when they are first used."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "package",
    ["neuralviz", "neuralviz.embedders", "neuralviz.micro_tuning", "neuralviz.models"],
)
def test_every_name_of_a_package_is_found_and_no_other(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing
