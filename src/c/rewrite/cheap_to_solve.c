/* cheap_to_solve.c: which matrices, and which sums of them, are solved with by how they are built,
 * at about the price of some products. Asked of how they are written alone. */
#include "cheap_to_solve.h"

#include "expr/properties.h"
#include "guards.h"
#include "line_sums.h"
#include "ops/shared/convolution.h"
#include "ops/shared/sparse_solver.h"

#include <string.h>

enum { TERMS = 8, SPECTRAL_ROWS = 40 };

int lop_terms_of(const lop_node *sum, const lop_node **term, int most) {
    const lop_node *todo[TERMS + 1] = {sum};
    int waiting = 1, n = 0;
    while (waiting > 0) {
        const lop_node *t = todo[--waiting];
        if (t->op == &lop_op_sum && waiting + 2 <= TERMS) {
            todo[waiting++] = t->child[1];
            todo[waiting++] = t->child[0];
        } else if (t->op == &lop_op_sum || n == most) {
            return 0;
        } else {
            term[n++] = t;
        }
    }
    return n;
}

static const lop_node *unscaled(const lop_node *a) {
    return a->op == &lop_op_scaled ? a->child[0] : a;
}
static bool all_square(const lop_node *a) {
    for (int i = 0; i < a->n; i++)
        if (!lop_is_square(a->child[i])) return false;
    return true;
}

bool lop_holds_inverse(const lop_node *a, int depth) {
    if (a->op == &lop_op_inverse || depth == 0) return true;
    if (a->op != &lop_op_scaled && a->op != &lop_op_view && a->op != &lop_op_sum &&
        a->op != &lop_op_prod)
        return false;
    for (int i = 0; i < a->n; i++)
        if (lop_holds_inverse(a->child[i], depth - 1)) return true;
    return false;
}
bool lop_is_circular(const lop_node *a) {
    return a->op == &lop_op_convolution && a->attr.i[0] == LOP_CONV_CIRCULAR &&
           lop_is_blas(a->dtype);
}
/* *left: how many nodes more may be looked at. Nodes that a formula shares count wherever they
 * stand, as whoever takes it apart meets them so often. */
static bool circulant_within(const lop_node *a, int depth, const lop_node **sizes, int *left) {
    if (a->shape.ndim != 2 || --*left < 0) return false;
    if (a->op == &lop_op_identity) return true;
    if (a->op == &lop_op_circulant || lop_is_circular(a)) {
        const lop_node *own = a->child[a->n - 1];
        if (*sizes && !lop_shape_equal(&(*sizes)->shape, &own->shape)) return false;
        *sizes = own;
        return true;
    }
    const bool one = a->op == &lop_op_scaled || a->op == &lop_op_view,
               inverse = a->op == &lop_op_inverse && lop_is_blas(a->dtype),
               two = a->op == &lop_op_sum || a->op == &lop_op_prod;
    if (depth == 0 || !(one || inverse || two)) return false;
    if (inverse && lop_holds_inverse(a->child[0], depth)) return false; /* it would lose as much */
    for (int i = 0; i < a->n; i++)
        if (!circulant_within(a->child[i], depth - 1, sizes, left)) return false;
    return true;
}
bool lop_is_circulant(const lop_node *a, int depth, const lop_node **sizes) {
    int left = LOP_CIRCULANT_NODES;
    return circulant_within(a, depth, sizes, &left);
}
bool lop_is_circulant_sum(const lop_node *a) {
    const lop_node *sizes = NULL;
    return a->op == &lop_op_sum && lop_is_blas(a->dtype) &&
           lop_is_circulant(a, LOP_CIRCULANT_DEPTH, &sizes) && sizes;
}

/* A Kron or a Kronecker sum, beside multiples of the identity: one basis makes both diagonal. */
static bool is_spectral_sum(const lop_node *a) {
    const lop_node *term[TERMS];
    int krons = 0;
    if (a->shape.ndim != 2 || !lop_is_blas(a->dtype) || lop_rows(a) < SPECTRAL_ROWS) return false;
    const int n = lop_terms_of(a, term, TERMS);
    for (int i = 0; i < n; i++) {
        const lop_node *k = unscaled(term[i]);
        if (k->op == &lop_op_identity) continue;
        if ((k->op != &lop_op_kron && k->op != &lop_op_kronsum) || !all_square(k)) return false;
        krons++;
    }
    return krons == 1;
}

/* Diagonals up to which a band is better than a factor that keeps to what is stored; measured
 * 2026-11-22 with Laplacians of grids. */
enum { BEST_AS_BAND = 128 };

bool lop_band_is_narrow(const lop_node *a, lop_band b) {
    if (b.l + b.u > BEST_AS_BAND && lop_sparse_pays(a)) return false;
    return 2 * b.l + b.u + 1 <= lop_rows(a) / 2;
}

/* Where the factor's work is a tenth of the dense one's. */
static bool is_narrow_sum(const lop_node *a) {
    if (a->shape.ndim != 2 || !lop_is_blas(a->dtype) || !lop_is_square(a) || !lop_is_composed(a))
        return false;
    const lop_band b = lop_infer_bands(a);
    return lop_band_is_narrow(a, b) && 4 * (b.l + b.u) <= lop_rows(a);
}

bool lop_cheap_to_solve(const lop_node *a) {
    static const char *const kinds[] = {
        "diag",           "identity", "kron",      "blockdiag",
        "tridiagonal",    "banded",   "circulant", "triangular",
        "permutation",    "eigen",    "dft",       "sparsetriangular",
        "quasiseparable", "toeplitz", "hankel",    "blocktridiagonal"};
    lop_line_sum states;
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(a->op->name, kinds[i])) return lop_is_square(a);
    return lop_line_sum_read(&states, a) || lop_is_circulant_sum(a) || lop_is_circular(a) ||
           is_spectral_sum(a) || lop_sparse_pays(a) || is_narrow_sum(a);
}

/* Thin: of a rank of at most one in so many of the rows, where Woodbury's formula serves any number
 * of columns (pays_for in solve_woodbury.c). */
enum { THIN = 8 };

bool lop_solved_as_update(const lop_node *a) {
    const lop_node *term[TERMS], *base = NULL;
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    if (a->shape.ndim != 2 || !lop_is_blas(a->dtype) || !lop_is_square(a)) return false;
    if (a->op == &lop_op_lowrankupdate)
        return lop_cheap_to_solve(a->child[0]) && lop_cols(a->child[1]) <= lop_rows(a) / THIN;
    const int n = a->op == &lop_op_sum ? lop_terms_of(a, term, TERMS) : 0;
    int64_t rank = 0;
    for (int i = 0; i < n; i++) {
        const int64_t own = lop_infer_rank(term[i]);
        if (own <= lop_rows(a) / THIN) {
            rank += own;
        } else if (base) {
            return false;
        } else {
            base = term[i];
        }
    }
    return base && rank > 0 && rank <= lop_rows(a) / THIN && lop_cheap_to_solve(base);
}
