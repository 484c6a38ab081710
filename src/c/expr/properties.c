#include "properties.h"

#include "coefficients.h"
#include "op.h"

#include <float.h>
#include <math.h>

bool lop_node_alike(const lop_node *a, const lop_node *b, int depth) {
    if (a == b) return true;
    if (a->op != b->op || a->n != b->n || a->serial != b->serial || depth == 0 ||
        !lop_attr_equal(&a->attr, &b->attr))
        return false;
    for (int i = 0; i < a->n; i++)
        if (!lop_node_alike(a->child[i], b->child[i], depth - 1)) return false;
    return a->n > 0 || (a->dtype == b->dtype && a->weak == b->weak && a->core == b->core &&
                        lop_shape_equal(&a->shape, &b->shape));
}

/* Is y the transpose of x, as a view or by its kind? */
static bool turned_operand(const lop_node *x, const lop_node *y, int depth) {
    const bool above = y->op == &lop_op_view && y->attr.i[0] == LOP_T,
               below = x->op == &lop_op_view && x->attr.i[0] == LOP_T;
    if (above && lop_node_alike(x, y->child[0], depth)) return true;
    if (below && lop_node_alike(x->child[0], y, depth)) return true;
    return lop_node_turned(x, y, depth) == LOP_T ||
           (lop_node_trait(x, LOP_SYMMETRIC) == LOP_TRUE && lop_node_alike(x, y, depth));
}
/* The points of the rows of the one are those of the columns of the other. */
static bool turned_kernels(const lop_node *a, const lop_node *b, int depth) {
    int at[LOP_KERNELS];
    const int n = lop_kernel_points(a, at);
    if (!n || !lop_attr_equal(&a->attr, &b->attr)) return false;
    for (int i = 0; i < a->n; i++) {
        int other = i;
        for (int f = 0; f < n; f++)
            if (i == at[f] || i == at[f] + 1) other = 2 * at[f] + 1 - i;
        if (!lop_node_alike(a->child[i], b->child[other], depth)) return false;
    }
    return true;
}
/* One array as it is and turned, and its other triangle. */
static int turned_triangles(const lop_node *a, const lop_node *b, int depth) {
    const lop_node *x = a->child[0], *y = b->child[0];
    int mode = 0;
    if (y->op == &lop_op_swap && lop_node_alike(x, y->child[0], depth))
        mode = (int)y->attr.i[0];
    else if (x->op == &lop_op_swap && lop_node_alike(x->child[0], y, depth))
        mode = (int)x->attr.i[0];
    const bool other = !a->attr.i[0] != !b->attr.i[0];
    return other == ((mode & LOP_T) != 0) && !a->attr.i[1] == !b->attr.i[1] ? mode : 0;
}
/* [A B; C D] and [A^T C^T; B^T D^T]. */
static bool turned_blocks(const lop_node *a, const lop_node *b, int depth) {
    const int r = (int)a->attr.i[0], c = (int)a->attr.i[1];
    if (b->attr.i[0] != c || b->attr.i[1] != r) return false;
    for (int i = 0; i < a->n; i++)
        if (!turned_operand(a->child[i], b->child[i % c * r + i / c], depth)) return false;
    return true;
}
int lop_node_turned(const lop_node *a, const lop_node *b, int depth) {
    if (depth == 0 || a->op != b->op || a->n != b->n || a->dtype != b->dtype) return 0;
    if (a->op == &lop_op_triangular) return turned_triangles(a, b, depth - 1);
    if (lop_is_complex(a->dtype)) return 0;
    if (a->op == &lop_op_kernel) return turned_kernels(a, b, depth - 1) ? LOP_T : 0;
    if (a->op == &lop_op_block) return turned_blocks(a, b, depth - 1) ? LOP_T : 0;
    if (a->op != &lop_op_kron && a->op != &lop_op_blockdiag) return 0;
    for (int i = 0; i < a->n; i++)
        if (!turned_operand(a->child[i], b->child[i], depth - 1)) return 0;
    return LOP_T;
}

/* -- a product as a list of factors */

typedef struct factor {
    const lop_node *node;
    int mode;
    bool inverse;
} factor;
typedef struct factors {
    factor f[LOP_INFER_FACTORS];
    int n;
    lop_coef c; /* the coefficients' product */
} factors;

