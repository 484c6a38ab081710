"""The pages of the tutorial as notebooks: python tools/notebooks.py FOLDER.

Text stays text; a block of code is a cell, without prompts and without what it printed. What is
meant to raise is a cell of its own, tagged so that "run all" goes on after it.
"""

import doctest
import json
import re
import sys
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial"
FENCE = re.compile(r"^```python\n(.*?)^```$\n?", re.M | re.S)


def cell(kind, text, **more):
    lines = text.strip("\n").splitlines(keepends=True)
    made = {"cell_type": kind, "metadata": {}, "source": lines, **more}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def code_cells(block):
    """One cell, or more where something in it is to raise."""
    examples = doctest.DocTestParser().get_examples(block)
    if not examples:
        return [cell("code", block)]
    cells, together = [], ""
    for example in examples:
        if not example.exc_msg:
            together += example.source
            continue
        cells += [cell("code", together)] if together else []
        cells.append(cell("code", example.source, metadata={"tags": ["raises-exception"]}))
        together = ""
    return cells + ([cell("code", together)] if together else [])


def notebook(page):
    """The page as a notebook of format 4.5."""
    cells, at, text = [], 0, page.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        cells += (
            [cell("markdown", text[at : block.start()])] if text[at : block.start()].strip() else []
        )
        cells += code_cells(block[1])
        at = block.end()
    if text[at:].strip():
        cells.append(cell("markdown", text[at:]))
    for i, made in enumerate(cells):
        made["id"] = f"{page.stem}-{i}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_all(folder):
    """Writes FOLDER/NAME.ipynb of each page; a file whose text is the same is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(TUTORIAL.glob("*.md")):
        text = json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"
        path = folder / f"{page.stem}.ipynb"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_all(Path(sys.argv[1]))
