"""The page on gradients lists what has them."""

import re
from pathlib import Path

import pylinop as pl

PAGE = Path(__file__).parents[2] / "docs" / "gradients.md"
_OF_OPERATIONS = {"Sum", "Product", "Scaled", "Power", "Inverse", "Part"}


def test_kinds():
    text = PAGE.read_text()
    listed = text[text.index("<!-- differentiable -->") : text.index("<!-- /differentiable -->")]
    named = set(re.findall(r"`(\w+)`", listed))
    kinds = {row["name"] for row in pl.kinds() if row["differentiable"]}
    assert named == kinds - _OF_OPERATIONS
