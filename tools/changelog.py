"""One page of all that changed, from the notes in docs/changes.

    python tools/changelog.py [FILE]      prints it, or writes FILE

Notes are definition lists (docs/changes/README.md): a term, Added, Changed, Removed or Fixed, and
lines that begin with ": ". The page has the version, in it the terms, in them the subjects as the
notes' titles name them.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "docs" / "changes"
TERMS = ("Added", "Changed", "Removed", "Fixed")


def read(path):
    """(title, {term: [entry, ...]}) of one file of notes."""
    title, term, entries = "", None, {name: [] for name in TERMS}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            title = re.sub(r"^Issue \d+: ", "", line[2:])
        elif line in TERMS:
            term = line
        elif line.startswith(": "):
            if term is None:
                raise ValueError(f"{path.name}: an entry before any of {', '.join(TERMS)}")
            entries[term].append([line[2:]])
        elif line.strip() and term and entries[term]:
            entries[term][-1].append(line.strip())
        elif line.strip():
            raise ValueError(f"{path.name}: what is {line!r}?")
    return title, {term: [" ".join(parts) for parts in lines] for term, lines in entries.items()}


def page():
    """The page, for a folder beside docs/changes: the links of the notes hold in it as they are."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/pylinop/__init__.py").read_text())[1]
    numbered = sorted(
        (path for path in NOTES.glob("*.md") if path.stem.isdigit()), key=lambda p: int(p.stem)
    )
    notes = [read(path) for path in numbered]
    lines = ["# What changed", "", f"## {version}, not released", ""]
    for term in TERMS:
        lines += [f"### {term}", ""]
        for title, entries in notes:
            if entries[term]:
                lines += [f"**{title[0].upper()}{title[1:]}**", ""]
                lines += [f"- {entry}" for entry in entries[term]] + [""]
    return "\n".join(lines)


if __name__ == "__main__":
    text = page()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text)
