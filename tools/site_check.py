"""Looks at the built site: dead links, long stretches without a heading, and each kind of page in
a browser.

    python tools/site_check.py [docs/_build/html] [--browser chromium] [--shots FOLDER]

Links are followed to files of the site and to the places in them; addresses elsewhere are not
asked for. With a browser (Debian: chromium), a page of each kind is laid out at three widths,
light and dark: nothing may be wider than the window, and what the site needs must lie in it.
Then the search is asked for what tests/wanted.py has: of twenty things nineteen must be among the
first ten results. --shots keeps the pictures.
"""

import argparse
import html
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from wanted import WANTED  # noqa: E402

SCREEN = 9000  # characters: a screenful of text is 3000 to 4000, tables more
WIDTHS = 390, 820, 1400
PAGES = (
    "index.html",
    "cookbook/covariances.html",
    "made/gallery.html",
    "made/kinds_in_pictures.html",
    "made/api.html",
    "made/api/pylinop.Toeplitz.html",
    "made/api/pylinop.cholesky.html",
    "kinds.html",
    "limits.html",
)
# Where text is a listing by nature: sources, tables printed from the library, indices.
LISTINGS = re.compile(
    r"^(genindex|py-modindex|search|made/examples/|rules|made/changelog|changes/|decisions|limits)"
)


