/* vjp.c: builds cotangents, nodes over nodes; see vjp.h. */
#include "vjp.h"
#include "coefficients.h"

/* Takes over a node that was made. */
static const lop_node *take(lop_vjp *v, lop_status st, const lop_node *made) {
    if (st == LOP_OK && v->n == LOP_VJP_NODES) {
        lop_node_unref(made);
        st = lop_fail(v->err, LOP_INTERNAL, "a cotangent of more than %d nodes", LOP_VJP_NODES);
    }
    if (st != LOP_OK) {
        v->st = st;
        return NULL;
    }
    return v->made[v->n++] = made;
}

const lop_node *lop_vjp_over(lop_vjp *v, const lop_op *op, const lop_attr *attr, int n,
                             const lop_node *const *child) {
    const lop_attr none = {.i = {0, 0, 0, 0}};
    const lop_node *made = NULL;
    if (v->st != LOP_OK) return NULL;
    const lop_status st =
        lop_node_make(v->ctx, op, attr ? attr : &none, n, child, NULL, &made, v->err);
    return take(v, st, made);
}
const lop_node *lop_vjp_like(lop_vjp *v, const lop_op *op, const lop_node *like) {
    const lop_attr none = {.i = {0, 0, 0, 0}};
    const lop_node *made = NULL;
    if (v->st != LOP_OK) return NULL;
    const lop_status st = lop_node_make(v->ctx, op, &none, 0, NULL, like, &made, v->err);
    return take(v, st, made);
}
const lop_node *lop_vjp_make(lop_vjp *v, const lop_op *op, const lop_attr *attr, const lop_node *a,
                             const lop_node *b) {
    const lop_node *child[2] = {a, b};
    return lop_vjp_over(v, op, attr, b ? 2 : 1, child);
}

const lop_node *lop_vjp_unable(lop_vjp *v) {
    if (v->st == LOP_OK) v->st = LOP_UNABLE;
    return NULL;
}

