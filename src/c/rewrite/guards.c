/* guards.c: guards look at shapes, dtypes, kinds and assumptions; never at values. */
#include "guards.h"

#include "cheap_to_solve.h"
#include "ops/shared/sparse_solver.h"

#include "costs.h"
#include "expr/properties.h"

#include <string.h>

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

static lop_truth truth(bool b) { return b ? LOP_TRUE : LOP_FALSE; }
static lop_truth square(const lop_node *a) {
    return truth(a->op->cls == LOP_OPERATOR && lop_is_square(a));
}

static bool adds_nothing(const lop_node *root, const lop_node *gone, const lop_node *stays) {
    (void)gone;
    return root->dtype == stays->dtype && root->weak == stays->weak &&
           lop_shape_equal(&root->shape, &stays->shape);
}
lop_truth lop_when_left_weak(const lop_match *m) {
    return truth(adds_nothing(m->root, m->root->child[0], m->root->child[1]));
}
lop_truth lop_when_right_weak(const lop_match *m) {
    return truth(adds_nothing(m->root, m->root->child[1], m->root->child[0]));
}

lop_truth lop_when_krons_fit(const lop_match *m) {
    if (m->root->n != 2) return LOP_FALSE;
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    if (!lop_has(a, LOP_FLAG_of_parts) || b->op != a->op || a->n != b->n) return LOP_FALSE;
    for (int i = 0; i < a->n; i++)
        if (lop_cols(a->child[i]) != lop_rows(b->child[i])) return LOP_FALSE;
    return LOP_TRUE;
}

lop_truth lop_when_blocks_add(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    if (a->op == &lop_op_view && b->op == &lop_op_view) {
        if (!lop_attr_equal(&a->attr, &b->attr)) return LOP_FALSE;
        a = a->child[0];
        b = b->child[0];
    }
    if (a->n != b->n) return LOP_FALSE;
    for (int i = 0; i < a->n; i++)
        if (lop_rows(a->child[i]) != lop_rows(b->child[i]) ||
            lop_cols(a->child[i]) != lop_cols(b->child[i]))
            return LOP_FALSE;
    return LOP_TRUE;
}

/* No integers below, as far as one looks: those meet weak leaves in an order that views change. */
static bool floats_below(const lop_node *a, int depth) {
    if (a->n == 0 || lop_has(a, LOP_FLAG_indices)) return a->weak || lop_is_blas(a->dtype);
    for (int i = 0; depth > 0 && i < a->n; i++)
        if (!floats_below(a->child[i], depth - 1)) return false;
    return depth > 0;
}
lop_truth lop_when_low_update(const lop_match *m) {
    const lop_node *root = m->root->child[0],
                   *a = root->op == &lop_op_inverse || root->op == &lop_op_view ? root->child[0]
                                                                                : root,
                   *base = a->child[0], *u = a->child[1];
    if (a->op == &lop_op_sum) {
        bool last = a->child[1]->op == &lop_op_lowrank;
        base = a->child[last ? 0 : 1];
        u = a->child[last ? 1 : 0]->child[0];
    }
    const bool solved = lop_cheap_to_solve(base) || base->op == &lop_op_inverse;
    return truth(lop_cols(u) <= lop_rows(a) / 2 && solved && floats_below(a, 12));
}

static bool diagonals(const lop_node *k) {
    for (int i = 0; i < k->n; i++)
        if (k->child[i]->op != &lop_op_diag) return false;
    return true;
}
lop_truth lop_when_diagonals(const lop_match *m) { /* integers wrap where they are asked for */
    return truth(lop_is_blas(m->root->dtype) && diagonals(m->root));
}
lop_truth lop_when_not_diagonals(const lop_match *m) {
    const lop_node *k = m->root->child[0];
    return truth(!lop_is_blas(k->dtype) || !diagonals(k));
}

