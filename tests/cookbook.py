"""The recipes of docs/cookbook: read from its pages, run, and compared with what is written by
hand.

A page opens with a block that its recipes begin with; under each heading come the data (maybe),
what one writes with pylinop, and, folded, what one writes by hand. A name that ends in `_hand` is
the same number by hand. Used by tests/repo/test_cookbook.py and benchmarks/cookbook.py.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAGES = Path(__file__).resolve().parents[1] / "docs" / "cookbook"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
SUMMARY = re.compile(r"<details><summary>(By hand.*?)</summary>\n")


@dataclass
class Recipe:
    """One heading of a page. `hand` is "" where there is no way by hand worth writing."""

    page: Path
    title: str
    opening: str
    data: str
    ours: str
    hand: str

    @property
    def id(self):
        return f"{self.page.stem}-{re.sub('[^a-z]+', '-', self.title.lower())[:50]}"

    def run(self, part, names):
        exec(compile(getattr(self, part), f"{self.page.name}: {self.title}, {part}", "exec"), names)


def recipes():
    """All recipes, page by page; one may go on with the data of those before it."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        head, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M)
        if not sections:
            continue
        (opening,) = BLOCK.findall(head)
        for section in sections:
            title, _, text = section.partition("\n")
            before, _, folded = text.partition("<details>")
            blocks, hand = BLOCK.findall(before), BLOCK.findall(folded)
            assert 1 <= len(blocks) <= 2 and len(hand) <= 1, (
                f"{page.name}: {title} has {len(blocks)} blocks"
            )
            data = blocks[0] if len(blocks) == 2 else ""
            found.append(Recipe(page, title, opening, data, blocks[-1], hand[0] if hand else ""))
    return found


def pairs(names):
    """(name, ours, by hand) of every number that is there both ways."""
    for name in list(names):
        if name.endswith("_hand") and name[:-5] in names and not callable(names[name]):
            yield name[:-5], np.asarray(names[name[:-5]]), np.asarray(names[name])


def distance(ours, hand):
    """The largest difference over the largest number."""
    return float(np.abs(ours - hand).max() / np.abs(hand).max())
