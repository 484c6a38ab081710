"""Runs notebooks by nbclient, in place, and keeps what they put out: python tools/executed.py
examples/pymc_factor_model.ipynb.

What libraries say on stderr, and names of kernels and versions, are left out. Needs nbclient,
nbformat, ipykernel and what the notebook imports."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def executed(path):
    """Writes the notebook with the outputs of a run from top to bottom."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=1800, kernel_name="python3").execute()
    for at, cell in enumerate(book.cells):
        cell.metadata, cell.id = {}, f"{path.stem}-{at}".replace("_", "-")
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    book.metadata = {"kernelspec": KERNEL}
    nbformat.validate(book)
    nbformat.write(book, path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        executed(Path(name))