lop_truth lop_when_orthogonal(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a'), *k = a->op == &lop_op_view ? a->child[0] : a;
    bool exact = !lop_is_blas(a->dtype) && !lop_is_blas(HOLE(m, 'x')->dtype);
    return truth(!exact && lop_is_square(a) && lop_node_trait(k, LOP_ORTHOGONAL) == LOP_TRUE);
}

static bool square_factors(const lop_node *k) {
    if (k->op != &lop_op_kron && k->op != &lop_op_blockdiag) return false;
    for (int i = 0; i < k->n; i++)
        if (!lop_is_square(k->child[i])) return false;
    return true;
}
lop_truth lop_when_square_factors(const lop_match *m) {
    const lop_node *a = m->root->child[0]; /* beside one of no rows a singular factor is none */
    return truth(square_factors(a) && lop_rows(a) > 0);
}

/* Of a sum of a BlockDiag with something: are all its blocks square? */
lop_truth lop_when_square_blocks(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    return truth(square_factors(a->op == &lop_op_blockdiag ? a : b));
}
/* A BlockDiag between I (x) G on its right or left: are its blocks' sizes multiples of G's? */
lop_truth lop_when_blocks_meet_kron(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    const bool first = a->op == &lop_op_blockdiag;
    const lop_node *kind = first ? a : b, *kron = first ? b : a;
    if (kron->n != 2 || kron->child[0]->op != &lop_op_identity || lop_nbatch(kron) ||
        lop_nbatch(kind) || !lop_is_square(kron->child[1]))
        return LOP_FALSE;
    const int64_t q = lop_rows(kron->child[1]);
    for (int i = 0; i < kind->n; i++) {
        const int64_t size = first ? lop_cols(kind->child[i]) : lop_rows(kind->child[i]);
        if (q == 0 || size == 0 || size % q) return LOP_FALSE;
    }
    return LOP_TRUE;
}
lop_truth lop_when_inverse_blocks(const lop_match *m) {
    return truth(square_factors(m->root->child[0]->child[0]));
}

lop_truth lop_when_factors_differ(const lop_match *m) {
    return truth(!lop_kron_is_plain(m->root->child[0], m->root->dtype));
}

