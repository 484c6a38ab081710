"""A few eigenpairs or singular triplets."""
