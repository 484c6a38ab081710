/* solve_eigenbasis.c: solves, determinants and parts of inverses of sums of Krons that one basis
 * makes diagonal.
 *
 *   S = sum over t of c_t F_t1 (x) F_t2 (x) ... + c I
 *
 * where at each place i every F_ti is A_i or the identity, A_i Hermitian: S = V D V^H with V the
 * Kron of the A_i's eigenvectors; or A_i or B_i, one of them positive definite (Van Loan 2000,
 * section 4): S = V^-H D V^-1; or a Diag. D is the same sum of Krons of eigenvalues. What the
 * factors are is found when they are taken (op_eigen_factor.c).
 *
 * With V unitary the solve is backward stable but for what the eigenvalues lose beside one another
 * in D, which costs one pass over D to see (op_checked_or_fallback.c, spectral); else the residual
 * is checked. What fails goes by the dense form, Kron + c I of two and two Krons of two by Schur
 * forms first (solve_stein.c, solve_two_krons.c). A Kronecker sum of two that are not known to be
 * Hermitian goes by Schur forms at once (op_kronsum_schur.c). Cost: 9 n_i^3 a factor, kept, and two
 * products with a Kron. */
#include "sum_of_krons.h"
#include "assumed_terms.h"
#include "expr/properties.h"

/* -- what is made of it */

static lop_attr value_attr(const lop_kron_sum *s) {
    return (lop_attr){.i = {0, 0, 0, (int64_t)s->dt + 1}};
}

static int64_t known_of(const lop_kron_place *p) {
    return (lop_infer_hermitian(p->a) ? 1 : 0) | (p->b && lop_infer_hermitian(p->b) ? 2 : 0);
}

/* eigval, eigvec or eigmetric of a place. */
static lop_status spectrum_of(const lop_kron_sum *s, int i, const lop_op *what, int64_t which,
                              const lop_node **out) {
    const lop_kron_place *p = &s->at[i];
    const lop_attr how = {.i = {known_of(p), which, 0, 0}};
    const lop_node *child[2] = {p->va, p->vb};
    return lop_make_op(s->mk, what, &how, p->b ? 2 : 1, child, NULL, out);
}

static lop_status open_place(lop_kron_sum *s, int i) {
    lop_kron_place *p = &s->at[i];
    const lop_attr d = value_attr(s);
    const int64_t n = s->t[0].size[i];
    lop_status st = LOP_OK;
    if (p->diagonal) {
        const lop_node like = {
            .shape = {.ndim = 2, .dim = {n, n}}, .dtype = s->dt, .weak = LOP_STRONG, .core = 2};
        st = lop_make(s->mk, "identity", NULL, 0, NULL, &like, &p->v);
        if (st == LOP_OK) p->vh = lop_node_ref(p->v);
        return st;
    }
    st = lop_make1(s->mk, &lop_op_todense, &d, p->a, &p->va);
    if (st == LOP_OK && p->b) st = lop_make1(s->mk, &lop_op_todense, &d, p->b, &p->vb);
    if (!lop_is_complex(s->dt) && st == LOP_OK) { /* LAPACK's columns are V^T's rows: one copy */
        const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
        const lop_node *vt = NULL, *v = NULL;
        st = spectrum_of(s, i, &lop_op_eigvec, LOP_T, &vt);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, vt, &p->vh);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_swap, &turn, vt, &v);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, v, &p->v);
        lop_node_unref(vt);
        lop_node_unref(v);
        return st;
    }
    for (int back = 0; st == LOP_OK && back < 2; back++) {
        const lop_node *v = NULL;
        st = spectrum_of(s, i, &lop_op_eigvec, (back ? LOP_H : LOP_N) ^ (p->flip ? LOP_C : LOP_N),
                         &v);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, v, back ? &p->vh : &p->v);
        lop_node_unref(v);
    }
    return st;
}

static lop_status ones_of(const lop_kron_sum *s, int64_t n, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {n}}, .dtype = lop_dtype_real(s->dt), .core = 1};
    return lop_make(s->mk, "ones", NULL, 0, NULL, &like, out);
}