lop_truth lop_when_real(const lop_match *m) {
    return truth((m->root->attr.i[0] & LOP_C) != 0 && !lop_is_complex(m->root->dtype));
}
lop_truth lop_when_transposes(const lop_match *m) {
    return truth((m->root->attr.i[0] & LOP_T) != 0);
}
lop_truth lop_when_same_attr(const lop_match *m) {
    return truth(lop_attr_equal(&m->root->child[0]->attr, &m->root->child[1]->attr));
}
/* And integers are of one dtype: those of a value wrap where they stand. */
lop_truth lop_when_same_swap(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    return truth(lop_attr_equal(&a->attr, &b->attr) &&
                 (a->dtype == b->dtype || (lop_is_blas(a->dtype) && lop_is_blas(b->dtype))));
}
lop_truth lop_when_one_sided(const lop_match *m) {
    const lop_attr *band = &m->root->child[0]->attr;
    return truth((band->i[0] == 0 || band->i[1] == 0) && band->i[2] == 0);
}
lop_truth lop_when_conjugates(const lop_match *m) {
    return truth((m->root->attr.i[0] & LOP_C) != 0);
}
lop_truth lop_when_no_batch(const lop_match *m) {
    return truth(lop_nbatch(m->root->child[0]) == 0);
}
lop_truth lop_when_both_square(const lop_match *m) {
    return lop_and(square(HOLE(m, 'a')), square(HOLE(m, 'b')));
}
lop_truth lop_when_square(const lop_match *m) { return square(HOLE(m, 'a')); }
static lop_truth known(const lop_match *m, lop_trait trait) {
    const lop_node *a = HOLE(m, 'a');
    return a->op->cls == LOP_OPERATOR ? lop_node_trait(a, trait) : LOP_FALSE;
}
lop_truth lop_when_symmetric(const lop_match *m) { return known(m, LOP_SYMMETRIC); }
lop_truth lop_when_self_adjoint(const lop_match *m) { return known(m, LOP_HERMITIAN); }
lop_truth lop_when_unitary(const lop_match *m) { return known(m, LOP_ORTHOGONAL); }
lop_truth lop_when_no_rows(const lop_match *m) {
    const lop_node *a = m->root->child[0], *x = m->root->child[1];
    return truth(lop_is_square(a) && lop_rows(a) == 0 &&
                 lop_shape_equal(&m->root->shape, &x->shape));
}
lop_truth lop_when_deficient(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    return truth(lop_is_square(a) && lop_infer_rank(a) < lop_rows(a));
}
lop_truth lop_when_hole_deficient(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    return truth(lop_is_blas(m->root->dtype) && lop_is_square(a) &&
                 lop_infer_rank(a) < lop_rows(a));
}
lop_truth lop_when_indefinite(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    return truth(a->op == &lop_op_dense && lop_is_blas(m->root->dtype) &&
                 (a->attr.i[0] == LOP_ASSUME_SYMMETRIC || a->attr.i[0] == LOP_ASSUME_HERMITIAN));
}
bool lop_is_composed(const lop_node *a) {
    return lop_has(a->op == &lop_op_view ? a->child[0] : a, LOP_FLAG_composed);
}
lop_truth lop_when_composed(const lop_match *m) {
    return truth(lop_is_composed(m->root->child[0]));
}
lop_truth lop_when_coef_zero(const lop_match *m) {
    return truth(lop_coef_test(m->root->ctx, lop_coef_of(&ATTR(m, 'c')), LOP_COEF_ZERO));
}
lop_truth lop_when_coef_nonzero(const lop_match *m) { return lop_not(lop_when_coef_zero(m)); }
lop_truth lop_when_coef_minus_one(const lop_match *m) {
    return truth(lop_coef_test(m->root->ctx, lop_coef_of(&ATTR(m, 'c')), LOP_COEF_MINUS_ONE));
}
lop_truth lop_when_triangular(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    if (a->op == &lop_op_view) a = a->child[0];
    return truth(a->op == &lop_op_dense &&
                 (a->attr.i[0] == LOP_ASSUME_LOWER || a->attr.i[0] == LOP_ASSUME_UPPER));
}
lop_truth lop_when_positive(const lop_match *m) { return known(m, LOP_POSITIVE); }
/* Or a sum of what was assumed so and of semidefinite terms: where Cholesky fails, it is not. */
lop_truth lop_when_definite(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    const bool part =
        a->op == &lop_op_sum && (lop_node_trait(a->child[0], LOP_POSITIVE) == LOP_TRUE ||
                                 lop_node_trait(a->child[1], LOP_POSITIVE) == LOP_TRUE);
    if (part && lop_is_blas(m->root->dtype) && lop_infer_semidefinite(a)) return LOP_TRUE;
    return known(m, LOP_POSITIVE);
}

