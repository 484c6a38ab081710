"""With NumPy alone: kinds and formulas beside dense NumPy, and what an import costs. Run by make
wheel-test on the wheel in a fresh environment (python tools/wheels.py try dist), where there is
no pytest."""

import sys
import time

begin = time.process_time()
import numpy as np  # noqa: E402

after_numpy = time.process_time()
import pylinop as pl  # noqa: E402

after_pylinop = time.process_time()

rng = np.random.default_rng()
n = 60
dense = rng.standard_normal((n, n))
definite = dense @ dense.T + n * np.eye(n)
decay = np.exp(-np.arange(n) / 5.0)
small = [rng.standard_normal((k, k)) + 4 * np.eye(k) for k in (3, 4, 5)]
thin = rng.standard_normal((n, 4))
KINDS = {
    "Dense": pl.Dense(dense),
    "Diag": pl.Diag(rng.uniform(1, 2, n)),
    "Toeplitz": pl.Toeplitz(decay),
    "Circulant": pl.Circulant(decay),
    "Kron": pl.Kron(*small),
    "LowRank": pl.LowRank(thin),
    "Tridiagonal": pl.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1)),
    "Kernel": pl.Kernel("rbf", rng.standard_normal((n, 2))),
    "sum": pl.Toeplitz(decay) + pl.Diag(rng.uniform(1, 2, n)),
    "product": pl.Toeplitz(decay) @ pl.Diag(rng.uniform(1, 2, n)),
    "definite": pl.LowRank(thin) + pl.Diag(rng.uniform(1, 2, n)),
}


def close(found, true):
    scale = np.abs(true).max() + np.finfo(float).tiny
    return bool(np.abs(np.asarray(found) - true).max() <= 1e-10 * scale)


faults = []
for name, op in KINDS.items():
    full = op.toarray()
    x = rng.standard_normal((n, 3))
    checks = {"A @ X": (op @ x, full @ x), "A.T @ X": (op.T @ x, full.T @ x)}
    checks["diagonal"] = (op.diagonal(), np.diagonal(full))
    if name not in ("LowRank", "Kernel"):  # which have no inverse, or none to these digits
        checks["solve"] = (full @ pl.solve(op, x), x)
        checks["logdet"] = (pl.slogdet(op)[1], np.linalg.slogdet(full)[1])
    faults += [
        f"{name}: {what}" for what, (found, true) in checks.items() if not close(found, true)
    ]

X, y = pl.lazy(dense[:, :20]), rng.standard_normal(n)
b = pl.inv(X.T @ X + 0.1 * pl.Identity(20)) @ X.T @ y
true = np.linalg.solve(dense[:, :20].T @ dense[:, :20] + 0.1 * np.eye(20), dense[:, :20].T @ y)
if not close(np.asarray(b), true):
    faults.append("ridge regression")
if not close(pl.cholesky(definite).toarray(), np.linalg.cholesky(definite)):
    faults.append("cholesky")

heavy = {"scipy", "matplotlib", "pandas"} & {name.partition(".")[0] for name in sys.modules}
if heavy:
    faults.append(f"{heavy} were imported")
numpys, ours = 1e3 * (after_numpy - begin), 1e3 * (after_pylinop - after_numpy)
print(
    f"import: NumPy {numpys:.0f} ms of CPU, pylinop {ours:.0f} ms more; {pl._base.blas.way}'s BLAS"
)
print(f"{len(KINDS)} operators beside dense NumPy: {len(faults)} faults")
if faults:
    raise SystemExit("wrong beside dense NumPy: " + "; ".join(faults))