/* The eigenvalues of term t's factor at place i. */
static lop_status values_of(const lop_kron_sum *s, int t, int i, const lop_node **out) {
    const lop_kron_place *p = &s->at[i];
    const lop_kron_factor *f = &s->t[t].f[i];
    const lop_attr cast = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *d;
    if (!f->node) return ones_of(s, s->t[0].size[i], out);
    if (!p->diagonal)
        return spectrum_of(s, i, &lop_op_eigval, p->b && lop_kron_same(f->node, p->b), out);
    lop_status st = lop_make1(s->mk, &lop_op_cast, &cast, f->node->child[0], &d);
    if (st != LOP_OK || !(f->mode & LOP_C)) {
        *out = d;
        return st;
    }
    st = lop_make1(s->mk, &lop_op_conjugate, NULL, d, out);
    lop_node_unref(d);
    return st;
}

/* c a; takes over a. */
static lop_status multiple(const lop_kron_sum *s, lop_coef by, const lop_node *a,
                           const lop_node **out) {
    const lop_attr c = lop_coef_attr(by);
    *out = a;
    if (lop_coef_test(s->mk->ctx, by, LOP_COEF_ONE)) return LOP_OK;
    lop_status st = lop_make1(s->mk, &lop_op_scale, &c, a, out);
    lop_node_unref(a);
    return st;
}

/* op(*all, a), or `a` alone at first. Takes over both. */
static lop_status join(const lop_kron_sum *s, const lop_op *op, const lop_node **all,
                       const lop_node *a) {
    const lop_node *both = a;
    lop_status st = LOP_OK;
    if (*all) {
        st = lop_make2(s->mk, op, NULL, *all, a, &both);
        lop_node_unref(*all);
        lop_node_unref(a);
    }
    *all = st == LOP_OK ? both : NULL;
    return st;
}

static lop_status open_values(lop_kron_sum *s) {
    lop_status st = LOP_OK;
    for (int t = 0; st == LOP_OK && t < s->nt; t++) {
        const lop_node *all = NULL, *one = NULL;
        for (int i = 0; st == LOP_OK && i < s->n; i++) {
            st = values_of(s, t, i, &one);
            if (st == LOP_OK) st = join(s, &lop_op_kronarray, &all, one);
        }
        if (st != LOP_OK) {
            lop_node_unref(all);
            return st;
        }
        st = multiple(s, s->t[t].c, all, &s->part[t]);
        if (st == LOP_OK) st = join(s, &lop_op_add, &s->d, lop_node_ref(s->part[t]));
    }
    if (st == LOP_OK && s->eye) {
        const lop_node *one = NULL, *c = NULL;
        st = ones_of(s, s->rows, &one);
        if (st == LOP_OK) st = multiple(s, s->c, one, &c);
        if (st == LOP_OK) st = join(s, &lop_op_add, &s->d, c);
    }
    return st;
}

static lop_status open(lop_kron_sum *s) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < s->n; i++) st = open_place(s, i);
    return st == LOP_OK ? open_values(s) : st;
}

static void close(lop_kron_sum *s) {
    for (int i = 0; i < s->n; i++) {
        const lop_node *gone[] = {s->at[i].va, s->at[i].vb, s->at[i].v, s->at[i].vh};
        for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
    }
    for (int t = 0; t < s->nt; t++) lop_node_unref(s->part[t]);
    lop_node_unref(s->d);
}

/* Kron(V) b or Kron(V^H) b. */
static lop_status turned(const lop_kron_sum *s, bool back, const lop_node *b,
                         const lop_node **out) {
    const lop_node *f[LOP_KRON_PLACES], *kron;
    for (int i = 0; i < s->n; i++) f[i] = back ? s->at[i].vh : s->at[i].v;
    lop_status st = lop_make(s->mk, "kron", NULL, s->n, f, NULL, &kron);
    if (st != LOP_OK) return st;
    st = lop_make2(s->mk, &lop_op_apply, NULL, kron, b, out);
    lop_node_unref(kron);
    return st;
}

/* V D^-1 V^H b. */
static lop_status by_spectrum(const lop_kron_sum *s, const lop_node *b, const lop_node **out) {
    const lop_node *y = NULL, *z = NULL;
    lop_status st = turned(s, true, b, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_div, NULL, y, s->d, &z);
    if (st == LOP_OK) st = turned(s, false, z, out);
    lop_node_unref(y);
    lop_node_unref(z);
    return st;
}

/* x where the spectrum is accurate enough, else alt. With a unitary V the eigenvalues may lose N /
 * sum n_i of their own error bound beside each other; the bound that solves promise leaves room for
 * that. */