lop_truth lop_when_shift(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a'),
                   *x = m->root->child[0] == a ? m->root->child[1] : m->root->child[0];
    if (!lop_is_blas(m->root->dtype) || a->core != 2 || !lop_is_square(a) ||
        a->dtype != m->root->dtype || a->weak || m->root->weak || a->op == &lop_op_eye ||
        !lop_shape_equal(&a->shape, &m->root->shape))
        return LOP_FALSE;
    if (x->op != &lop_op_scale) return LOP_TRUE;
    return truth(lop_coef_test(a->ctx, lop_coef_of(&x->attr), LOP_COEF_FINITE) &&
                 (x->attr.im == 0 || lop_is_complex(a->dtype)));
}
static bool own(const lop_node *a) {
    return lop_node_trait(a, LOP_SYMMETRIC) == LOP_TRUE || lop_infer_hermitian(a);
}
/* By transposes; conjugates too of what is its own transpose and its own adjoint, hence real. */
lop_truth lop_when_own_view(const lop_match *m) {
    const lop_node *v = m->root->op == &lop_op_view ? m->root : m->root->child[0], *a = v->child[0];
    const bool real = lop_node_trait(a, LOP_SYMMETRIC) == LOP_TRUE &&
                      lop_node_trait(a, LOP_HERMITIAN) == LOP_TRUE;
    return truth(lop_is_blas(m->root->dtype) && (real || ((v->attr.i[0] & LOP_T) && own(a))));
}
lop_truth lop_when_own_conj(const lop_match *m) {
    return truth(lop_is_blas(m->root->dtype) && own(m->root->child[0]->child[0]));
}
/* Not of leaves: what a user assumed is taken at its word elsewhere. */
bool lop_is_tried(const lop_node *a) {
    const lop_node *k = a->op == &lop_op_view ? a->child[0] : a;
    const bool taken = k->op == &lop_op_dense && k->attr.i[0] != LOP_ASSUME_TRIED;
    return a->op->cls == LOP_OPERATOR && a->op->max != 0 && !taken && lop_infer_hermitian(a);
}
lop_truth lop_when_hermitian(const lop_match *m) {
    return truth(lop_is_blas(m->root->dtype) && lop_is_tried(HOLE(m, 'a')));
}

lop_truth lop_when_leaf_kind(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    if (a->op == &lop_op_block) return LOP_TRUE;
    for (int i = 0; i < a->n; i++)
        if (a->child[i]->op->cls == LOP_OPERATOR) return LOP_FALSE;
    return LOP_TRUE;
}
lop_truth lop_when_flat(const lop_match *m) {
    return truth(lop_rows(m->root) > 0 && lop_rows(m->root) <= lop_cols(m->root) / 2);
}
lop_truth lop_when_no_dense(const lop_match *m) { return truth(!HOLE(m, 'a')->op->dense); }
lop_truth lop_when_no_diagonal(const lop_match *m) { return truth(!HOLE(m, 'a')->op->diagonal); }
lop_truth lop_when_no_element(const lop_match *m) { return truth(!HOLE(m, 'a')->op->element); }

lop_truth lop_when_main(const lop_match *m) { return truth(ATTR(m, 'k').i[0] == 0); }
lop_truth lop_when_main_square(const lop_match *m) {
    const lop_node *p = m->root->child[0];
    return truth(ATTR(m, 'k').i[0] == 0 && lop_is_square(p) && lop_is_square(p->child[0]) &&
                 lop_is_square(p->child[1]));
}
lop_truth lop_when_main_kron(const lop_match *m) {
    return truth(ATTR(m, 'k').i[0] == 0 && square_factors(m->root->child[0]));
}

