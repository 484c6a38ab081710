"""Conversions from and to scipy.sparse; sparse factors and products."""