static bool flatten(factors *list, const lop_node *a, int mode, bool inverse, int depth) {
    if (depth == 0) return false;
    if (a->op == &lop_op_view)
        return flatten(list, a->child[0], mode ^ (int)a->attr.i[0], inverse, depth - 1);
    if (a->op == &lop_op_inverse) return flatten(list, a->child[0], mode, !inverse, depth - 1);
    if (a->op == &lop_op_scaled) {
        lop_coef c = lop_coef_of(&a->attr);
        if (mode & LOP_C) c = lop_coef_conj(a->ctx, c);
        list->c = inverse ? lop_coef_over(a->ctx, list->c, c) : lop_coef_times(a->ctx, list->c, c);
        return flatten(list, a->child[0], mode, inverse, depth - 1);
    }
    if (a->op == &lop_op_prod &&
        (!inverse || (lop_is_square(a->child[0]) && lop_is_square(a->child[1])))) {
        int first = ((mode & LOP_T) != 0) != inverse;
        return flatten(list, a->child[first], mode, inverse, depth - 1) &&
               flatten(list, a->child[!first], mode, inverse, depth - 1);
    }
    if (list->n == LOP_INFER_FACTORS) return false;
    if (!lop_is_complex(a->dtype)) mode &= LOP_T;
    list->f[list->n++] = (factor){a, mode, inverse};
    return true;
}

/* -- one analysis for both questions */

typedef struct look {
    int left; /* nodes that may still be looked at: a part that stands in many places is met in each
               */
} look;

static bool known(look *w, const lop_node *a, bool positive, int depth);

/* b is the adjoint of a. */
static bool mirrored(look *w, const factor *a, const factor *b, int depth) {
    if (a->inverse != b->inverse) return false;
    int turn = a->mode ^ b->mode, adjoint = lop_is_complex(a->node->dtype) ? LOP_H : LOP_T;
    if (!lop_node_alike(a->node, b->node, depth))
        return (turn ^ lop_node_turned(a->node, b->node, depth)) == adjoint && turn != adjoint;
    return turn == adjoint || (turn == 0 && known(w, a->node, false, depth));
}

static bool palindrome(look *w, const lop_node *a, bool positive, int depth) {
    factors list = {.c = {.re = 1}};
    if (!flatten(&list, a, 0, false, depth)) return false;
    if (list.c.im != 0) return false;
    if (positive && !lop_coef_test(a->ctx, list.c, LOP_COEF_POSITIVE) &&
        !lop_coef_test(a->ctx, list.c, LOP_COEF_ZERO))
        return false;
    int i = 0, j = list.n - 1;
    for (; i < j; i++, j--)
        if (!mirrored(w, &list.f[i], &list.f[j], depth - 1)) return false;
    return i > j || (list.f[i].node != a && known(w, list.f[i].node, positive, depth - 1));
}

/* The terms of a sum, each its own adjoint or one that stands beside its adjoint. */
static bool of_terms(look *w, const lop_node *a, bool positive, int depth) {
    const lop_node *x = a->child[0], *y = a->child[1];
    if (known(w, x, positive, depth - 1) && known(w, y, positive, depth - 1)) return true;
    if (positive) return false;
    factors p = {.c = {.re = 1}}, q = {.c = {.re = 1}};
    if (!flatten(&p, x, 0, false, depth) || !flatten(&q, y, LOP_H, false, depth) || p.n != q.n ||
        !lop_coef_same(a->ctx, p.c, q.c))
        return false;
    for (int i = 0; i < p.n; i++)
        if (p.f[i].mode != q.f[i].mode || p.f[i].inverse != q.f[i].inverse ||
            !lop_node_alike(p.f[i].node, q.f[i].node, depth))
            return false;
    return true;
}

/* The same rows as columns of what is so. */
static bool on_both_axes(look *w, const lop_node *a, bool positive, int depth) {
    const lop_node *in = a->child[0];
    const bool turned = in->op == &lop_op_view && (in->attr.i[0] & LOP_T) != 0;
    if (in->op == &lop_op_view) in = in->child[0]; /* a view of what is so is so too */
    if (in->op != &lop_op_sliced || a->n != in->n || a->attr.i[0] > 1 || in->attr.i[0] > 1 ||
        (a->attr.i[0] == in->attr.i[0]) != turned)
        return false;
    if (a->n > 1 ? !lop_node_alike(a->child[1], in->child[1], depth)
                 : a->attr.i[1] != in->attr.i[1] || a->attr.i[2] != in->attr.i[2] ||
                       a->attr.i[3] != in->attr.i[3])
        return false;
    return known(w, in->child[0], positive, depth - 1);
}