lop_truth lop_when_cast_same(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a');
    return truth(!a->weak && (int64_t)a->dtype + 1 == ATTR(m, 'd').i[3]);
}
static bool widens(lop_dtype from, lop_dtype to) {
    return from != to && lop_promote(from, to) == to;
}
lop_truth lop_when_widens(const lop_match *m) { /* the integers of a value wrap where they stand */
    lop_dtype from = m->root->child[0]->dtype;
    return truth((lop_is_blas(from) || !m->root->attr.i[0]) && widens(from, m->root->dtype));
}
lop_truth lop_when_column_widens(const lop_match *m) { /* of a product with a unit vector */
    const lop_node *x = HOLE(m, 'x');
    while (x->op == &lop_op_cast) x = x->child[0];
    return x->op == &lop_op_unit ? lop_when_widens(m) : LOP_FALSE;
}
lop_truth lop_when_inner_widens(const lop_match *m) {
    return HOLE(m, 'a')->n > 0 ? lop_when_widens(m) : LOP_FALSE;
}
lop_truth lop_when_cast_widens(const lop_match *m) {
    const lop_node *inner = m->root->child[0];
    lop_dtype from = inner->child[0]->dtype;
    bool same = inner->attr.i[0] == m->root->attr.i[0] || lop_is_blas(from),
         weak = inner->child[0]->weak && /* of no digits of its own */
                (lop_is_blas(inner->dtype) || !m->root->attr.i[0]);
    return truth(same && (weak || lop_promote(from, inner->dtype) == inner->dtype) &&
                 lop_promote(inner->dtype, m->root->dtype) == m->root->dtype);
}
lop_truth lop_when_narrow(const lop_match *m) {
    const lop_node *k = m->root->child[0];
    if (k->op == &lop_op_view) k = k->child[0];
    for (int i = 0; k->n > 0 && i < LOP_MAXPARAM; i++) {
        lop_role role = k->op->param[i].role; /* all children are arrays of numbers */
        if (i == 0 && role == LOP_P_NONE) return LOP_FALSE;
        if (role == LOP_P_OPERATOR || role == LOP_P_OPERATORS || role == LOP_P_BLOCKS ||
            role == LOP_P_INDEX || role == LOP_P_FOREIGN)
            return LOP_FALSE;
    }
    const lop_dtype wide = lop_parameter_dtype(k, m->root->dtype);
    for (int i = 0; i < k->n; i++)
        if (k->child[i]->n > 0 && widens(k->child[i]->dtype, wide)) return LOP_TRUE;
    return LOP_FALSE;
}
lop_dtype lop_digits_of(lop_dtype root, lop_dtype x) {
    return lop_is_complex(root) && !lop_is_complex(x) ? lop_dtype_real(root) : root;
}
/* A kind of arrays alone casts them, and x, as it multiplies. */
static bool has_parts(const lop_node *a) {
    if (a->op == &lop_op_view) a = a->child[0];
    for (int i = 0; i < a->n; i++)
        if (a->child[i]->n > 0 || a->child[i]->op->cls == LOP_OPERATOR) return true;
    return false;
}
lop_truth lop_when_fewer_digits(const lop_match *m) {
    const lop_dtype from = m->root->child[1]->dtype;
    return truth(widens(from, lop_digits_of(m->root->dtype, from)) && has_parts(m->root->child[0]));
}
lop_truth lop_when_same_sizes(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    if (a->op == &lop_op_view && b->op == &lop_op_view) {
        if (!lop_attr_equal(&a->attr, &b->attr)) return LOP_FALSE;
        a = a->child[0];
        b = b->child[0];
    }
    if (a->n != b->n) return LOP_FALSE;
    for (int i = 0; i < a->n; i++)
        if (a->child[i]->op == &lop_op_sizes
                ? !lop_shape_equal(&a->child[i]->shape, &b->child[i]->shape)
                : lop_cols(a->child[i]) != lop_cols(b->child[i]))
            return LOP_FALSE;
    return truth(lop_attr_equal(&a->attr, &b->attr));
}
lop_truth lop_when_one_level(const lop_match *m) { return truth(HOLE(m, 's')->shape.ndim == 1); }
lop_truth lop_when_array_real(const lop_match *m) {
    return truth(!lop_is_complex(HOLE(m, 'a')->dtype));
}

