"""Sphinx: `make docs`. What is made before each build is in site_pages.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import known_as
import site_pages

import pylinop

project = "pylinop"
author = "the pylinop developers"
copyright = "2026, the pylinop developers"
version = release = pylinop.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_custom_sections = ["Cost", "Limits"]
napoleon_use_rtype = False
napoleon_use_param = False  # else the n of "shape (n, n)" is looked for as a name
napoleon_use_ivar = True
autosummary_generate = True
autosummary_context = {"known_as": known_as.words()}
autodoc_typehints = "none"
copybutton_prompt_text = ">>> "
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "pylinop"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "navbar_center": ["site-links"],
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "**": ["site-contents"]}


def setup(app):
    site_pages.make_all()
    app.connect("autodoc-process-docstring", site_pages.with_bars, priority=100)
    app.connect("autodoc-process-docstring", site_pages.with_colons, priority=890)
    app.connect("autodoc-process-docstring", site_pages.with_cost, priority=900)
