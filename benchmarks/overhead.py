"""Small sizes: what a call, a node, an expression costs beside NumPy by hand and the peers."""

import numpy as np
from harness import Case, peer, tensor

import pylinop as pl

UNIT = "numpy d * x, n = 10 (unit)"


def rng():
    return np.random.default_rng(0)


def unit(case):
    g = rng()
    return case.add("unit", UNIT, "d * x", d=g.random(10), x=g.random(10))


# -- diagonals -------------------------------------------------------------------------------------


def add_diagonals(case, d, x):
    """Products of a diagonal with x by every library."""
    n = len(d)
    sla = peer("scipy.sparse.linalg")
    if sla:
        A = sla.LinearOperator((n, n), matvec=lambda v: d * v, dtype=d.dtype)
        case.add("peer", "scipy LinearOperator .matvec", "A.matvec(x)", A=A, x=x)
        case.add("peer", "scipy LinearOperator @", "A @ x", A=A, x=x)
    if peer("linear_operator"):
        D = peer("linear_operator.operators").DiagLinearOperator(tensor(d))
        case.add("peer", "linear_operator", "D @ x", D=D, x=tensor(x))
    if peer("cola"):
        case.add("peer", "CoLA", "D @ x", D=peer("cola").ops.Diagonal(d), x=x)
    if peer("pylops"):
        case.add("peer", "pylops", "D @ x", D=peer("pylops").Diagonal(d), x=x)
    if peer("lazylinop"):
        case.add("peer", "lazylinop", "D @ x", D=peer("lazylinop").diag(d), x=x)


def diag_apply():
    for n in (10, 100, 1000):

        def build(n=n):
            g = rng()
            d, x = g.standard_normal(n), g.standard_normal(n)
            D, y = pl.Diag(d), np.empty(n)
            case = Case("", "", d * x)
            case.add("pylinop", "pylinop D @ x", "D @ x", D=D, x=x)
            case.add("pylinop", "pylinop D.matvec(x)", "D.matvec(x)", D=D, x=x)
            case.add("pylinop", "pylinop D.matvec(x, out=y)", "D.matvec(x, out=y)", D=D, x=x, y=y)
            case.add(
                "pylinop", "pylinop np.matmul(D, x, out=y)", "np.matmul(D, x, out=y)", D=D, x=x, y=y
            )
            case.add("hand", "numpy d * x", "d * x", d=d, x=x)
            case.add(
                "hand", "numpy multiply(d, x, out=y)", "np.multiply(d, x, out=y)", d=d, x=x, y=y
            )
            add_diagonals(case, d, x)
            if n == 10:
                case.goal(
                    "pylinop D @ x", "numpy d * x", 0.3, "Diag @ x, n = 10", "0.3 x NumPy's d * x"
                )
            return case

        yield f"overhead/diag-apply-{n}", build


def diag_build():
    def build():
        d = rng().standard_normal(10)
        case = Case("", "", None)
        for word, on in (("its line kept", True), ("no line kept", False)):
            case.add(
                "pylinop",
                f"pylinop Diag(d), {word}",
                "Diag(d)",
                setup=f"pl.config(provenance={on})",
                pl=pl,
                Diag=pl.Diag,
                d=d,
            )
        unit(case)
        sla = peer("scipy.sparse.linalg")
        if sla:
            f = lambda v: d * v
            case.add(
                "peer",
                "scipy LinearOperator",
                "L((10, 10), matvec=f, dtype=t)",
                L=sla.LinearOperator,
                f=f,
                t=d.dtype,
            )
        if peer("linear_operator"):
            L = peer("linear_operator.operators").DiagLinearOperator
            case.add("peer", "linear_operator", "L(d)", L=L, d=tensor(d))
        if peer("cola"):
            case.add("peer", "CoLA", "L(d)", L=peer("cola").ops.Diagonal, d=d)
        if peer("pylops"):
            case.add("peer", "pylops", "L(d)", L=peer("pylops").Diagonal, d=d)
        if peer("lazylinop"):
            case.add("peer", "lazylinop", "L(d)", L=peer("lazylinop").diag, d=d)
        return case

    yield "overhead/diag-construct", build