lop_truth lop_when_scale_one(const lop_match *m) {
    const lop_node *root = m->root, *a = root->child[0];
    return truth(root->dtype == a->dtype && root->weak == a->weak &&
                 lop_coef_test(root->ctx, lop_coef_of(&root->attr), LOP_COEF_ONE));
}
lop_truth lop_when_inexact(const lop_match *m) { return truth(lop_is_blas(m->root->dtype)); }
lop_truth lop_when_inexact_square_factors(const lop_match *m) {
    return truth(lop_is_blas(m->root->dtype) && square_factors(m->root->child[0]));
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
lop_truth lop_when_low_ranks(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    int64_t r;
    if (!lop_is_blas(m->root->dtype) ||
        !lop_mul_ok(lop_cols(a->child[0]), lop_cols(b->child[0]), &r))
        return LOP_FALSE;
    return truth(r <= least(lop_rows(a), lop_cols(a)) / 2);
}
/* One product with r k columns and two passes over them, against the dense form and its product. */
lop_truth lop_when_low_elementwise(const lop_match *m) {
    const lop_node *h = m->root->child[0], *x = m->root->child[1];
    const int low = h->child[0]->op == &lop_op_lowrank ? 0 : 1;
    const lop_node *uv = h->child[low], *a = h->child[1 - low];
    if (!lop_is_blas(m->root->dtype) || uv->op != &lop_op_lowrank || uv->n != 2 || !a->op->flops)
        return LOP_FALSE;
    int64_t columns;
    if (!lop_mul_ok(lop_cols(uv->child[0]), lop_cols(x), &columns)) return LOP_FALSE;
    const double rows = (double)lop_rows(h), cols = (double)lop_cols(h);
    const double mixed = a->op->flops(a, columns) + 3 * (rows + cols) * (double)columns;
    return truth(mixed < 2 * rows * cols * (1 + (double)lop_cols(x)));
}
lop_truth lop_when_lowrank_square(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    bool all = lop_rows(a) > 0;
    for (int i = 0; i < a->n; i++) all = all && lop_is_square(a->child[i]);
    return truth(all);
}
lop_truth lop_when_full_plain(const lop_match *m) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1];
    const lop_node *full = a->op == &lop_op_full ? a : b;
    return truth(lop_nbatch(full) == 0 && lop_is_blas(m->root->dtype));
}

bool lop_block_triangle(const lop_node *block, bool lower) {
    const int64_t r = block->attr.i[0];
    if (block->attr.i[1] != r) return false;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++) {
            const lop_node *a = block->child[i * r + j];
            const bool zeros = a->op == &lop_op_zeros && lop_nbatch(a) == 0;
            if (i == j ? !lop_is_square(a) : (lower ? j > i : j < i) && !zeros) return false;
        }
    return true;
}
lop_truth lop_when_block_triangle(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    return truth(lop_block_triangle(a, true) || lop_block_triangle(a, false));
}
lop_truth lop_when_block_triangle_alone(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    bool alone = true;
    for (int64_t i = 0; i < a->n; i++)
        alone = alone && (i % (a->attr.i[1] + 1) == 0 || lop_nbatch(a->child[i]) == 0);
    return alone ? lop_when_block_triangle(m) : LOP_FALSE;
}

/* Below so many rows LU of the dense form is quicker. Of more than so many rows in the complement a
 * sparse factor of the whole is: its fill is less than a dense complement. */
enum { BORDERED_ROWS = 24, COMPLEMENT_ROWS = 64 };
int lop_bordered_pivot(const lop_node *block, bool updates) {
    if (block->attr.i[0] != 2 || block->attr.i[1] != 2) return -1;
    const lop_node *a = block->child[0], *d = block->child[3];
    if (!lop_is_square(a) || !lop_is_square(d)) return -1;
    const int64_t p = lop_rows(a), q = lop_rows(d);
    const bool first = p > 0 && p >= q / 2 &&
                       (lop_cheap_to_solve(a) || (updates && lop_solved_as_update(a))),
               last = q > 0 && q >= p / 2 &&
                      (lop_cheap_to_solve(d) || (updates && lop_solved_as_update(d)));
    if (first && last) return q > p;
    return first ? 0 : last ? 1 : -1;
}
bool lop_border_is_sparse(const lop_node *block) {
    const int64_t p = lop_rows(block->child[0]), q = lop_rows(block) - p;
    return (p < q ? p : q) > COMPLEMENT_ROWS && lop_sparse_pays(block);
}
lop_truth lop_when_bordered(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    const bool large = lop_rows(a) >= BORDERED_ROWS || a->ctx->alike != 0;
    const bool solve = m->root->op == &lop_op_solve && lop_dtype_real(m->root->dtype) == LOP_f64;
    return truth(large && lop_bordered_pivot(a, solve) >= 0 && !lop_border_is_sparse(a) &&
                 floats_below(a, 12) && lop_is_blas(m->root->dtype));
}

