"""Imported before other packages: says, in a sentence, what to install where one is missing."""

import sys

# module: (package, extra of pylinop that brings it)
PACKAGES = {
    "scipy": ("scipy", "examples"),
    "matplotlib": ("matplotlib", "examples"),
    "statsmodels": ("statsmodels", "examples"),
    "skimage": ("scikit-image", "examples"),
    "torch": ("torch", "torch"),
    "jax": ("jax", "jax"),
    "pytensor": ("pytensor", "pytensor"),
    "pymc": ("pymc", None),
    "nutpie": ("nutpie", None),
}
_plain = sys.excepthook


def said(module, script):
    """The sentence about a module that is not there, or None for one that nothing here asks for."""
    name = (module or "").partition(".")[0]
    if name not in PACKAGES:
        return None
    package, extra = PACKAGES[name]
    install = f'pip install "pylinop[{extra}]"' if extra else f"pip install {package}"
    return f"{script} needs {package}, which is not installed here: {install}"


def _hook(kind, error, traceback):
    text = said(error.name, sys.argv[0]) if isinstance(error, ModuleNotFoundError) else None
    if text is None:
        _plain(kind, error, traceback)
    else:
        print(text, file=sys.stderr)


sys.excepthook = _hook