class Page(html.parser.HTMLParser):
    """Links, anchors, and the longest stretch of text between two headings of an article."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors, self.longest, self.since = [], set(), 0, 0
        self.inside = self.code = 0

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        for key in ("href", "src"):
            if found.get(key) and tag in ("a", "link", "script", "img"):
                self.links.append(found[key])
        if tag == "article":
            self.inside += 1
        if re.fullmatch("h[1-6]|dt|summary|tr", tag):  # a row of a table is found by its first cell
            self.since = 0

    def handle_endtag(self, tag):
        if tag == "article":
            self.inside -= 1

    def handle_data(self, data):
        if self.inside:
            self.since += len(data.strip())
            self.longest = max(self.longest, self.since)


def read(root):
    """{path: Page} of the site."""
    pages = {}
    for path in sorted(root.rglob("*.html")):
        if "_static" in path.parts:  # the theme's own templates
            continue
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(root).as_posix()] = page
    return pages


def dead(root, pages):
    """(page, link) of every link within the site that leads nowhere."""
    for name, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith(("mailto:", "javascript:", "data:")):
                continue
            where = (
                (root / name).parent / urllib.parse.unquote(parts.path)
                if parts.path
                else root / name
            )
            where = where.resolve()
            if not where.exists():
                yield name, link
                continue
            target = (
                pages.get(where.relative_to(root).as_posix())
                if where.is_relative_to(root)
                else None
            )
            anchor = urllib.parse.unquote(parts.fragment)
            if target and anchor and anchor not in target.anchors:
                yield name, link


PROBE = """
<script>
const box = document.getElementById("here"), rows = [];
box.onload = () => {
  const page = box.contentDocument, root = page.documentElement;
  root.dataset.theme = root.dataset.mode = "MODE";
  const wide = [...page.querySelectorAll("article *")].filter(e => {
    const r = e.getBoundingClientRect();
    let up = e.parentElement;
    while (up && getComputedStyle(up).overflowX === "visible") up = up.parentElement;
    return r.right > WIDTH + 1 && (!up || up === root || up === page.body);
  });
  document.title = JSON.stringify({
    width: root.scrollWidth,
    wide: wide.slice(0, 3).map(e => e.tagName + "." + e.className),
    broken: [...page.images].filter(i => !i.naturalWidth).map(i => i.src),
    search: !!page.querySelector("form.bd-search, .search-button, .search-button__button"),
    theme: !!page.querySelector(".theme-switch-button"),
    ink: getComputedStyle(page.body).color, paper: getComputedStyle(page.body).backgroundColor,
  });
};
</script>
"""


def ask(browser, place, page, *flags):
    """What the browser prints; a fresh profile, no network."""
    common = "--headless=new --no-sandbox --disable-gpu --hide-scrollbars".split()
    common += "--allow-file-access-from-files --disable-web-security".split()
    common += [f"--user-data-dir={place}/profile", "--virtual-time-budget=5000"]
    command = [browser, *common, *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    return done.stdout, done.stderr


def laid_out(browser, url, width, place, mode, shot):
    """What a page says of itself in a frame of that width: windows are never narrower than 500."""
    probe = place / "probe.html"
    script = PROBE.replace("WIDTH", str(width)).replace("MODE", mode)
    frame = (
        f'<iframe id="here" src="{url}" style="width:{width}px;height:1400px;border:0"></iframe>'
    )
    head = "<!doctype html><title>-</title><style>body{margin:0}</style>"
    probe.write_text(head + frame + script, encoding="utf-8")
    out, err = ask(browser, place, probe, "--window-size=1600,1400", "--dump-dom")
    said = re.search(r"<title>(\{.*?\})</title>", out, re.S)
    if not said:
        raise SystemExit(f"{browser} laid out nothing of {url}: {err[-500:]}")
    if shot:
        ask(browser, place, probe, f"--window-size={max(width, 500)},1400", f"--screenshot={shot}")
    return json.loads(html.unescape(said[1]))


# Asks the search of the theme as its page does. Names of scripts are not those of the window.
SEARCH = """
<script>
const box = document.getElementById("here"), asked = ASKED;
box.onload = () => {
  const Search = box.contentWindow.eval("Search");
  document.title = JSON.stringify(asked.map(words =>
    Search._performSearch(...Search._parseQuery(words)).reverse().slice(0, FIRST).map(r => r[0])));
};
</script>
"""
FIRST = 10  # results, what one sees at once


def searched(browser, root, place):
    """{words: pages of the first results} of all that tests/wanted.py looks for."""
    words = list(dict.fromkeys(w.words for w in WANTED))
    script = SEARCH.replace("ASKED", json.dumps(words)).replace("FIRST", str(FIRST))
    frame = f'<iframe id="here" src="{(root / "search.html").as_uri()}"></iframe>'
    probe = place / "search.html"
    probe.write_text("<!doctype html><title>-</title>" + frame + script, encoding="utf-8")
    out, err = ask(browser, place, probe, "--dump-dom")
    said = re.search(r"<title>(\[.*?\])</title>", out, re.S)
    if not said:
        raise SystemExit(f"{browser} got nothing from the search: {err[-500:]}")
    return dict(zip(words, json.loads(html.unescape(said[1])), strict=True))


def not_found(browser, root):
    """Sentences about what the search does not show, where it is more than one in twenty."""
    with tempfile.TemporaryDirectory() as folder:
        found = searched(browser, root, Path(folder))
    missed = [w for w in WANTED if f"made/api/pylinop.{w.name}" not in found[w.words]]
    print(f"{len(WANTED) - len(missed)} of {len(WANTED)} things found by the search")
    for w in missed:
        print(f"  not by {w.words!r}: {w.name} is not in {', '.join(found[w.words])}")
    if 20 * len(missed) > len(WANTED):
        yield f"the search finds {len(WANTED) - len(missed)} of {len(WANTED)} things"


def in_browser(browser, root, shots):
    """Sentences about what is wrong in a browser."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PAGES:
            for width in WIDTHS:
                for mode in ("light", "dark") if width == WIDTHS[-1] else ("light",):
                    where = f"{name} at {width}, {mode}"
                    shot = shots and shots / f"{name.replace('/', '-')[:-5]}-{width}-{mode}.png"
                    url = (root / name).as_uri()
                    said = laid_out(browser, url, width, Path(folder), mode, shot)
                    if said["wide"] or said["width"] > width + 1:
                        yield f"{where}: {said['width']} wide, {said['wide']}"
                    if said["broken"]:
                        yield f"{where}: no picture {said['broken']}"
                    if not said["theme"] or not said["search"]:
                        yield f"{where}: search or the switch of modes is missing"
                    if said["ink"] == said["paper"]:
                        yield f"{where}: ink and paper are both {said['ink']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", default="docs/_build/html", type=Path)
    parser.add_argument(
        "--browser", default=shutil.which("chromium") or shutil.which("chromium-browser")
    )
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    root = options.root.resolve()
    pages = read(root)
    if not pages:
        raise SystemExit(f"{options.root} has no pages: make docs builds them")
    faults = [f"{name}: {link} leads nowhere" for name, link in dead(root, pages)]
    for name, page in pages.items():
        if page.longest > SCREEN and not LISTINGS.match(name):
            faults.append(f"{name}: {page.longest} characters without a heading")
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")
    if options.browser:
        if options.shots:
            options.shots.mkdir(parents=True, exist_ok=True)
        faults += not_found(options.browser, root)
        faults += in_browser(options.browser, root, options.shots)
        print(f"{len(PAGES)} pages laid out at {', '.join(map(str, WIDTHS))} pixels")
    else:
        print("no browser is here (Debian: apt install chromium): nothing was laid out")
    print("\n".join(faults) or "nothing found")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