static lop_status if_sound(const lop_kron_sum *s, const lop_node *x, const lop_node *alt,
                           const lop_node **out) {
    const lop_node *child[LOP_KRON_TERMS + 3] = {x};
    int64_t sizes = 0;
    int n = 1;
    for (int i = 0; i < s->n; i++) sizes += s->t[0].size[i];
    const int64_t grown = s->rows / sizes;
    lop_attr most = {.i = {s->unitary ? (grown > 2 ? grown : 2) : INT64_MAX, 0, 0, 0}};
    for (int t = 0; t < s->nt; t++) child[n++] = s->part[t];
    child[n++] = s->d;
    child[n++] = alt;
    return lop_make_op(s->mk, &lop_op_spectral, &most, n, child, NULL, out);
}

/* The view that all factors are seen by. */
int lop_kron_sum_view(const lop_kron_sum *s) {
    int mode = -1;
    for (int t = 0; t < s->nt; t++) {
        for (int i = 0; i < s->n; i++) {
            const lop_kron_factor *f = &s->t[t].f[i];
            if (f->node && mode < 0) mode = f->mode;
            if (f->node && f->mode != mode) return LOP_N;
        }
    }
    return mode < 0 ? LOP_N : mode;
}

/* A sum of views is factored as what it is a view of: the determinant, and solves from the other
 * side, take that factor. */
static lop_status solved_as_view(const lop_kron_sum *s, const lop_node *b, const lop_node **out) {
    const lop_attr d = value_attr(s), view = {.i = {lop_kron_sum_view(s), 0, 0, 0}};
    const lop_node *seen = NULL, *dense = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_view, &view, s->sum, &seen);
    if (st == LOP_OK) st = lop_settle(s->mk, &seen);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, seen, &dense);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_lu_solve, &view, dense, b, out);
    lop_node_unref(seen);
    lop_node_unref(dense);
    return st;
}

lop_status lop_kron_sum_directly(const lop_kron_sum *s, const lop_node *b, const lop_node **out) {
    const lop_attr d = value_attr(s), tried = {.i = {1, 0, 0, 0}};
    const lop_node *dense;
    const lop_op *ops[2][2] = {{&lop_op_lu_det, &lop_op_lu_solve},
                               {&lop_op_cholesky_det, &lop_op_cholesky_solve}};
    const bool hermitian = lop_infer_hermitian(s->sum);
    if (b && !hermitian && lop_kron_sum_view(s) != LOP_N) return solved_as_view(s, b, out);
    lop_status st = lop_make1(s->mk, &lop_op_todense, &d, s->sum, &dense);
    if (st != LOP_OK) return st;
    const lop_node *child[2] = {dense, b};
    st = lop_make_op(s->mk, ops[hermitian][b != NULL], hermitian ? &tried : NULL, b ? 2 : 1, child,
                     NULL, out);
    lop_node_unref(dense);
    return st;
}

/* What is done where a factor turns out not to be Hermitian; b NULL: the determinant. */
static lop_status otherwise(const lop_kron_sum *s, const lop_node *b, const lop_node **out) {
    lop_stein y;
    if (lop_stein_read(s, &y)) return lop_stein_build(s, &y, b, out);
    return lop_two_krons_read(s) ? lop_two_krons_build(s, b, out)
                                 : lop_kron_sum_directly(s, b, out);
}

/* -- the sum of two, a A (x) I + b I (x) B + c I, with A or B not known to be Hermitian */

typedef struct sylvester {
    lop_coef c[2];
    lop_kron_factor f[2];
    int64_t turn[2];      /* 1: the adjoint of what is factored */
    bool flip;            /* all of it conjugated */
    const lop_node *a[2]; /* owned: the dense forms, c with the first */
} sylvester;

