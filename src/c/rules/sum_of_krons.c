/* sum_of_krons.c: reads c I + the sum over t of c_t F_t1 (x) F_t2 (x) ..., where at each place i
 * every F_ti is the identity, one Hermitian matrix or, where none is the identity, one of two. */
#include "sum_of_krons.h"
#include "builds.h"
#include "expr/properties.h"

enum { DEPTH = 12 };

/* Views off, multiples to the coefficient. */
static const lop_node *peel(const lop_node *a, int *mode, lop_coef *c) {
    for (; a->op == &lop_op_view || a->op == &lop_op_scaled; a = a->child[0]) {
        const lop_coef by = lop_coef_of(&a->attr);
        if (a->op == &lop_op_view)
            *mode ^= (int)a->attr.i[0];
        else
            *c = lop_coef_times(a->ctx, *c, *mode & LOP_C ? lop_coef_conj(a->ctx, by) : by);
    }
    return a;
}

/* What is its own adjoint is seen plainly or conjugated. */
static lop_kron_factor as_factor(const lop_node *a, int mode) {
    if (a->op == &lop_op_identity && lop_nbatch(a) == 0) return (lop_kron_factor){NULL, 0};
    if (!lop_is_complex(a->dtype)) mode &= LOP_T;
    if ((mode & LOP_T) && lop_infer_hermitian(a)) mode ^= lop_is_complex(a->dtype) ? LOP_H : LOP_T;
    if (a->op == &lop_op_diag) mode &= LOP_C;
    return (lop_kron_factor){a, mode};
}

static bool add_factor(lop_kron_term *t, const lop_node *a, int mode, int depth) {
    a = peel(a, &mode, &t->c);
    if (a->op == &lop_op_kron) {
        bool all = depth > 0;
        for (int i = 0; all && i < a->n; i++) all = add_factor(t, a->child[i], mode, depth - 1);
        return all;
    }
    if (t->n == LOP_KRON_PLACES || !lop_is_square(a)) return false;
    t->size[t->n] = lop_rows(a);
    t->f[t->n++] = as_factor(a, mode);
    return true;
}

static lop_kron_term *new_term(lop_kron_sum *s, lop_coef c) {
    if (s->nt == LOP_KRON_TERMS) return NULL;
    s->t[s->nt] = (lop_kron_term){.c = c};
    return &s->t[s->nt++];
}

static bool add_kronsum(lop_kron_sum *s, const lop_node *k, int mode, lop_coef c) {
    for (int i = 0; i < k->n; i++) {
        lop_kron_term *t = k->n <= LOP_KRON_PLACES ? new_term(s, c) : NULL;
        if (!t) return false;
        for (int j = 0; j < k->n; j++) {
            int own = mode;
            const lop_node *a = k->child[j];
            if (j == i) a = peel(a, &own, &t->c);
            t->size[j] = lop_rows(a);
            t->f[j] = j == i ? as_factor(a, own) : (lop_kron_factor){NULL, 0};
        }
        t->n = k->n;
    }
    return true;
}

static bool read_sum(lop_kron_sum *s, const lop_node *a, int mode, lop_coef c, int depth) {
    a = peel(a, &mode, &c);
    if (depth == 0) return false;
    if (a->op == &lop_op_prod) { /* I X, as multiples of the identity are written */
        int own = mode;
        const lop_node *one = peel(a->child[0], &own, &c);
        return one->op == &lop_op_identity && lop_nbatch(one) == 0 &&
               read_sum(s, a->child[1], mode, c, depth - 1);
    }
    if (a->op == &lop_op_sum)
        return read_sum(s, a->child[0], mode, c, depth - 1) &&
               read_sum(s, a->child[1], mode, c, depth - 1);
    if (a->op == &lop_op_identity && lop_nbatch(a) == 0) {
        s->c = lop_coef_plus(a->ctx, s->c, c);
        s->eye = true;
        return true;
    }
    if (a->op == &lop_op_kronsum) return add_kronsum(s, a, mode, c);
    lop_kron_term *t = a->op == &lop_op_kron ? new_term(s, c) : NULL;
    return t && add_factor(t, a, mode, depth);
}

bool lop_kron_same(const lop_node *a, const lop_node *b) {
    return lop_node_alike(a, b, LOP_INFER_DEPTH);
}