static bool known(look *w, const lop_node *a, bool positive, int depth) {
    if (depth == 0 || --w->left < 0 || !lop_is_square(a)) return false;
    if (lop_node_trait(a, positive ? LOP_POSITIVE : LOP_HERMITIAN) == LOP_TRUE) return true;
    if (positive && lop_node_trait(a, LOP_IDENTITY) == LOP_TRUE) return true;
    const lop_op *op = a->op;
    if (op == &lop_op_sum) return of_terms(w, a, positive, depth);
    if (op == &lop_op_prod || op == &lop_op_scaled || op == &lop_op_view || op == &lop_op_inverse)
        return palindrome(w, a, positive, depth);
    if (op == &lop_op_sliced) return on_both_axes(w, a, positive, depth);
    if (op == &lop_op_power) return known(w, a->child[0], positive, depth - 1);
    if (op == &lop_op_lowrank || op == &lop_op_lowrankupdate) {
        const int i = op == &lop_op_lowrankupdate;
        if (lop_node_alike(a->child[i], a->child[i + 1], depth) &&
            (i == 0 || known(w, a->child[0], positive, depth - 1)) &&
            (a->n == i + 2 || known(w, a->child[i + 2], positive, depth - 1)))
            return true;
    }
    if (op == &lop_op_kron || op == &lop_op_blockdiag || op == &lop_op_kronsum ||
        op == &lop_op_elementwise) {
        int i = 0;
        while (i < a->n && known(w, a->child[i], positive, depth - 1)) i++;
        if (i == a->n) return true;
    }
    return !positive && lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE;
}

bool lop_infer_hermitian(const lop_node *a) {
    return known(&(look){.left = LOP_INFER_NODES}, a, false, LOP_INFER_DEPTH);
}
/* Is anything in it, however deep, its own adjoint by assumption alone? Kinds pass on what is so of
 * their parts. */
static bool assumed_below(look *w, const lop_node *a, int depth) {
    if (depth == 0 || --w->left < 0) return true;
    const bool band = (a->op->flags & LOP_FLAG_band) != 0;
    if (a->op == &lop_op_dense || band)
        return lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE ||
               ((!band || lop_is_complex(a->dtype)) &&
                lop_node_trait(a, LOP_HERMITIAN) == LOP_TRUE);
    for (int i = 0; i < a->n; i++)
        if (assumed_below(w, a->child[i], depth - 1)) return true;
    return false;
}
bool lop_infer_hermitian_written(const lop_node *a) {
    return lop_infer_hermitian(a) &&
           !assumed_below(&(look){.left = LOP_INFER_NODES}, a, LOP_INFER_DEPTH);
}
bool lop_infer_semidefinite(const lop_node *a) {
    return known(&(look){.left = LOP_INFER_NODES}, a, true, LOP_INFER_DEPTH);
}

/* Kinds that are positive definite by assumption alone, and what is definite if they are: then a
 * semidefinite sum with one of them is. Of products and multiples by 0 that is not so. */
static bool assumed_within(look *w, const lop_node *a, int depth) {
    if (depth == 0 || --w->left < 0) return false;
    if (a->op == &lop_op_dense || a->op == &lop_op_banded || a->op == &lop_op_tridiagonal ||
        a->op == &lop_op_blocktridiagonal)
        return lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE;
    if (a->op == &lop_op_sum)
        return assumed_within(w, a->child[0], depth - 1) ||
               assumed_within(w, a->child[1], depth - 1);
    if (a->op == &lop_op_scaled && !lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_POSITIVE))
        return false;
    if (a->op != &lop_op_scaled && a->op != &lop_op_view && a->op != &lop_op_inverse) return false;
    return assumed_within(w, a->child[0], depth - 1);
}
bool lop_infer_assumed_definite(const lop_node *a) {
    return a->op == &lop_op_sum && lop_infer_semidefinite(a) &&
           assumed_within(&(look){.left = LOP_INFER_NODES}, a, LOP_INFER_DEPTH);
}

/* -- bands */

static lop_band bands(look *w, const lop_node *a, int depth);

/* Is Q^T D P diagonal for each diagonal D, going by Q^T and P: transposed and not, one selection,
 * each of whose rows has a single entry, or one permutation? */
