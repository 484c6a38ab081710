"""Decompositions and functions of operators by their structure."""
