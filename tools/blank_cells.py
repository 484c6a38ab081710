"""Cells of the table of factorisations that are blank, and why: print_docs.py prints them."""

import pylinop as pl
from pylinop._structured import dispatch

FORMS = {
    "scaled": "`c * A`",
    "view": "`A.T`, `A.H`, `A.conj()`",
    "inverse": "`inv(A)`",
    "sum": "`A + B`",
    "prod": "`A @ B`",
    "power": "`A**p`",
    "offdiag": "`Diag` with an offset",
}


# Cells that are blank: which functions, of which kinds (heads), and why. Printed below the tables.
BLANK: list[tuple[str, str, str]] = [
    (
        "cholesky",
        "circulant multitoeplitz hankel",
        "the triangle of such a matrix has no structure of its own: n^2 / 2 numbers, in "
        "O(n^3) or, by displacements, O(n^2) times the rank of these",
    ),
    (
        "qr lu ldl",
        "toeplitz hankel",
        "fast ones work on generators. Without exchanges LU is unstable; with them it is of a "
        "Cauchy-like matrix (Gohberg, Kailath and Olshevsky 1995), as solves have it, and not "
        "of this one. The R of a fast QR loses digits with the square of the condition (Chun, "
        "Kailath and Lev-Ari 1987)",
    ),
    (
        "pinv",
        "toeplitz hankel",
        "it is neither again: a dense matrix, in O(n^2) numbers",
    ),
    (
        "eig eigvals",
        "toeplitz hankel multitoeplitz banded blocktridiagonal",
        "the first reflections of a reduction to Hessenberg form fill the matrix: what "
        "follows is the dense one",
    ),
    (
        "expm logm funm",
        "toeplitz banded blocktridiagonal sparse multitoeplitz",
        "the result is full: take `pl.funm_multiply`, which gives it times a vector",
    ),
    (
        "qr lu svd svdvals eigvalsh eigh",
        "sparse sparsetriangular",
        "fill decides, and the order of rows and columns with it: solves and determinants "
        "keep SuperLU's factor, `pl.lstsq(method='lsmr')`, `pl.svds` and `pl.eigsh` need "
        "products alone",
    ),
    (
        "lu ldl",
        "householder full lowrank",
        "with exchanges the rows come in an order that no formula gives, without them pivots "
        "vanish",
    ),
    (
        "qr cholesky lu",
        "kronsum",
        "A (x) I + I (x) B has one basis for its eigenvectors and none for its triangles",
    ),
    (
        "*",
        "dense",
        "it is the dense form",
    ),
    (
        "*",
        "kernel elementwise khatrirao convolution prod",
        "products are cheap and nothing else follows from how they are written; a low rank is "
        "not assumed unasked (`pl.nystrom`)",
    ),
    (
        "*",
        "difference selection offdiag",
        "rows and columns of other matrices, most of them rectangular: `A.H @ A` has the "
        "structure, a `Laplacian`, band or `Diag`; `pl.Banded` has the functions of bands",
    ),
    (
        "*",
        "block",
        "blocks that are neither a border nor the same along diagonals have no common basis; of "
        "those two the vectors of `svd` are those of `eigh` where the matrix is Hermitian",
    ),
    (
        "eigvalsh eigh cholesky sample sqrt_inv_matmul ldl",
        "dft dct reflections",
        "these functions are of Hermitian matrices, which these are not (but `DCT` of the types 1 "
        "and 4, with the values 1 and -1, many times each, in no basis that a formula gives)",
    ),
    (
        "eig eigvals expm logm sqrtm funm",
        "dft dct reflections",
        "the eigenvectors follow from no formula: of a `DFT`, whose four values have one, "
        "orthonormal vectors are computed (Dickinson and Steiglitz 1982)",
    ),
    (
        "cholesky sample sqrt_inv_matmul",
        "permutation householder hadamard full lowrank zeros",
        "these functions need a definite matrix, which these are not, but for the identity",
    ),
    (
        "qr lu ldl cholesky",
        "circulant congruence eigen root laplacian sum power lowrank lowrankupdate full zeros dft "
        "dct hadamard permutation reflections",
        "a basis of eigenvectors or thin factors say nothing of triangles, which are full",
    ),
    (
        "lstsq pinv",
        "power",
        "take those of the base: `pl.pinv(A)` of a regular A is its inverse",
    ),
    (
        "sqrt_inv_matmul sample",
        "power",
        "the root of an even power is a power: `pl.matrix_power(A, p // 2)`",
    ),
    (
        "*",
        "inverse",
        "the factors of an inverse are those of A in the opposite order: `A^-1 = R^-1 Q^H`; take "
        "A's, and solve with them",
    ),
    (
        "ldl",
        "kronsum",
        "as its `cholesky`",
    ),
    (
        "*",
        "quasiseparable",
        "the first reflections of a reduction fill it; solves, determinants and draws are in O(n)",
    ),
    (
        "*",
        "triangular",
        "that half of the entries are zeros saves LAPACK nothing; functions of Hermitian matrices "
        "read one triangle, of which they take the other to be its mirror",
    ),
    (
        "*",
        "banded tridiagonal blocktridiagonal",
        "the results are full, as are all vectors (`pl.svds`, `pl.eigh(k=)` give a few); `lstsq` "
        "of bands of full rank goes by their QR",
    ),
    (
        "*",
        "sparse sparsetriangular",
        "as above: fill decides; a few values by `pl.eigs`, a function times a vector by "
        "`pl.funm_multiply`",
    ),
    (
        "*",
        "toeplitz hankel multitoeplitz",
        "the results have no such structure, and fast ways are unstable or by displacements, which "
        "lose digits with the condition; `pl.lstsq(method='lsmr')`, `pl.funm_multiply` and "
        "`pl.svds` take products alone",
    ),
]


def _blank_heads(names: dict[str, str]) -> dict[str, list[str]]:
    """The functions that each kind has no way of its own for."""
    words = {q.word: q for q in dispatch.QUESTIONS.values()}
    return {
        head: [word for word, question in words.items() if head not in question.texts]
        for head in names
    }


def blank_cells() -> tuple[str, list[tuple[str, str]]]:
    """Why a cell is blank, and the cells of which nothing is said; a KeyError: one that is no
    longer blank."""
    names = {row["head"]: f"`{row['name']}`" for row in pl.kinds() if row["signature"]} | FORMS
    left = _blank_heads(names)
    text = "\n## Why a cell is blank\n\n| functions | kinds | why |\n|---|---|---|\n"
    said: set[tuple[str, str]] = set()
    for functions, heads, why in BLANK:
        groups: dict[str, list[str]] = {}
        for head in heads.split():
            words = left[head] if functions == "*" else functions.split()
            own = [w for w in words if w in left[head] and (w, head) not in said]
            if not own:
                raise KeyError(f"{functions} of {head} is no blank cell, or told before")
            said |= {(word, head) for word in own}
            which = "all others" if functions == "*" else ", ".join(own)
            groups.setdefault(which, []).append(names[head])
        for which, kinds_ in groups.items():
            text += f"| {which} | {', '.join(kinds_)} | {why} |\n"
    rest = {(word, head) for head, words in left.items() for word in words} - said
    return text, sorted(rest)