static bool undoes(const factor *q, const factor *p, int depth) {
    const lop_node *a = q->node, *b = p->node;
    if (q->inverse || p->inverse || (p->mode & LOP_T)) return false;
    if (a->op == &lop_op_permutation && b->op == a->op) {
        const lop_node *i = a->child[0], *j = b->child[0];
        if (q->mode & LOP_T) return lop_node_alike(i, j, depth);
        return (i->op == &lop_op_inverse_permutation && lop_node_alike(i->child[0], j, depth)) ||
               (j->op == &lop_op_inverse_permutation && lop_node_alike(j->child[0], i, depth));
    }
    return a->op == &lop_op_selection && (q->mode & LOP_T) && lop_node_alike(a, b, depth);
}

/* Widths add, but for what lies between a selection and its transpose, or inverse permutations. */
static lop_band bands_of_factors(look *w, const factor *f, int n, int depth) {
    const lop_band full = {INT64_MAX, INT64_MAX};
    lop_band all = {0, 0};
    for (int i = 0; i < n; i++) {
        lop_band one = full;
        int j = i + 1;
        while (j < n && !undoes(&f[i], &f[j], depth)) j++;
        if (depth == 0 || --w->left < 0) return full;
        if (j < n) {
            one = bands_of_factors(w, f + i + 1, j - i - 1, depth - 1);
            if (one.l || one.u) return full;
            i = j;
        } else {
            one = bands(w, f[i].node, depth - 1);
            if (f[i].mode & LOP_T) one = (lop_band){one.u, one.l};
            if (f[i].inverse) one = (lop_band){one.l ? INT64_MAX : 0, one.u ? INT64_MAX : 0};
        }
        if (!lop_add_ok(all.l, one.l, &all.l)) all.l = INT64_MAX;
        if (!lop_add_ok(all.u, one.u, &all.u)) all.u = INT64_MAX;
    }
    return all;
}

/* -- products of what is a grid of blocks: of Kron(A, B) the blocks a_ij B, of a BlockDiag its own
 */

static const lop_node *unscaled(const lop_node *a) {
    while (a->op == &lop_op_scaled) a = a->child[0];
    return a;
}

/* Blocks to a side; of other square matrices rows; 0: there is no such grid. */
static int64_t grid_of(const lop_node *a) {
    if (a->op == &lop_op_kron && lop_is_square(a->child[0])) return lop_rows(a->child[0]);
    if (a->op != &lop_op_blockdiag) return lop_is_square(a) ? lop_rows(a) : 0;
    for (int i = 1; i < a->n; i++)
        if (!lop_shape_equal(&a->child[i]->shape, &a->child[0]->shape))
            return lop_is_square(a) ? lop_rows(a) : 0;
    return a->n;
}

static int64_t coarser(int64_t width, int64_t times) { return width / times + (width % times > 0); }

/* The band of a factor in blocks of a grid of g, which divides its own. */
static lop_band band_in_blocks(look *w, const factor *f, int64_t g, int depth) {
    const lop_node *a = unscaled(f->node);
    const int64_t own = grid_of(a);
    lop_band b = {0, 0};
    if (a->op == &lop_op_kron && lop_is_square(a->child[0]))
        b = bands(w, a->child[0], depth);
    else if (own == lop_rows(a))
        b = bands(w, a, depth);
    if (f->mode & LOP_T) b = (lop_band){b.u, b.l};
    if (f->inverse) return (lop_band){b.l ? g : 0, b.u ? g : 0};
    return (lop_band){coarser(b.l, own / g), coarser(b.u, own / g)};
}

/* The band of a square product by the blocks of its factors: H^T D H of H = Kron(I, B) is block
 * diagonal, whatever B's sizes are. */
static lop_band bands_by_blocks(look *w, const lop_node *a, const factors *list, int depth) {
    lop_band all = {0, 0};
    int64_t g = 0;
    if (!lop_is_square(a)) return (lop_band){INT64_MAX, INT64_MAX};
    for (int i = 0; i < list->n; i++) {
        int64_t x = grid_of(unscaled(list->f[i].node)), rest;
        if (x == 0) return (lop_band){INT64_MAX, INT64_MAX};
        for (; g > 0; g = rest) {
            rest = x % g;
            x = g;
        }
        g = x;
    }
    if (depth == 0 || g < 2 || lop_rows(a) % g) return (lop_band){INT64_MAX, INT64_MAX};
    for (int i = 0; i < list->n; i++) {
        const lop_band one = band_in_blocks(w, &list->f[i], g, depth - 1);
        all.l = all.l + one.l < g ? all.l + one.l : g - 1;
        all.u = all.u + one.u < g ? all.u + one.u : g - 1;
    }
    const int64_t rows = lop_rows(a) / g;
    return (lop_band){(all.l + 1) * rows - 1, (all.u + 1) * rows - 1};
}

