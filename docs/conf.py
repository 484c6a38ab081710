"""Sphinx: `make docs`."""

import pylinop

project = "pylinop"
author = "the pylinop developers"
copyright = "2026, the pylinop developers"
version = release = pylinop.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "numpydoc",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autosummary_generate = True
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = "pylinop"
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False}
