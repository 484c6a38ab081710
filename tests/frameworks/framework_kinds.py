"""The kinds of tests/gradients, made by another module: one that is added there is tested here."""

import importlib.util
from pathlib import Path

_SOURCE = Path(__file__).parents[1] / "gradients" / "test_gradients_of_kinds.py"


def tables(kinds):
    """The module of tests/gradients with its kinds made by `kinds`."""
    spec = importlib.util.spec_from_file_location(f"kinds_by_{kinds.__name__}", _SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.pl = kinds
    return module