static lop_band narrower(lop_band a, lop_band b) {
    return (lop_band){a.l < b.l ? a.l : b.l, a.u < b.u ? a.u : b.u};
}

static lop_band wider(lop_band a, lop_band b) {
    return (lop_band){a.l > b.l ? a.l : b.l, a.u > b.u ? a.u : b.u};
}

/* U C V^H, of a LowRank and of what is added to a base. */
static bool flatten_low(factors *list, const lop_node *a, int depth) {
    const int i = a->op == &lop_op_lowrankupdate;
    return flatten(list, a->child[i], LOP_N, false, depth) &&
           (a->n <= i + 2 || flatten(list, a->child[i + 2], LOP_N, false, depth)) &&
           flatten(list, a->child[i + 1], LOP_H, false, depth);
}

static bool has_grid(const factors *list) {
    for (int i = 0; i < list->n; i++) {
        const lop_node *a = unscaled(list->f[i].node);
        if ((a->op == &lop_op_kron || a->op == &lop_op_blockdiag) && !lop_is_square(a)) return true;
    }
    return false;
}

static bool has_selection(const factors *list) {
    for (int i = 0; i < list->n; i++)
        if (list->f[i].node->op == &lop_op_selection || list->f[i].node->op == &lop_op_permutation)
            return true;
    return false;
}

/* Of more square blocks than are looked into. */
static lop_band bands_of_blocks(const lop_node *a) {
    int64_t most = 0;
    for (int i = 0; i < a->n; i++) {
        if (!lop_is_square(a->child[i])) return (lop_band){INT64_MAX, INT64_MAX};
        if (lop_rows(a->child[i]) > most) most = lop_rows(a->child[i]);
    }
    return (lop_band){most ? most - 1 : 0, most ? most - 1 : 0};
}

static lop_band bands(look *w, const lop_node *a, int depth) {
    const int64_t last = lop_rows(a) > 0 ? lop_rows(a) - 1 : 0,
                  right = lop_cols(a) > 0 ? lop_cols(a) - 1 : 0;
    const bool low = a->op == &lop_op_lowrank || a->op == &lop_op_lowrankupdate;
    lop_band part[LOP_INFER_FACTORS], own = {last, right};
    if (depth > 0 && a->op == &lop_op_blockdiag && a->n > LOP_INFER_FACTORS)
        return narrower(own, bands_of_blocks(a));
    if (depth == 0 || --w->left < 0 || a->n > LOP_INFER_FACTORS || (!a->op->bands && !low))
        return own;
    factors list = {.c = {.re = 1}};
    if (low ? flatten_low(&list, a, depth)
            : a->op == &lop_op_prod && flatten(&list, a, 0, false, depth)) {
        const lop_band most = own;
        if (has_grid(&list)) own = bands_by_blocks(w, a, &list, depth);
        if (has_selection(&list)) own = narrower(own, bands_of_factors(w, list.f, list.n, depth));
        own = narrower(own, most);
        if (a->op == &lop_op_lowrankupdate) own = wider(own, bands(w, a->child[0], depth - 1));
        if (low || has_selection(&list) || own.l < most.l || own.u < most.u) return own;
    }
    if (low) return own;
    for (int i = 0; i < a->n; i++)
        part[i] = a->child[i]->op->cls == LOP_OPERATOR ? bands(w, a->child[i], depth - 1)
                                                       : (lop_band){0, 0};
    return narrower(own, a->op->bands(a, part));
}
lop_band lop_infer_bands(const lop_node *a) {
    return bands(&(look){.left = LOP_INFER_NODES}, a, LOP_INFER_DEPTH);
}

/* -- a bound of the rank */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t rank(look *w, const lop_node *a, int depth);

static int64_t rank_of_all(look *w, const lop_node *a, int64_t most, bool product, int depth) {
    int64_t r = product;
    for (int i = 0; i < a->n && r < most; i++) {
        const int64_t x = rank(w, a->child[i], depth - 1);
        if (product ? !lop_mul_ok(r, x, &r) : !lop_add_ok(r, x, &r)) return most;
        if (product && r == 0) return 0;
    }
    return least(r, most);
}