const lop_node *lop_vjp_sum(lop_vjp *v, const lop_node *a, const lop_node *b) {
    if (v->st != LOP_OK) return NULL;
    return !a ? b : !b ? a : lop_vjp_make(v, &lop_op_sum, NULL, a, b);
}
/* Is it the identity, or one times it, of no wider dtype than the other factor? */
static bool is_one(const lop_node *a, const lop_node *other) {
    while (a->op == &lop_op_view ||
           (a->op == &lop_op_scaled && lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_ONE)))
        a = a->child[0];
    return a->op == &lop_op_identity && lop_nbatch(a) == 0 &&
           lop_promote(a->dtype, other->dtype) == other->dtype;
}
const lop_node *lop_vjp_prod(lop_vjp *v, const lop_node *a, const lop_node *b) {
    if (v->st == LOP_OK && a && b && is_one(a, b)) return b;
    if (v->st == LOP_OK && a && b && is_one(b, a)) return a;
    return lop_vjp_make(v, &lop_op_prod, NULL, a, b);
}
const lop_node *lop_vjp_view(lop_vjp *v, const lop_node *a, lop_mode mode) {
    if (v->st != LOP_OK || mode == LOP_N) return v->st == LOP_OK ? a : NULL;
    if (mode == LOP_C && !lop_is_complex(a->dtype)) return a;
    if (a->op == &lop_op_view && (lop_mode)a->attr.i[0] == mode) return a->child[0];
    if (a->op == &lop_op_diag) {
        if (!(mode & LOP_C) || !lop_is_complex(a->dtype)) return a;
        const lop_node *d = lop_vjp_make(v, &lop_op_conjugate, NULL, a->child[0], NULL);
        return d ? lop_vjp_make(v, &lop_op_diag, NULL, d, NULL) : NULL;
    }
    if (a->op == &lop_op_lowrank && a->n == 2) { /* U V^H, as a product */
        const lop_node *u = a->child[0], *w = a->child[1];
        if (mode == LOP_H) return lop_vjp_prod(v, w, lop_vjp_view(v, u, LOP_H));
        if (mode == LOP_C)
            return lop_vjp_prod(v, lop_vjp_view(v, u, LOP_C), lop_vjp_view(v, w, LOP_T));
        return lop_vjp_prod(v, lop_vjp_view(v, w, LOP_C), lop_vjp_view(v, u, LOP_T));
    }
    const lop_attr attr = {.i = {(int64_t)mode, 0, 0, 0}};
    return lop_vjp_make(v, &lop_op_view, &attr, a, NULL);
}
const lop_node *lop_vjp_inverse(lop_vjp *v, const lop_node *a) {
    return lop_vjp_make(v, &lop_op_inverse, NULL, a, NULL);
}
const lop_node *lop_vjp_times(lop_vjp *v, double re, double im, const lop_node *a) {
    const lop_attr attr = lop_attr_coef(re, im);
    if (v->st != LOP_OK || (re == 1 && im == 0)) return v->st == LOP_OK ? a : NULL;
    return lop_vjp_make(v, &lop_op_scaled, &attr, a, NULL);
}
const lop_node *lop_vjp_assumed(lop_vjp *v, const lop_node *g, int64_t word) {
    if (word < LOP_ASSUME_SYMMETRIC || word > LOP_ASSUME_POSITIVE || v->st != LOP_OK) return g;
    const bool plain = word == LOP_ASSUME_SYMMETRIC;
    if (lop_node_trait(g, plain ? LOP_SYMMETRIC : LOP_HERMITIAN) == LOP_TRUE) return g;
    return lop_vjp_times(v, 0.5, 0, lop_vjp_sum(v, g, lop_vjp_view(v, g, plain ? LOP_T : LOP_H)));
}
const lop_node *lop_vjp_real(lop_vjp *v, const lop_node *a) {
    if (v->st != LOP_OK || !v->real || !lop_is_complex(a->dtype)) return v->st == LOP_OK ? a : NULL;
    return lop_vjp_make(v, &lop_op_part, NULL, a, NULL);
}
const lop_node *lop_vjp_diagonal(lop_vjp *v, const lop_node *a, int64_t k) {
    if (!(a = lop_vjp_real(v, a))) return NULL;
    const lop_attr attr = {.i = {k, 0, 0, (int64_t)a->dtype + 1}};
    return lop_vjp_make(v, &lop_op_diagonal, &attr, a, NULL);
}
const lop_node *lop_vjp_dense(lop_vjp *v, const lop_node *a) {
    if (!(a = lop_vjp_real(v, a))) return NULL;
    const lop_attr attr = {.i = {0, 0, 0, (int64_t)a->dtype + 1}};
    return lop_vjp_make(v, &lop_op_todense, &attr, a, NULL);
}
const lop_node *lop_vjp_cut(lop_vjp *v, const lop_node *a, int axis, int64_t start, int64_t count) {
    if (v->st != LOP_OK) return NULL;
    if (start == 0 && count == (axis == 0 ? lop_rows(a) : lop_cols(a))) return a;
    const lop_attr attr = {.i = {axis, start, 1, count}};
    return lop_vjp_make(v, &lop_op_sliced, &attr, a, NULL);
}

const lop_node *lop_vjp_eye(lop_vjp *v, int64_t n, lop_dtype dt) {
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    return lop_vjp_like(v, &lop_op_identity, &like);
}
const lop_node *lop_vjp_zeros(lop_vjp *v, int64_t n, lop_dtype dt) {
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    const lop_node *none = lop_vjp_like(v, &lop_op_zeros, &like);
    return none ? lop_vjp_diagonal(v, none, 0) : NULL;
}
bool lop_vjp_thin(lop_vjp *v, const lop_node *g, int64_t most, const lop_node **a,
                  const lop_node **b) {
    if (g->op == &lop_op_prod && lop_cols(g->child[0]) > most) { /* within either factor? */
        for (int i = 0; i < 2; i++) {
            if (!lop_vjp_thin(v, g->child[i], most, a, b)) continue;
            if (i == 0) *b = lop_vjp_prod(v, *b, g->child[1]);
            if (i == 1) *a = lop_vjp_prod(v, g->child[0], *a);
            return *a && *b;
        }
        return false;
    }
    if (g->op == &lop_op_prod) {
        *a = g->child[0];
        *b = g->child[1];
    } else if (g->op == &lop_op_lowrank && g->n == 2) {
        *a = g->child[0];
        *b = lop_vjp_view(v, g->child[1], LOP_H);
    } else {
        return false;
    }
    return *b && lop_cols(*a) <= most;
}