/* What stands at place i: at most two matrices, and no identity beside two. */
static bool read_place(lop_kron_sum *s, int i) {
    lop_kron_place *p = &s->at[i];
    bool eye = s->eye, flip[2] = {false, false};
    p->diagonal = true;
    for (int t = 0; t < s->nt; t++) {
        const lop_kron_factor *f = &s->t[t].f[i];
        eye = eye || !f->node;
        if (f->node && f->node->op != &lop_op_diag) p->diagonal = false;
    }
    for (int t = 0; t < s->nt && !p->diagonal; t++) {
        const lop_kron_factor *f = &s->t[t].f[i];
        /* for a Hermitian matrix T and conj are the same view, and so are H and none */
        const bool turn =
            f->node && lop_is_complex(f->node->dtype) && (f->mode == LOP_T || f->mode == LOP_C);
        if (!f->node || (p->a && lop_kron_same(f->node, p->a) && turn == flip[0]) ||
            (p->b && lop_kron_same(f->node, p->b) && turn == flip[1]))
            continue;
        if (p->a && p->b) return false;
        flip[p->a != NULL] = turn;
        *(p->a ? &p->b : &p->a) = f->node;
    }
    if (!p->b) flip[1] = flip[0];
    const bool real[2] = {p->a && !lop_is_complex(p->a->dtype),
                          p->b && !lop_is_complex(p->b->dtype)};
    if (flip[0] != flip[1] && !real[0] && !real[1]) return false;
    p->flip = flip[0] || flip[1];
    /* The metric is tried first as the second. */
    if (p->b && lop_infer_semidefinite(p->a) && !lop_infer_semidefinite(p->b)) {
        const lop_node *b = p->b;
        p->b = p->a;
        p->a = b;
    }
    if (p->b) s->unitary = false;
    return !(p->b && eye);
}

/* A factor of the whole in thirds of flops: within its band where that is narrow. */
static double price_of_whole(const lop_kron_sum *s) {
    const double rows = (double)s->rows;
    const lop_band b = lop_infer_bands(s->sum);
    if (!lop_band_is_narrow(s->sum, b)) return rows * rows * rows;
    return 3 * rows * (double)(b.l + 1) * (double)(b.l + b.u + 1);
}

bool lop_kron_sum_pays(const lop_kron_sum *s, double each) {
    double cubes = 0;
    for (int i = 0; i < s->n; i++) {
        const double n = (double)s->t[0].size[i];
        if (!s->at[i].diagonal) cubes += n * n * n;
    }
    return s->mk->ctx->alike != 0 ||
           (s->rows >= LOP_SPECTRAL_ROWS && each * cubes <= price_of_whole(s));
}

/* Have all terms the places of the first one of `like`? */
static bool same_places(const lop_kron_sum *s, const lop_kron_sum *like) {
    for (int t = 0; t < s->nt; t++) {
        if (s->t[t].n != s->n) return false;
        for (int i = 0; i < s->n; i++)
            if (s->t[t].size[i] != like->t[0].size[i]) return false;
    }
    return true;
}

bool lop_kron_terms_read(lop_kron_sum *s, const lop_kron_sum *like, const lop_node *sum) {
    *s = (lop_kron_sum){.mk = like->mk, .dt = like->dt, .sum = sum, .rows = like->rows};
    if (!read_sum(s, sum, LOP_N, lop_coef_const(1, 0), DEPTH)) return false;
    s->n = like->n;
    return same_places(s, like);
}

bool lop_kron_sum_read(lop_kron_sum *s, const lop_maker *mk, lop_dtype dt, const lop_node *sum) {
    *s = (lop_kron_sum){.mk = mk, .dt = dt, .sum = sum, .unitary = true, .rows = lop_rows(sum)};
    if (!read_sum(s, sum, LOP_N, lop_coef_const(1, 0), DEPTH) || s->nt == 0 || s->rows == 0)
        return false;
    s->n = s->t[0].n;
    if (!same_places(s, s)) return false;
    bool some = false;
    for (int i = 0; i < s->n; i++) {
        if (!read_place(s, i)) return false;
        some = some || !s->at[i].diagonal;
    }
    return some && s->n > 1 && lop_kron_sum_pays(s, LOP_COST_EIGENVECTORS);
}

/* The axes' own Laplacians side by side. */
static lop_status axes_apart(const lop_maker *mk, const lop_node *grid, const lop_node **out) {
    const lop_node *f[LOP_KRON_PLACES] = {NULL};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < grid->n; i++)
        st = lop_make(mk, grid->op->name, &grid->attr, 1, &grid->child[i], NULL, &f[i]);
    if (st == LOP_OK) st = lop_make(mk, "kronsum", NULL, grid->n, f, NULL, out);
    for (int i = 0; i < grid->n; i++) lop_node_unref(f[i]);
    return st;
}

lop_status lop_grids_as_kronsums(const lop_maker *mk, const lop_node *a, int depth,
                                 const lop_node **out) {
    const lop_node *child[2] = {NULL, NULL};
    const bool composed = a->op == &lop_op_sum || a->op == &lop_op_prod ||
                          a->op == &lop_op_scaled || a->op == &lop_op_view ||
                          a->op == &lop_op_inverse;
    if (a->op == &lop_op_laplacian && a->n > 1 && a->n <= LOP_KRON_PLACES)
        return axes_apart(mk, a, out);
    if (!composed || depth == 0) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    lop_status st = LOP_OK;
    bool same = true;
    for (int i = 0; st == LOP_OK && i < a->n; i++) {
        st = lop_grids_as_kronsums(mk, a->child[i], depth - 1, &child[i]);
        same = same && child[i] == a->child[i];
    }
    if (st == LOP_OK && same) *out = lop_node_ref(a);
    if (st == LOP_OK && !same) st = lop_make_op(mk, a->op, &a->attr, a->n, child, NULL, out);
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return st;
}
