"""A scikit-learn estimator on a structured matrix: kernel ridge regression by Nystrom's method.

The kernel matrix of n points is approximated from m of them as U U^H, and

    (U U^H + lambda I) a = y

is solved as the formula stands: pylinop sees low rank plus a multiple of the identity, so that no
n x n matrix is made and a fit costs O(n m^2). It passes scikit-learn's own `check_estimator`, so
that it goes into pipelines and grid searches as any estimator does.

    python examples/sklearn_low_rank_ridge.py
"""

from __future__ import annotations

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install scikit-learn") from None

import numpy as np

import pylinop as pl


class KernelRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression, from `components` points of the data. By default the length scale is
    the root of the number of features."""

    def __init__(self, length_scale=None, alpha=1e-2, components=100, random_state=None):
        self.length_scale = length_scale
        self.alpha = alpha
        self.components = components
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        rng = np.random.default_rng(self.random_state if self.random_state is not None else 0)
        self.scale_ = self.length_scale or X.shape[1] ** 0.5
        m = min(self.components, len(X))
        self.points_ = X[np.sort(rng.permutation(len(X))[:m])]
        inner = self._kernel(self.points_, self.points_) + 1e-10 * np.eye(m)
        self._root = pl.cholesky(pl.Dense(inner, assume_a="pos"))
        self.mean_ = y.mean()
        U = self._features(X)
        noise = max(self.alpha, 1e-12) * pl.Identity(len(X))
        dual = pl.solve(pl.LowRank(U) + noise, y - self.mean_)
        self.weights_ = U.T @ dual
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._features(X) @ self.weights_ + self.mean_

    def _kernel(self, x, y):
        return pl.Kernel("rbf", x, y, length_scale=self.scale_).toarray()

    def _features(self, X):
        """U with U U^H near the kernel matrix."""
        return np.ascontiguousarray(pl.solve(self._root, self._kernel(self.points_, X)).T)


def main():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2000, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    model = make_pipeline(StandardScaler(), KernelRidge())
    search = GridSearchCV(model, {"kernelridge__length_scale": [0.1, 0.5, 2.0]}, cv=3).fit(X, y)
    grid = np.linspace(-3, 3, 50)[:, None]
    error = np.abs(search.predict(grid) - np.sin(grid[:, 0])).max()
    best = search.best_params_["kernelridge__length_scale"]
    print(f"length scale {best}, largest error {error:.3f}")
    assert error < 0.15
    return error


if __name__ == "__main__":
    main()