/* Does it take constant vectors to zero, as differences do that see no edge? */
static bool ends_constants(look *w, const lop_node *a, int depth) {
    const lop_op *op = a->op;
    if (depth == 0 || --w->left < 0) return false;
    if (op == &lop_op_laplacian) return a->attr.i[0] != 0;                      /* Dirichlet */
    if (op == &lop_op_difference) return a->attr.i[1] > 0 && a->attr.i[3] == 2; /* periodic */
    if (op == &lop_op_prod) return ends_constants(w, a->child[1], depth - 1);
    if (op == &lop_op_scaled || (op == &lop_op_power && a->attr.i[0] > 0))
        return ends_constants(w, a->child[0], depth - 1);
    const bool all = op == &lop_op_sum || op == &lop_op_kronsum || op == &lop_op_blockdiag,
               one = op == &lop_op_kron;
    if (!all && !one) return false;
    for (int i = 0; i < a->n; i++)
        if (ends_constants(w, a->child[i], depth - 1) == one) return one;
    return all && a->n > 0;
}

static int64_t rank(look *w, const lop_node *a, int depth) {
    int64_t most = least(lop_rows(a), lop_cols(a));
    const lop_op *op = a->op;
    if (depth == 0 || --w->left < 0 || most == 0) return most;
    if (lop_rows(a) == lop_cols(a) && ends_constants(w, a, depth)) most--;
    if (op == &lop_op_offdiag)
        return least(most, lop_diag_length(lop_rows(a), lop_cols(a), a->attr.i[0]));
    if (op == &lop_op_power && a->attr.i[0] == 0) return most;
    if (op == &lop_op_power || op == &lop_op_inverse) return rank(w, a->child[0], depth - 1);
    if (op == &lop_op_zeros) return 0;
    if (op == &lop_op_full) return 1;
    if (op == &lop_op_prod) /* a thin factor shows in its own sizes */
        return least(least(rank(w, a->child[0], depth - 1), rank(w, a->child[1], depth - 1)), most);
    if (op == &lop_op_lowrank) return least(lop_cols(a->child[0]), most);
    if (op == &lop_op_sum || op == &lop_op_blockdiag) return rank_of_all(w, a, most, false, depth);
    if (op == &lop_op_kron) return rank_of_all(w, a, most, true, depth);
    if (op == &lop_op_view || op == &lop_op_scaled) return rank(w, a->child[0], depth - 1);
    return most;
}

int64_t lop_infer_rank(const lop_node *a) {
    return rank(&(look){.left = LOP_INFER_NODES}, a, LOP_INFER_DEPTH);
}

/* -- has it an inverse? */

static bool definite(look *w, const lop_node *a, int depth) {
    const lop_op *op = a->op;
    if (depth == 0 || --w->left < 0 || !lop_is_square(a)) return false;
    if (op == &lop_op_sum) {
        const lop_node *x = a->child[0], *y = a->child[1];
        return (definite(w, x, depth - 1) && known(w, y, true, depth - 1)) ||
               (definite(w, y, depth - 1) && known(w, x, true, depth - 1));
    }
    if (op == &lop_op_view || op == &lop_op_inverse || op == &lop_op_power)
        return definite(w, a->child[0], depth - 1);
    if (op == &lop_op_scaled)
        return lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_POSITIVE) &&
               lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_FINITE) &&
               definite(w, a->child[0], depth - 1);
    return (lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE ||
            lop_node_trait(a, LOP_IDENTITY) == LOP_TRUE) &&
           !lop_infer_under_test(a);
}

static bool regular(look *w, const lop_node *a, int depth) {
    const lop_op *op = a->op;
    if (depth == 0 || --w->left < 0 || !lop_is_square(a)) return false;
    if (op == &lop_op_scaled &&
        (lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_ZERO) || isnan(a->attr.re)))
        return false;
    if (op == &lop_op_prod || op == &lop_op_kron || op == &lop_op_blockdiag || op == &lop_op_view ||
        op == &lop_op_inverse || op == &lop_op_power || op == &lop_op_scaled) {
        for (int i = 0; i < a->n; i++)
            if (!regular(w, a->child[i], depth - 1)) return false;
        return true;
    }
    return lop_infer_unitary(a) || definite(w, a, depth);
}

lop_truth lop_infer_regular(const lop_node *a) {
    if (regular(&(look){.left = LOP_INFER_NODES}, a, LOP_INFER_DEPTH)) return LOP_TRUE;
    if (!lop_is_square(a)) return LOP_FALSE;
    return lop_infer_rank(a) < lop_rows(a) ? LOP_FALSE : LOP_UNKNOWN;
}
