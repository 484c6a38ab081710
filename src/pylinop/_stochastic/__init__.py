"""Estimates of traces, determinants and spectral densities."""
