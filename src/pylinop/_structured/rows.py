"""The modules whose rows no function imports by itself: importing this one registers them."""

from . import cholesky_toeplitz, known_bases, thin_shifts, thin_updates
from .dispatch import rules

__all__ = ["MODULES", "rules"]
MODULES = (cholesky_toeplitz, known_bases, thin_shifts, thin_updates)