def diag_square():
    def build():
        n = 10_000
        d = rng().standard_normal(n)
        D = pl.Diag(d)
        case = Case("", "", d * d)
        case.add("pylinop", "pylinop E.diagonal(), E = D @ D kept", "E.diagonal()", E=D @ D)
        case.add("pylinop", "pylinop (D @ D).diagonal()", "(D @ D).diagonal()", D=D)
        case.add("floor", "numpy d * d", "d * d", d=d)
        if peer("linear_operator"):
            L = peer("linear_operator.operators").DiagLinearOperator(tensor(d))
            case.add("peer", "linear_operator (D @ D).diagonal()", "(D @ D).diagonal()", D=L)
        if peer("pykronecker"):
            K = peer("pykronecker").KroneckerDiag(d.reshape(100, 100))
            case.add("peer", "pykronecker (D @ D).diag()", "(D @ D).diag()", D=K)
        line = "(D @ D).diagonal(), n = 10 000"
        case.goal(
            "pylinop (D @ D).diagonal()",
            "numpy d * d",
            1.2,
            line,
            "1.2 x one d * d (2.2 us where that takes 1.83)",
        )
        case.goal(
            "pylinop E.diagonal(), E = D @ D kept",
            "numpy d * d",
            1.2,
            line + ", D @ D kept",
            "1.2 x one d * d",
        )
        return case

    yield "overhead/diag-square", build


# -- nodes -----------------------------------------------------------------------------------------


def nodes():
    for what, code, check in (
        ("product", "A @ B", "(A @ B) @ x"),
        ("sum", "A + B", "(A + B) @ x"),
        ("transpose", "A.T", "A.T @ x"),
    ):

        def build(what=what, code=code, check=check):
            g = rng()
            a, b, x = (
                g.standard_normal((10, 10)),
                g.standard_normal((10, 10)),
                g.standard_normal(10),
            )
            case = Case(
                "", "", {"product": a @ (b @ x), "sum": a @ x + b @ x, "transpose": a.T @ x}[what]
            )
            for face, take in (("", pl.Dense), ("lazy ", pl.lazy)):
                A, B = take(a), take(b)
                for word, on in (("its line kept", True), ("no line kept", False)):
                    case.add(
                        "pylinop",
                        f"pylinop {face}{code}, {word}",
                        code,
                        check,
                        setup=f"pl.config(provenance={on})",
                        pl=pl,
                        A=A,
                        B=B,
                        x=x,
                    )
            unit(case)
            case.contenders[-1].check = "x0"
            case.contenders[-1].names["x0"] = case.expected
            sla = peer("scipy.sparse.linalg")
            if sla:
                s = sla.aslinearoperator
                case.add("peer", "scipy", code, check, A=s(a), B=s(b), x=x)
            if (
                peer("linear_operator") and what == "product"
            ):  # its Dense + Dense and .mT compute at once
                s = peer("linear_operator.operators").DenseLinearOperator
                case.add(
                    "peer",
                    "linear_operator",
                    code,
                    "_ @ x",
                    A=s(tensor(a)),
                    B=s(tensor(b)),
                    x=tensor(x),
                )
            if peer("cola"):
                s = peer("cola").ops.Dense
                case.add("peer", "CoLA", code, check, A=s(a), B=s(b), x=x)
            if peer("pylops"):
                s = peer("pylops").MatrixMult
                case.add("peer", "pylops", code, check, A=s(a), B=s(b), x=x)
            if peer("lazylinop"):
                s = peer("lazylinop").aslazylinop
                case.add("peer", "lazylinop", code, check, A=s(a), B=s(b), x=x)
            said = (
                "0.44 x (0.15 us where d * x takes 0.34)",
                "0.29 x (0.1 us where d * x takes 0.34)",
            )
            for face in ("", "lazy "):
                for word, ratio, text in (
                    ("its line kept", 0.44, said[0]),
                    ("no line kept", 0.29, said[1]),
                ):
                    name = f"{face}{code}, {word}"
                    case.goal(f"pylinop {name}", UNIT, ratio, f"node {name}", text)
            return case

        yield f"overhead/node-{what}", build


