"""Pages of docs that are followed literally on a copy of the tree.

They mark what goes where (``<!-- new file: ... -->``, ``<!-- last line: ... -->``,
``<!-- before "...": ... -->``); what is marked ``<!-- session -->`` is run on the copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MARKED = re.compile(r"<!-- (.+?) -->\n```\w+\n(.*?)```\n", re.DOTALL)

# Runs the session that it reads as a doctest.
SESSION = """
import doctest, sys
test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, 'page', 'page', 0)
sys.exit(doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed)
"""


def session(page):
    text = "".join(c for mark, c in MARKED.findall(page.read_text("utf-8")) if mark == "session")
    assert ">>> " in text
    return text


def blocks(pages):
    return [match for page in pages for match in MARKED.findall(page.read_text(encoding="utf-8"))]


def follow(root, mark, code):
    """Does one step of a page; gives the file it touched, or None for a session."""
    if mark == "session":
        return None
    how, name = re.fullmatch(r"(new file|last line|before \".*\"): (\S+)", mark).groups()
    path = root / name
    if how == "new file":
        assert not path.exists()
        path.write_text(code, encoding="utf-8")
        return name
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = len(lines)
    if how != "last line":
        found = [i for i, line in enumerate(lines) if how[len('before "') : -1] in line]
        assert len(found) == 1, f"{name} has {len(found)} lines with {how}"
        at = found[0]
    path.write_text("".join(lines[:at]) + code + "".join(lines[at:]), encoding="utf-8")
    return name


def tool(name):
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which(name, path=here)


def run(*command, **more):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, **more
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout + done.stderr
