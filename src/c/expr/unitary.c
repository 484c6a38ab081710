/* unitary.c: what is unitary by how it is written: kinds that are, products, views, inverses,
 * powers, Krons and direct sums of such, multiples by a number of modulus one, Hartley's transform
 * (the real part of a Fourier transform and its imaginary one), the sine transform as it is cut out
 * of one. What is added to an identity by a thin factor, I + Y C Y^H, is unitary by its numbers, if
 * at all: the caller is told which these are. */
#include "properties.h"

#include "coefficients.h"

#include <math.h>

enum { ORTHO = 1, BACKWARD = 0 }; /* norms of a DFT */

typedef struct look {
    int left; /* nodes that may still be looked at */
    lop_infer_thin *thin;
} look;

bool lop_infer_under_test(const lop_node *a) {
    for (int i = 0; i < a->n; i++) {
        const lop_node *x = a->child[i];
        const bool named =
            x->op == &lop_op_named || x->op == &lop_op_named_band || x->op == &lop_op_named_blocks;
        const lop_op *op = (named ? x->child[0] : x)->op;
        if (op == &lop_op_assume || op == &lop_op_assume_band || op == &lop_op_assume_tridiagonal ||
            op == &lop_op_assume_blocks)
            return true;
    }
    return false;
}

bool lop_infer_unitary(const lop_node *a) { return lop_infer_unitary_but(a, NULL); }

/* The operator whose real (0) or imaginary (1) part a is; NULL. */
static const lop_node *part_of(const lop_node *a, int64_t which) {
    return a->op == &lop_op_part && a->attr.i[0] == which ? a->child[0] : NULL;
}

/* cos + sin and cos - sin of the unitary transform, over all levels together. */
static bool hartley(const lop_node *a) {
    const lop_node *x = a->child[0], *y = a->child[1];
    if (y->op == &lop_op_scaled && !y->attr.num && fabs(y->attr.re) == 1 && y->attr.im == 0)
        y = y->child[0];
    const lop_node *real = part_of(x, 0), *imag = part_of(y, 1);
    return real && imag && real->op == &lop_op_dft && real->attr.i[0] == ORTHO &&
           lop_node_alike(real, imag, LOP_INFER_DEPTH);
}

/* n rows or columns from the second one on. */
static const lop_node *sliced_at_one(const lop_node *a, int64_t axis, int64_t n) {
    const bool so = a && a->op == &lop_op_sliced && a->n == 1 && a->attr.i[0] == axis &&
                    a->attr.i[1] == 1 && a->attr.i[2] == 1 && a->attr.i[3] == n;
    return so ? a->child[0] : NULL;
}

/* sin(pi (i + 1) (j + 1) / (n + 1)) sqrt(2 / (n + 1)): of a transform of 2 n + 2, by -sqrt(2 / (n +
 * 1)). */
static bool sine(const lop_node *a) {
    const int64_t n = lop_rows(a);
    int64_t size;
    if (a->attr.im != 0 || a->attr.re != -sqrt(2.0 / (double)(n + 1))) return false;
    const lop_node *waves = part_of(a->child[0], 1);
    if (!waves || waves->op != &lop_op_sliced) return false;
    const int64_t axis = waves->attr.i[0];
    waves = sliced_at_one(sliced_at_one(waves, axis, n), 1 - axis, n);
    return waves && waves->op == &lop_op_dft && waves->attr.i[0] == BACKWARD &&
           waves->child[0]->shape.ndim == 1 && lop_mul_ok(2, n + 1, &size) &&
           lop_rows(waves) == size;
}

/* I + Y C Y^H: what has to be looked at is noted. */
static bool by_numbers(look *w, const lop_node *a) {
    lop_infer_thin *thin = w->thin;
    const lop_node *base = a->child[0]->op == &lop_op_view ? a->child[0]->child[0] : a->child[0];
    if (!thin || a->n < 4 || lop_node_trait(base, LOP_IDENTITY) != LOP_TRUE ||
        !lop_node_alike(a->child[1], a->child[2], LOP_INFER_DEPTH))
        return false;
    if (thin->n == LOP_INFER_THIN) return false;
    thin->of[thin->n++] = a;
    return true;
}

/* Chains are walked down, not recursed into; a factor of one is. */
static bool known(look *w, const lop_node *a, int depth) {
    while (depth > 0 && --w->left >= 0 && lop_is_square(a)) {
        const lop_op *op = a->op;
        if (lop_node_trait(a, LOP_ORTHOGONAL) == LOP_TRUE) return !lop_infer_under_test(a);
        if (lop_node_trait(a, LOP_IDENTITY) == LOP_TRUE) return true;
        if (op == &lop_op_lowrankupdate) return by_numbers(w, a);
        if (op == &lop_op_sum) return hartley(a);
        if (op == &lop_op_scaled) {
            if (a->attr.num) return false; /* its value is not to be asked for */
            if (sine(a)) return true;
            if (hypot(a->attr.re, a->attr.im) != 1) return false;
        } else if (op == &lop_op_prod) {
            const bool left = a->child[1]->op == &lop_op_prod;
            if (!known(w, a->child[!left], depth - 1)) return false;
            a = a->child[left];
            continue;
        } else if (op == &lop_op_kron || op == &lop_op_blockdiag) {
            for (int i = 0; i < a->n; i++)
                if (!known(w, a->child[i], depth - 1)) return false;
            return true;
        } else if (op != &lop_op_view && op != &lop_op_inverse && op != &lop_op_power) {
            return false;
        }
        a = a->child[0];
    }
    return false;
}

bool lop_infer_unitary_but(const lop_node *a, lop_infer_thin *thin) {
    if (thin) thin->n = 0;
    return known(&(look){LOP_INFER_NODES, thin}, a, LOP_INFER_DEPTH);
}