static bool read_sylvester(const lop_kron_sum *s, sylvester *y) {
    bool known = true, mixed;
    *y = (sylvester){.flip = false};
    if (s->n != 2) return false;
    for (int t = 0; t < s->nt; t++) {
        const lop_kron_factor *f = s->t[t].f;
        const int i = f[0].node ? 0 : 1;
        if (!f[i].node || f[1 - i].node) return false;
        if (y->f[i].node && (!lop_kron_same(y->f[i].node, f[i].node) || y->f[i].mode != f[i].mode))
            return false;
        y->f[i] = f[i];
        y->c[i] = lop_coef_plus(s->mk->ctx, y->c[i], s->t[t].c);
        known = known && (lop_infer_hermitian(f[i].node) || s->at[i].diagonal);
    }
    if (known || !y->f[0].node || !y->f[1].node) return false;
    if (!lop_kron_sum_pays(s, LOP_COST_SCHUR_FORM)) return false;
    const bool whole[2] = {lop_is_complex(y->f[0].node->dtype),
                           lop_is_complex(y->f[1].node->dtype)};
    bool flip[2];
    for (int i = 0; i < 2; i++) flip[i] = y->f[i].mode == LOP_T || y->f[i].mode == LOP_C;
    mixed = whole[0] && whole[1] && flip[0] != flip[1];
    y->flip = !mixed && ((whole[0] && flip[0]) || (whole[1] && flip[1]));
    for (int i = 0; i < 2 && !mixed; i++) y->turn[i] = (y->f[i].mode & LOP_T) != 0;
    for (int i = 0; i < 2 && !mixed; i++) y->f[i].mode = LOP_N;
    return true;
}

/* The dense form of a_i A_i (+ c I): factored as it is, before it is turned and conjugated. */
static lop_status open_sylvester(const lop_kron_sum *s, sylvester *y, int i) {
    const bool conj = y->flip != (y->turn[i] != 0);
    const lop_attr view = {.i = {y->f[i].mode, 0, 0, 0}}, d = value_attr(s),
                   by = lop_coef_attr(conj ? lop_coef_conj(s->mk->ctx, y->c[i]) : y->c[i]),
                   c = lop_coef_attr(conj ? lop_coef_conj(s->mk->ctx, s->c) : s->c);
    const lop_node *a = NULL, *aa = NULL, *eye = NULL, *ce = NULL, *sum = NULL;
    const lop_node like = {.shape = {.ndim = 2, .dim = {s->t[0].size[0], s->t[0].size[0]}},
                           .dtype = LOP_f64,
                           .weak = LOP_WEAK,
                           .core = 2};
    const bool shifted = i == 0 && s->eye && !lop_coef_test(s->mk->ctx, s->c, LOP_COEF_ZERO);
    lop_status st = LOP_OK;
    if (y->f[i].mode)
        st = lop_make1(s->mk, &lop_op_view, &view, y->f[i].node, &a);
    else
        a = lop_node_ref(y->f[i].node);
    if (st == LOP_OK && !lop_coef_test(s->mk->ctx, y->c[i], LOP_COEF_ONE)) {
        st = lop_make1(s->mk, &lop_op_scaled, &by, a, &aa);
    } else {
        aa = lop_node_ref(a);
    }
    if (st == LOP_OK && shifted) st = lop_make(s->mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK && shifted) st = lop_make1(s->mk, &lop_op_scaled, &c, eye, &ce);
    if (st == LOP_OK && shifted) st = lop_make2(s->mk, &lop_op_sum, NULL, aa, ce, &sum);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, sum ? sum : aa, &y->a[i]);
    const lop_node *gone[] = {a, aa, eye, ce, sum};
    for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
    return st;
}

/* By Schur forms, else directly; b NULL: the determinant. */
static lop_status by_schur(const lop_kron_sum *s, sylvester *y, const lop_node *b,
                           const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    const lop_attr how = {.i = {y->turn[0], y->turn[1], y->flip, 0}},
                   det = {.i = {y->flip != (y->turn[0] != 0), y->flip != (y->turn[1] != 0), 0, 0}};
    const lop_node *x = NULL, *sound = NULL, *alt = NULL;
    lop_status st = open_sylvester(s, y, 0);
    if (st == LOP_OK) st = open_sylvester(s, y, 1);
    if (st == LOP_OK) st = lop_kron_sum_directly(s, b, &alt);
    const lop_node *child[3] = {y->a[0], y->a[1], b}, *branch[2] = {NULL, alt};
    if (st == LOP_OK)
        st = lop_make_op(s->mk, b ? &lop_op_schur_solve : &lop_op_schur_det, b ? &how : &det,
                         b ? 3 : 2, child, NULL, &x);
    branch[0] = x;
    if (st == LOP_OK)
        st = lop_make_op(s->mk, &lop_op_spectral, NULL, 2, branch, NULL, b ? &sound : out);
    if (st == LOP_OK && b) st = lop_check_open(&k, s->dt);
    if (st == LOP_OK && b) st = lop_check_instead(&k, sound, b, alt, out);
    const lop_node *gone[] = {x, sound, alt, y->a[0], y->a[1]};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    return st;
}