/* A Khatri-Rao product of (m, n) and (p, n) times k columns holds n p k numbers, its dense form
 * m p n; both take as many flops, but the latter in one product of matrices. */
enum { WIDE = 4 };
lop_truth lop_when_wide_khatri(const lop_match *m) {
    const lop_node *x = HOLE(m, 'x');
    return truth(x->core == 2 && lop_cols(x) / WIDE >= lop_rows(HOLE(m, 'a')) &&
                 lop_is_blas(m->root->dtype));
}

/* Powers up to HIGH are chains, whose order is searched for; squaring holds at most ARRAYS arrays
 * of n x n at a time, and is for those of MOST_BYTES together (not for what the memory limit is
 * now: plans are kept). */
enum { HIGH = 8, ARRAYS = 6, MOST_BYTES = 1 << 30 };

lop_truth lop_when_high_power(const lop_match *m) {
    return truth(ATTR(m, 'p').i[0] > (m->root->ctx->alike ? 1 : HIGH));
}
lop_truth lop_when_high_power_floats(const lop_match *m) {
    return truth(lop_is_blas(m->root->dtype) && lop_when_high_power(m) == LOP_TRUE);
}

lop_truth lop_when_high_power_factors(const lop_match *m) {
    return truth(square_factors(m->root->child[0]) && lop_when_high_power(m) == LOP_TRUE);
}

/* The root is an action on A^p: is the dense form by squaring the cheaper way, and is there room?
 */
lop_truth lop_when_power_squares(const lop_match *m) {
    const lop_node *a = HOLE(m, 'a'), *root = m->root;
    const lop_ctx *ctx = root->ctx;
    if (lop_when_high_power(m) != LOP_TRUE || !lop_is_square(a)) return LOP_FALSE;
    if (root->op == &lop_op_todense || ctx->alike) return LOP_TRUE;
    const lop_costs *c = lop_costs_of(ctx);
    const lop_dtype dt = root->dtype;
    const int64_t n = lop_rows(a), k = root->core == 2 ? lop_cols(root) : 1;
    int64_t bytes;
    double times = 1;
    for (int64_t p = ATTR(m, 'p').i[0]; p > 1; p >>= 1) times += 1 + (double)(p & 1);
    if (!lop_mul_ok(n, n, &bytes) ||
        !lop_mul_ok(bytes, ARRAYS * (int64_t)lop_dtype_size(dt), &bytes) || bytes > MOST_BYTES)
        return LOP_FALSE;
    const double square = lop_price_dense(c, dt, a, 1).seconds +
                          times * (lop_price_gemm(c, dt, n, n, n, 1).seconds + c->overhead);
    const double chain = lop_price_apply(c, dt, a, k, 1).seconds + c->overhead;
    return truth(square < (double)ATTR(m, 'p').i[0] * chain);
}

/* -- by name */

static const lop_guard table[] = {
#define LOP_GUARD(name, needs, doc) {#name, needs, doc, lop_when_##name},
#include "guards.def"
#undef LOP_GUARD
};
int lop_nguards(void) { return (int)(sizeof table / sizeof table[0]); }
const lop_guard *lop_guard_at(int i) { return &table[i]; }
const lop_guard *lop_guard_find(const char *name) {
    for (int i = 0; i < lop_nguards(); i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}
const lop_guard *lop_guard_of(lop_truth (*when)(const lop_match *m)) {
    for (int i = 0; when && i < lop_nguards(); i++)
        if (table[i].when == when) return &table[i];
    return NULL;
}