/* A product without the identities in it, as cotangents of traces bring them; views of thin
 * products as products, of diagonals as diagonals. */
static const lop_node *plainer(lop_vjp *v, const lop_node *g, int deep) {
    if (v->st == LOP_OK && g->op == &lop_op_view &&
        (g->child[0]->op == &lop_op_lowrank || g->child[0]->op == &lop_op_diag))
        return lop_vjp_view(v, g->child[0], (lop_mode)g->attr.i[0]);
    if (deep > 0 && v->st == LOP_OK && g->op == &lop_op_scaled) {
        const lop_node *of = plainer(v, g->child[0], deep - 1);
        return of == g->child[0] || !of ? g : lop_vjp_make(v, &lop_op_scaled, &g->attr, of, NULL);
    }
    if (g->op != &lop_op_prod || deep == 0 || v->st != LOP_OK) return g;
    const lop_node *a = plainer(v, g->child[0], deep - 1), *b = plainer(v, g->child[1], deep - 1);
    if (v->st != LOP_OK) return NULL;
    const bool same = a == g->child[0] && b == g->child[1] && !is_one(a, b) && !is_one(b, a);
    return same ? g : lop_vjp_prod(v, a, b);
}

/* Has the cotangent of a child every element of the batch? (What it says of a child without one is
 * their sum.) */
static bool of_all(const lop_node *self, const lop_node *g, const lop_node *made) {
    lop_shape batch;
    if (lop_shape_batch(&self->shape, 2, &g->shape, 2, &batch, NULL) != LOP_OK ||
        batch.ndim != lop_nbatch(made))
        return false;
    for (int i = 0; i < batch.ndim; i++)
        if (batch.dim[i] != made->shape.dim[i]) return false;
    return true;
}

lop_status lop_cotangent(lop_ctx *ctx, const lop_node *self, int child, const lop_node *g,
                         const lop_node **out, lop_err *err) {
    *out = NULL;
    if (child < 0 || child > self->n)
        return lop_fail(err, LOP_INDEX, "%s has no child %d", self->op->name, child);
    if (g->op->cls != LOP_OPERATOR || lop_rows(g) != lop_rows(self) ||
        lop_cols(g) != lop_cols(self))
        return lop_fail(err, LOP_DIM, "a cotangent has the shape of its operator");
    const lop_dtype dt = child < self->n ? self->child[child]->dtype : self->dtype;
    lop_vjp v = {.ctx = ctx, .err = err, .st = LOP_OK, .real = !lop_is_complex(dt)};
    enum { DEEP = 6 };
    g = plainer(&v, g, DEEP);
    const bool has = self->op->vjp && (child < self->n || self->op->vjp_together);
    const lop_node *made = has && g ? self->op->vjp(&v, self, child, g) : lop_vjp_unable(&v);
    if (v.st == LOP_OK && !made)
        v.st = lop_fail(err, LOP_INTERNAL, "no cotangent of child %d of %s", child, self->op->name);
    if (v.st == LOP_OK && !of_all(self, g, made)) v.st = LOP_UNABLE;
    if (v.st == LOP_OK && made->op->cls == LOP_OPERATOR) made = lop_vjp_real(&v, made);
    if (v.st == LOP_OK && v.real && lop_is_complex(made->dtype)) v.st = LOP_UNABLE;
    if (v.st == LOP_OK) *out = lop_node_ref(made);
    for (int i = 0; i < v.n; i++) lop_node_unref(v.made[i]);
    return v.st;
}

const lop_node *lop_vjp_without_multiple(lop_vjp *v, const lop_node *g, int deep,
                                         const lop_node **by) {
    const bool pair = g->op == &lop_op_prod;
    if (g->op == &lop_op_scaled) return (*by = g)->child[0];
    if (deep == 0 || (!pair && g->op != &lop_op_view)) return NULL;
    for (int i = 0; i < (pair ? 2 : 1); i++) {
        const lop_node *both[2] = {g->child[0], pair ? g->child[1] : NULL};
        both[i] = lop_vjp_without_multiple(v, both[i], deep - 1, by);
        if (both[i])
            return pair ? lop_vjp_make(v, &lop_op_prod, NULL, both[0], both[1])
                        : lop_vjp_view(v, both[0], (lop_mode)g->attr.i[0]);
        if (*by) return NULL;
    }
    return NULL;
}