LOP_BUILD(solve_spectral) {
    lop_kron_sum s;
    lop_check k = {.mk = mk, .a = m->root->child[0]};
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *b = NULL, *x = NULL, *alt = NULL, *sound = NULL;
    sylvester y;
    if (!lop_kron_sum_read(&s, mk, m->root->dtype, m->root->child[0])) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK && read_sylvester(&s, &y)) {
        st = by_schur(&s, &y, b, out);
        lop_node_unref(b);
        return st;
    }
    if (st == LOP_OK) st = open(&s);
    if (st == LOP_OK) st = by_spectrum(&s, b, &x);
    if (st == LOP_OK) st = otherwise(&s, b, &alt);
    if (st == LOP_OK) st = if_sound(&s, x, alt, s.unitary ? out : &sound);
    if (st == LOP_OK && !s.unitary) st = lop_check_open(&k, s.dt);
    if (st == LOP_OK && !s.unitary) st = lop_check_instead(&k, sound, b, alt, out);
    const lop_node *gone[] = {b, x, alt, sound};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    close(&s);
    return st;
}

/* det D times the metrics' determinants, each to the power of the other sizes' product. */
static lop_status det_of(const lop_kron_sum *s, const lop_node **out) {
    const lop_attr cast = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *d = NULL, *all = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_cast, &cast, s->d, &d);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_vector_det, NULL, d, &all);
    for (int i = 0; st == LOP_OK && i < s->n; i++) {
        const lop_attr power = {.i = {s->rows / s->t[0].size[i], 0, 0, 0}};
        const lop_node *one = NULL, *raised = NULL;
        if (!s->at[i].b) continue;
        st = spectrum_of(s, i, &lop_op_eigmetric, 0, &one);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_pow_det, &power, one, &raised);
        if (st == LOP_OK) st = join(s, &lop_op_mul_det, &all, raised);
        lop_node_unref(one);
    }
    lop_node_unref(d);
    *out = all;
    return st;
}

/* `value` where the spectrum is sound and, with V not unitary, solves for a probe with a small
 * residual; else `alt`. op: what checks it, of a determinant or of another value. */
static lop_status sound_value(const lop_kron_sum *s, const lop_op *op, const lop_node *value,
                              const lop_node *alt, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    const lop_node *sound = NULL, *x = NULL, *r = NULL;
    lop_status st = if_sound(s, value, alt, s->unitary ? out : &sound);
    if (st != LOP_OK || s->unitary) return st;
    st = lop_check_open(&k, s->dt);
    if (st == LOP_OK) st = by_spectrum(s, k.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    const lop_node *child[9] = {sound, x, r, k.v, k.q, k.u, x, k.v, alt};
    if (st == LOP_OK) st = lop_make_op(s->mk, op, NULL, 9, child, NULL, out);
    const lop_node *gone[] = {sound, x, r};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    return st;
}

/* `det` where the spectrum is positive; else it stands beside the determinants, to the power of
 * zero, of what was assumed positive definite: they fail where it is not. Gives away det. */
static lop_status unless_assumed(const lop_kron_sum *s, const lop_attr *k, const lop_node *det,
                                 const lop_node **out) {
    const lop_attr zero = {.i = {0, 0, 0, 0}}, signs = {.i = {0, 1, 0, 0}};
    const lop_node *beside = lop_node_ref(det);
    lop_assumed d;
    lop_status st = lop_assumed_within(s->mk, s->sum, &d);
    for (int i = 0; st == LOP_OK && i < d.n; i++) {
        const lop_node *own = NULL, *one = NULL;
        st = lop_make1(s->mk, &lop_op_scaledet, k, d.at[i], &own);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_pow_det, &zero, own, &one);
        if (st == LOP_OK) st = join(s, &lop_op_mul_det, &beside, one);
        lop_node_unref(own);
    }
    const lop_node *child[3] = {det, s->d, beside};
    if (st == LOP_OK && d.n > 0)
        st = lop_make_op(s->mk, &lop_op_spectral, &signs, 3, child, NULL, out);
    else if (st == LOP_OK)
        *out = lop_node_ref(det);
    lop_node_unref(det);
    lop_node_unref(beside);
    lop_assumed_free(&d);
    return st;
}

