"""Dimensions are text over names of sizes: "a", "a*b", "a+b"."""


def size(dim, sizes):
    """Of a dimension: a sum of products of names."""
    total = 0
    for term in dim.split("+"):
        product = 1
        for name in term.split("*"):
            product *= sizes[name] if name in sizes else int(name)
        total += product
    return total
