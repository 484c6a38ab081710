"""The Python side of LinearOperator."""