LOP_BUILD(det_spectral) {
    lop_kron_sum s;
    const lop_node *sum = m->root->child[0], *det = NULL, *alt = NULL, *found = NULL;
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] - 1);
    sylvester y;
    if (!lop_kron_sum_read(&s, mk, dt, sum)) return LOP_NOMATCH;
    if (read_sylvester(&s, &y)) return by_schur(&s, &y, NULL, out);
    lop_status st = open(&s);
    if (st == LOP_OK) st = det_of(&s, &det);
    if (st == LOP_OK) st = otherwise(&s, NULL, &alt);
    if (st == LOP_OK) st = sound_value(&s, &lop_op_checked_det, det, alt, &found);
    if (st == LOP_OK) st = unless_assumed(&s, &m->root->attr, found, out);
    lop_node_unref(det);
    lop_node_unref(alt);
    close(&s);
    return st;
}

/* Diagonal k of the inverse where no eigenvectors serve: column by column by the Schur forms that
 * solves have, else of the dense form's. */
static lop_status diagonal_otherwise(const lop_kron_sum *s, const lop_attr *k,
                                     const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {s->rows, s->rows}}, .dtype = s->dt, .core = 2};
    const lop_attr at = {.i = {k->i[0], 0, 0, 0}};
    const lop_node *unit = NULL, *inverse = NULL;
    lop_stein stein;
    sylvester y;
    const bool first = read_sylvester(s, &y);
    if (!first && !lop_stein_read(s, &stein) && !lop_two_krons_read(s))
        return lop_inverse_diagonal(s->mk, s->sum, k, s->dt, out);
    lop_status st = lop_make(s->mk, "eye", NULL, 0, NULL, &like, &unit);
    if (st == LOP_OK && first) st = by_schur(s, &y, unit, &inverse);
    if (st == LOP_OK && !first) st = otherwise(s, unit, &inverse);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_array_diagonal, &at, inverse, out);
    lop_node_unref(unit);
    lop_node_unref(inverse);
    return st;
}

/* Of S^-1 = V D^-1 V^H its diagonal, or what it means for a factor of a Kron. What is not known to
 * be Hermitian is tried: it costs one look at it. */
static lop_status read_off_sum(const lop_match *m, const lop_maker *mk, const lop_node *sum,
                               bool diagonal, const lop_node **out) {
    lop_kron_sum s;
    const lop_node *v[LOP_KRON_PLACES], *vh[LOP_KRON_PLACES], *value = NULL, *alt = NULL;
    if (!lop_is_blas(m->root->dtype) || !lop_kron_sum_read(&s, mk, m->root->dtype, sum) ||
        (!diagonal && !s.unitary && m->root->child[1]->shape.ndim > 2))
        return LOP_NOMATCH;
    lop_status st = open(&s);
    for (int i = 0; i < s.n; i++) v[i] = s.at[i].v, vh[i] = s.at[i].vh;
    if (st == LOP_OK && diagonal) {
        st = lop_diagonal_of_spectrum(mk, s.dt, s.n, v, s.d, &value);
        if (st == LOP_OK) st = diagonal_otherwise(&s, &m->root->attr, &alt);
    } else if (st == LOP_OK) {
        st = lop_partial_of_spectrum(mk, s.dt, s.n, v, vh, s.d, m->root, &value);
        if (st == LOP_OK) st = lop_partial_of_dense(mk, m->root, &alt);
    }
    if (st == LOP_OK) st = sound_value(&s, &lop_op_checked_value, value, alt, out);
    lop_node_unref(value);
    lop_node_unref(alt);
    close(&s);
    return st;
}
enum { GRIDS = 24 }; /* how deep Laplacians are looked for */
LOP_BUILD(inverse_diagonal_spectral) {
    const lop_node *sum = NULL;
    lop_status st = lop_grids_as_kronsums(mk, m->root->child[0]->child[0], GRIDS, &sum);
    if (st == LOP_OK) st = read_off_sum(m, mk, sum, true, out);
    lop_node_unref(sum);
    return st;
}
LOP_BUILD(inverse_partial_spectral) {
    return read_off_sum(m, mk, m->root->child[0]->child[0], false, out);
}

