/* solve_stein.c: solves and determinants of c I + k A (x) B, the Stein and the discrete Lyapunov
 * equation, by Schur forms (op_stein_schur.c), for solve_eigenbasis.c, which tries eigenvectors
 * before: they cost half, other actions have them too, and that a matrix is not Hermitian is seen
 * at one look. The residual is checked; what fails goes by the dense form. Cost: 25 n_i^3 a factor,
 * kept for every view and coefficient, and 6 m n (m + n) a column; where the forms do not pay the
 * dense form it is (lop_kron_sum_pays). */
#include "sum_of_krons.h"
#include "builds.h"
#include "expr/properties.h"

bool lop_stein_read(const lop_kron_sum *s, lop_stein *y) {
    *y = (lop_stein){.f = {{0}}};
    double cubes = 0;
    if (s->n != 2 || !s->eye || s->nt == 0) return false;
    for (int t = 0; t < s->nt; t++) {
        for (int i = 0; i < 2; i++) {
            const lop_kron_factor *f = &s->t[t].f[i];
            if (!f->node ||
                (t > 0 && (f->mode != y->f[i].mode || !lop_kron_same(f->node, y->f[i].node))))
                return false;
            y->f[i] = *f;
        }
        y->k = t > 0 ? lop_coef_plus(s->mk->ctx, y->k, s->t[t].c) : s->t[t].c;
    }
    if (lop_infer_hermitian(y->f[0].node) && lop_infer_hermitian(y->f[1].node)) return false;
    for (int i = 0; i < 2; i++) { /* of a Diag too, which has a form as any other here */
        const double n = (double)s->t[0].size[i];
        cubes += n * n * n;
    }
    const double rows = (double)s->rows;
    return lop_kron_sum_pays(s, LOP_COST_SCHUR_FORM) &&
           (s->mk->ctx->alike != 0 || LOP_COST_SCHUR_FORM * cubes <= rows * rows * rows);
}

/* A coefficient as a vector of one element, a number of the run. */
static lop_status number(const lop_kron_sum *s, lop_coef by, const lop_node **out) {
    const lop_node like = {.shape = {.ndim = 1, .dim = {1}},
                           .dtype = lop_is_complex(s->dt) ? LOP_c128 : LOP_f64,
                           .core = 1};
    const lop_attr c = lop_coef_attr(by);
    const lop_node *one;
    lop_status st = lop_make(s->mk, "ones", NULL, 0, NULL, &like, &one);
    if (st != LOP_OK) return st;
    st = lop_make1(s->mk, &lop_op_scale, &c, one, out);
    lop_node_unref(one);
    return st;
}

lop_status lop_stein_build(const lop_kron_sum *s, const lop_stein *y, const lop_node *b,
                           const lop_node **out) {
    lop_check check = {.mk = s->mk, .a = s->sum};
    const lop_attr cast = {.i = {0, 0, 0, (int64_t)s->dt + 1}},
                   how = {.i = {y->f[0].mode, y->f[1].mode, 0, 0}},
                   det = {.i = {(y->f[0].mode & LOP_C) != 0, (y->f[1].mode & LOP_C) != 0, 0, 0}};
    const lop_node *child[5] = {NULL, NULL, NULL, NULL, b}, *x = NULL, *sound = NULL, *alt = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 2; i++)
        st = lop_make1(s->mk, &lop_op_todense, &cast, y->f[i].node, &child[i]);
    if (st == LOP_OK) st = number(s, y->k, &child[2]);
    if (st == LOP_OK) st = number(s, s->c, &child[3]);
    if (st == LOP_OK) st = lop_kron_sum_directly(s, b, &alt);
    if (st == LOP_OK)
        st = lop_make_op(s->mk, b ? &lop_op_stein_solve : &lop_op_stein_det, b ? &how : &det,
                         b ? 5 : 4, child, NULL, &x);
    const lop_node *branch[2] = {x, alt};
    if (st == LOP_OK)
        st = lop_make_op(s->mk, &lop_op_spectral, NULL, 2, branch, NULL, b ? &sound : out);
    if (st == LOP_OK && b) st = lop_check_open(&check, s->dt);
    if (st == LOP_OK && b) st = lop_check_instead(&check, sound, b, alt, out);
    const lop_node *gone[] = {child[0], child[1], child[2], child[3], x, sound, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&check);
    return st;
}