# -- small products --------------------------------------------------------------------------------


def dense_apply():
    for n in (10, 100, 1000):

        def build(n=n):
            g = rng()
            a, x, y = g.standard_normal((n, n)), g.standard_normal(n), np.empty(n)
            A = pl.Dense(a)
            case = Case("", "", a @ x)
            case.add("pylinop", "pylinop A @ x", "A @ x", A=A, x=x)
            case.add("pylinop", "pylinop A.matvec(x, out=y)", "A.matvec(x, out=y)", A=A, x=x, y=y)
            case.add("hand", "numpy a @ x", "a @ x", a=a, x=x)
            case.add("hand", "numpy matmul(a, x, out=y)", "np.matmul(a, x, out=y)", a=a, x=x, y=y)
            sla = peer("scipy.sparse.linalg")
            if sla:
                case.add("peer", "scipy aslinearoperator", "A @ x", A=sla.aslinearoperator(a), x=x)
            if peer("linear_operator"):
                L = peer("linear_operator.operators").DenseLinearOperator(tensor(a))
                case.add("peer", "linear_operator", "A @ x", A=L, x=tensor(x))
            if peer("cola"):
                case.add("peer", "CoLA", "A @ x", A=peer("cola").ops.Dense(a), x=x)
            if peer("pylops"):
                case.add("peer", "pylops", "A @ x", A=peer("pylops").MatrixMult(a), x=x)
            return case

        yield f"overhead/dense-apply-{n}", build


def small_kron():
    def build():
        g = rng()
        a, b, x = g.standard_normal((4, 4)), g.standard_normal((4, 4)), g.standard_normal(16)
        case = Case("", "", np.kron(a, b) @ x)
        K = pl.Kron(a, b)
        case.add("pylinop", "pylinop K @ x", "K @ x", K=K, x=x)
        case.add("pylinop", "pylinop Kron(a, b) @ x", "Kron(a, b) @ x", Kron=pl.Kron, a=a, b=b, x=x)
        case.add("hand", "numpy by hand", "(a @ x.reshape(4, 4) @ b.T).ravel()", a=a, b=b, x=x)
        add_krons(case, [a, b], x)
        case.goal(
            "pylinop K @ x",
            "numpy by hand",
            0.086,
            "4x4 Kron 4x4 times vector",
            "0.086 x by hand (0.3 us where that takes 3.5)",
        )
        return case

    yield "overhead/kron-4x4", build


def add_krons(case, factors, x):
    """Kronecker products by every library, operators built beforehand."""
    t = [tensor(f) for f in factors] if peer("torch") else []
    if peer("pyfastkron"):
        f = peer("pyfastkron.fastkronnumpy").gekmm
        if x.ndim == 1:
            case.add(
                "peer", "pyfastkron", "f(fs, x)", "_.ravel()", f=f, fs=factors, x=x.reshape(-1, 1)
            )
        else:
            case.add("peer", "pyfastkron", "f(fs, x)", f=f, fs=factors, x=x)
    if peer("pykronecker"):
        case.add(
            "peer", "pykronecker", "K @ x", K=peer("pykronecker").KroneckerProduct(factors), x=x
        )
    if peer("linear_operator"):
        L = peer("linear_operator.operators")
        K = L.KroneckerProductLinearOperator(*[L.DenseLinearOperator(f) for f in t])
        case.add("peer", "linear_operator", "K @ x", K=K, x=tensor(x))
    if peer("cola"):
        ops = peer("cola").ops
        case.add("peer", "CoLA", "K @ x", K=ops.Kronecker(*[ops.Dense(f) for f in factors]), x=x)
        if peer("torch"):
            K = ops.Kronecker(*[ops.Dense(f) for f in t])
            case.add("peer", "CoLA (torch)", "K @ x", K=K, x=tensor(x))
    if peer("pylops"):
        p = peer("pylops")
        K = p.MatrixMult(factors[-1])
        for f in factors[-2::-1]:
            K = p.Kronecker(p.MatrixMult(f), K)
        case.add("peer", "pylops", "K @ x", K=K, x=x)
    if peer("lazylinop"):
        z = peer("lazylinop")
        K = z.aslazylinop(factors[-1])
        for f in factors[-2::-1]:
            K = z.kron(f, K)
        case.add("peer", "lazylinop", "K @ x", K=K, x=x)