/* -- S^-1 X S^-1, which second derivatives read, and traces of more of them */

LOP_BUILD(between_partial_spectral) {
    const lop_node *x = NULL, *sum = NULL, *value = NULL, *alt = NULL;
    lop_kron_sum s, terms;
    lop_status st = lop_read_between_or_twice(mk, m->root->child[0], &sum, &x);
    if (st == LOP_OK &&
        (!lop_is_blas(m->root->dtype) || !lop_kron_sum_read(&s, mk, m->root->dtype, sum) ||
         (!s.unitary && m->root->child[1]->shape.ndim > 2)))
        st = LOP_NOMATCH;
    if (st != LOP_OK) {
        lop_node_unref(x);
        return st;
    }
    const bool krons = lop_kron_terms_read(&terms, &s, x);
    st = open(&s);
    if (st == LOP_OK) st = lop_partial_between(&s, krons ? &terms : NULL, x, m->root, &value);
    if (st == LOP_OK) st = lop_partial_of_dense(mk, m->root, &alt);
    if (st == LOP_OK) st = sound_value(&s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {value, alt, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    close(&s);
    return st;
}

/* The sum of `value` where the spectrum is sound, else of the diagonal of p's dense form. */
static lop_status sum_of_sound(const lop_kron_sum *s, const lop_node *p, const lop_node *value,
                               const lop_node **out) {
    const lop_node *alt = NULL, *sound = NULL;
    lop_status st = lop_diagonal_of_dense(s->mk, s->dt, p, &alt);
    if (st == LOP_OK) st = if_sound(s, value, alt, &sound);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_sumall, NULL, sound, out);
    lop_node_unref(alt);
    lop_node_unref(sound);
    return st;
}

/* The trace of X beside powers of S^-1. */
static lop_status trace_beside(const lop_match *m, const lop_maker *mk, const lop_node *p,
                               const lop_node **out) {
    const lop_node *value = NULL;
    lop_kron_sum s, terms;
    lop_beside b;
    if (!lop_read_beside(mk->ctx, p, &b) || !lop_kron_sum_read(&s, mk, m->root->dtype, b.s) ||
        !s.unitary)
        return LOP_NOMATCH;
    const bool weights = b.x && !lop_kron_terms_read(&terms, &s, b.x);
    if (!b.x) terms = (lop_kron_sum){.mk = mk, .dt = s.dt, .n = s.n, .eye = true, .c = {.re = 1}};
    lop_status st = open(&s);
    if (st == LOP_OK) st = lop_trace_beside(&s, weights ? NULL : &terms, &b, &value);
    if (st == LOP_OK) st = sum_of_sound(&s, m->root->child[0], value, out);
    lop_node_unref(value);
    close(&s);
    return st;
}
/* That of sums and products of S^-1 and what V makes diagonal with it. */
static lop_status trace_within(const lop_match *m, const lop_maker *mk, const lop_node *p,
                               const lop_node **out) {
    const lop_node *sum = lop_inverted_within(p, GRIDS), *value = NULL;
    lop_kron_sum s;
    if (!sum || lop_is_complex(m->root->dtype) || !lop_kron_sum_read(&s, mk, m->root->dtype, sum) ||
        !s.unitary)
        return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK) st = lop_spectrum_within(&s, p, GRIDS, &value);
    if (st == LOP_OK) st = sum_of_sound(&s, m->root->child[0], value, out);
    lop_node_unref(value);
    close(&s);
    return st;
}

LOP_BUILD(between_trace_spectral) {
    const lop_node *p = NULL, *turned = NULL;
    int64_t mode;
    if (!lop_is_blas(m->root->dtype)) return LOP_NOMATCH;
    lop_status st = lop_grids_as_kronsums(mk, m->root->child[0], GRIDS, &p);
    if (st == LOP_OK) st = trace_beside(m, mk, p, out);
    if (st == LOP_NOMATCH && p) st = trace_within(m, mk, p, out);
    if (st == LOP_NOMATCH && p && !lop_is_complex(p->dtype)) { /* tr P = tr P^T */
        st = lop_unturned(mk, p, &mode, &turned);
        if (st == LOP_OK) st = trace_beside(m, mk, turned, out);
    }
    lop_node_unref(turned);
    lop_node_unref(p);
    return st;
}
