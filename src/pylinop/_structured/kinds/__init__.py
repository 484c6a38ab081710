"""Functions on structure by kind: all that a kind answers, one file a kind or a family of them.

What several kinds have in common lies with the question, in the folder above."""