def composed():
    def build():
        g = rng()
        a, b, c = (g.standard_normal((10, 10)) for _ in range(3))
        x = g.standard_normal(10)
        case = Case("", "", (a + b) @ (c @ x))
        A, B, C = pl.Dense(a), pl.Dense(b), pl.Dense(c)
        code = "(A + B) @ C @ x"
        case.add("pylinop", f"pylinop {code}", code, A=A, B=B, C=C, x=x)
        case.add("pylinop", "pylinop E @ x, E kept", "E @ x", E=(A + B) @ C, x=x)
        case.add(
            "hand",
            "numpy y = c @ x; a @ y + b @ y",
            "y = c @ x; z = a @ y + b @ y",
            "z",
            a=a,
            b=b,
            c=c,
            x=x,
        )
        case.add("hand", "numpy (a + b) @ (c @ x)", "(a + b) @ (c @ x)", a=a, b=b, c=c, x=x)
        sla = peer("scipy.sparse.linalg")
        if sla:
            s = sla.aslinearoperator
            case.add("peer", "scipy", code, A=s(a), B=s(b), C=s(c), x=x)
        if peer("lazylinop"):
            s = peer("lazylinop").aslazylinop
            case.add("peer", "lazylinop", code, A=s(a), B=s(b), C=s(c), x=x)
        if peer("pylops"):
            s = peer("pylops").MatrixMult
            case.add("peer", "pylops", code, A=s(a), B=s(b), C=s(c), x=x)
        if peer("linear_operator"):
            s = lambda m: peer("linear_operator.operators").DenseLinearOperator(tensor(m))
            case.add("peer", "linear_operator", code, A=s(a), B=s(b), C=s(c), x=tensor(x))
        if peer("cola"):
            s = peer("cola").ops.Dense
            case.add("peer", "CoLA", code, A=s(a), B=s(b), C=s(c), x=x)
        case.goal(
            f"pylinop {code}",
            "numpy y = c @ x; a @ y + b @ y",
            0.25,
            "(A + B) @ C @ x, n = 10, built anew",
            "0.25 x by hand (1 us where that takes 4.0)",
        )
        return case

    yield "overhead/composed", build

    def chain():
        g = rng()
        d = [g.standard_normal((10, 10)) for _ in range(10)]
        x = g.standard_normal(10)
        y = x
        for m in d[::-1]:
            y = m @ y
        case = Case("", "", y, rtol=1e-9)
        names = dict(zip("abcdefghij", map(pl.Dense, d)))
        raw = dict(zip("abcdefghij", d))
        code = " @ ".join("abcdefghij")
        hand = "x"
        for letter in "jihgfedcba":
            hand = f"{letter} @ ({hand})"
        clear = pl._core._clear_store  # plans and derived values go: the next call plans
        first = f"clear(); y = ({code}) @ x"
        case.add("pylinop", "pylinop planned anew", first, "y", clear=clear, x=x, **names)
        case.add("pylinop", "pylinop built anew", f"({code}) @ x", x=x, **names)
        lazies = dict(zip("abcdefghij", map(pl.lazy, d)))
        case.add("pylinop", "pylinop built anew, lazy", f"np.asarray(({code}) @ x)", x=x, **lazies)
        case.add("pylinop", "pylinop E @ x, E kept", "E @ x", E=eval(code, dict(names)), x=x)
        case.add("hand", "numpy a @ (b @ (c @ ...))", hand, x=x, **raw)
        return case

    yield "overhead/chain-of-10", chain


