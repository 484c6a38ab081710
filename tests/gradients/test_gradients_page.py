"""The page on gradients lists what has them."""

import importlib.util
import re
from pathlib import Path

import pytest

import pylinop as pl

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gradients.md"
_OF_OPERATIONS = {"Sum", "Product", "Scaled", "Power", "Inverse", "Part"}


def test_kinds():
    text = PAGE.read_text()
    listed = text[text.index("<!-- differentiable -->") : text.index("<!-- /differentiable -->")]
    named = set(re.findall(r"`(\w+)`", listed))
    kinds = {row["name"] for row in pl.kinds() if row["differentiable"]}
    assert named == kinds - _OF_OPERATIONS


@pytest.mark.no_verify
def test_costs():
    spec = importlib.util.spec_from_file_location("costs", ROOT / "tools" / "gradient_costs.py")
    costs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(costs)
    text = PAGE.read_text()
    there = text[text.index(costs.START) : text.index(costs.END)].splitlines()[1:]
    assert there == costs.table().splitlines(), "run python tools/gradient_costs.py --write"