def lazy_formulas():
    """The same formula of four operands written with operators and with LazyArrays."""
    for what, code, hand in (
        ("sum", "(A @ B + C) @ x", "a @ (b @ x) + c @ x"),
        ("solve", "inv(A.T @ A + C) @ (A.T @ x)", "solve(a.T @ a + c, a.T @ x)"),
        ("trace", "(A @ B + C).trace()", "np.trace(a @ b + c)"),
        ("vectors", "2.0 * x + y * x - y", "2.0 * x + y * x - y"),
    ):

        def build(what=what, code=code, hand=hand):
            g = rng()
            a, b = g.standard_normal((10, 10)), g.standard_normal((10, 10))
            c, x, y = 10 * np.eye(10), g.standard_normal(10), g.standard_normal(10)
            raw = {"a": a, "b": b, "c": c, "x": x, "y": y, "solve": np.linalg.solve}
            case = Case("", "", eval(hand, {**raw, "np": np}))
            if what != "vectors":
                names = {
                    "A": pl.Dense(a),
                    "B": pl.Dense(b),
                    "C": pl.Dense(c),
                    "x": x,
                    "inv": pl.inv,
                }
                case.add("pylinop", "pylinop operators", code, **names)
            names = dict(zip("ABCxy", map(pl.lazy, (a, b, c, x, y))), inv=pl.inv)
            case.add("pylinop", "pylinop LazyArrays", f"np.asarray({code})", **names)
            case.add("hand", f"numpy {hand}", hand, **raw)
            unit(case)
            case.contenders[-1].check = "x0"
            case.contenders[-1].names["x0"] = case.expected
            return case

        yield f"overhead/lazy-{what}", build


def callables():
    for n in (10, 1000):

        def build(n=n):
            g = rng()
            d, x = g.standard_normal(n), g.standard_normal(n)
            f = lambda v: d * v
            case = Case("", "", d * x)
            A = pl.MatVec((n, n), f, dtype=float)
            case.add("pylinop", "pylinop MatVec @", "A @ x", A=A, x=x)
            case.add("pylinop", "pylinop MatVec .matvec", "A.matvec(x)", A=A, x=x)
            case.add("floor", "the callable itself", "f(x)", f=f, x=x)
            sla = peer("scipy.sparse.linalg")
            if sla:
                A = sla.LinearOperator((n, n), matvec=f, dtype=float)
                case.add("peer", "scipy LinearOperator @", "A @ x", A=A, x=x)
                case.add("peer", "scipy LinearOperator .matvec", "A.matvec(x)", A=A, x=x)
            if peer("lazylinop"):
                A = peer("lazylinop").LazyLinOp((n, n), matvec=f, rmatvec=f)
                case.add("peer", "lazylinop", "A @ x", A=A, x=x)
            return case

        yield f"overhead/callable-{n}", build


def conjugate_gradients():
    sla = peer("scipy.sparse.linalg")
    if not sla:
        return

    def build():
        n = 100
        d, b = np.linspace(1, 100, n), rng().standard_normal(n)
        case = Case("", "", b / d, rtol=1e-5)
        code = "cg(A, b, rtol=0, atol=0, maxiter=100)"
        op = sla.LinearOperator((n, n), matvec=lambda v: d * v, dtype=float)
        for role, name, A in (
            ("pylinop", "pylinop Diag", pl.Diag(d)),
            ("pylinop", "pylinop MatVec", pl.MatVec((n, n), lambda v: d * v, dtype=float)),
            ("peer", "scipy LinearOperator", op),
            ("peer", "scipy dense array", np.diag(d)),
            ("peer", "scipy csr_array", peer("scipy.sparse").diags_array(d).tocsr()),
        ):
            case.add(role, f"scipy's cg on {name}", code, "_[0]", cg=sla.cg, A=A, b=b)
        return case

    yield "overhead/cg-100-steps", build


MAKERS = [
    diag_apply,
    diag_build,
    diag_square,
    nodes,
    dense_apply,
    small_kron,
    composed,
    lazy_formulas,
    callables,
    conjugate_gradients,
]
