/* rule_trial.c: both sides of a rule as numbers.
 *
 * Sizes of a draw come from three numbers, so that shapes meet often and are often rectangular; a
 * hole under an action or a composite is a dense matrix or an instance of any kind, one under a
 * kind what that kind takes. Differences beyond 1e-7 of the largest entry refuse the rule: sizes
 * are at most 4, so that only a hopeless inverse comes near. */
#include "rule_trial.h"

#include "expr/random_instance.h"
#include "rewrite/ruleset.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WANTED = 24, TRIES = 8000 };

typedef struct draw {
    lop_ctx *ctx;
    lop_rand rand;
    lop_err err;
    const lop_text *text;
    lop_dtype dt;
    bool solves; /* operands must be invertible, where they are square */
    int64_t size[3];
    const lop_node *hole[LOP_HOLES]; /* owned */
    lop_attr attr[LOP_HOLES];
    bool has_attr[LOP_HOLES];
} draw;

static int64_t pick(draw *d, int64_t lo, int64_t hi) { return lop_rng_range(&d->rand.rng, lo, hi); }
static int64_t a_size(draw *d) { return d->size[pick(d, 0, 3)]; }

/* -- operands */

/* A Dense of which its assumption holds: the content of the last leaf is made so. */
static const lop_node *assumed(draw *d, int64_t n) {
    static const int words[] = {LOP_ASSUME_SYMMETRIC, LOP_ASSUME_HERMITIAN, LOP_ASSUME_POSITIVE,
                                LOP_ASSUME_LOWER};
    const lop_node *a = NULL, *out = NULL;
    lop_attr attr = {.i = {words[pick(d, 0, 4)], 0, 0, 0}};
    if (lop_rand_matrix(&d->rand, d->dt, n, n, &a) != LOP_OK) return NULL;
    void *p = d->rand.buf[d->rand.n - 1].p;
    bool adjoint = attr.i[0] == LOP_ASSUME_HERMITIAN || attr.i[0] == LOP_ASSUME_POSITIVE;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) {
            double _Complex v = lop_get(d->dt, p, j * n + i);
            if (attr.i[0] == LOP_ASSUME_LOWER)
                v = i == j ? v + 2 : 0;
            else if (adjoint)
                v = i != j ? conj(v) : attr.i[0] == LOP_ASSUME_POSITIVE ? 40 : creal(v);
            lop_set(d->dt, p, i * n + j, v);
        }
    lop_status st = lop_node_make(d->ctx, &lop_op_dense, &attr, 1, &a, NULL, &out, &d->err);
    lop_node_unref(a);
    return st == LOP_OK ? out : NULL;
}

static const lop_node *instance(draw *d, const lop_op *op, int64_t m, int64_t n) {
    const lop_node *out = NULL;
    if (!op || op->cls != LOP_OPERATOR || !op->random) return NULL;
    return op->random(&d->rand, m, n, d->dt, &out) == LOP_OK ? out : NULL;
}

/* Kinds whose random instances are invertible, which rules take for granted of what they solve
 * with. */
static const lop_op *a_kind(draw *d) {
    static const char *const names[] = {"diag",        "toeplitz", "circulant",   "householder",
                                        "tridiagonal", "banded",   "permutation", "identity"};
    const char *name = names[pick(d, 0, 8)];
    return d->solves ? lop_op_find(name, strlen(name)) : lop_op_at((int)pick(d, 0, lop_nops()));
}

static const lop_node *an_operator(draw *d) {
    int64_t m = a_size(d), n = pick(d, 0, 2) ? m : a_size(d), what = pick(d, 0, 8);
    const lop_node *out = NULL;
    if (what < 2 && m == n) out = assumed(d, n);
    if (what == 2 && m == n) out = instance(d, lop_op_find("householder", 11), n, n);
    if (what > 4) out = instance(d, a_kind(d), m, n);
    if (!out && lop_rand_dense(&d->rand, m, n, d->dt, &out) != LOP_OK) return NULL;
    return out;
}

static const lop_node *an_array(draw *d, int core) {
    lop_shape s = {.ndim = core, .dim = {a_size(d), a_size(d)}};
    const lop_node *out = NULL;
    return lop_rand_array(&d->rand, d->dt, core, &s, &out) == LOP_OK ? out : NULL;
}

/* What stands in a hole follows from its parent. */
static const lop_node *in_hole(draw *d, const lop_op *parent, int place) {
    static const int cores[] = {1, 2, 2, 0};
    if (parent->cls == LOP_ACTION) return place == 0 ? an_operator(d) : an_array(d, 2);
    if (parent->cls == LOP_ARRAY) return an_array(d, cores[pick(d, 0, 4)]);
    const lop_param *param = &parent->param[place < LOP_MAXPARAM ? place : 0];
    if (parent->title && param->name && param->role == LOP_P_ARRAY)
        return an_array(d, param->rank < 0 ? 1 : param->rank);
    return an_operator(d);
}

static lop_attr an_attr(draw *d, const lop_op *op) {
    lop_attr a = {.i = {0, 0, 0, 0}};
    if (op->coef) {
        double im = lop_is_complex(d->dt) ? lop_rng_normal(&d->rand.rng) : 0;
        return lop_attr_coef(lop_rng_normal(&d->rand.rng), im);
    }
    if (op == &lop_op_view || op == &lop_op_swap) a.i[0] = pick(d, 1, 4);
    if (op == &lop_op_power) a.i[0] = pick(d, 0, 4);
    if (op == &lop_op_part) a.i[0] = pick(d, 0, 2);
    if (op == &lop_op_diagonal && pick(d, 0, 2)) a.i[0] = pick(d, -2, 3);
    if (op == &lop_op_element) a = (lop_attr){.i = {pick(d, 0, 2), pick(d, 0, 2), 0, 0}};
    if (op == &lop_op_sliced) a = (lop_attr){.i = {pick(d, 0, 2), pick(d, 0, 2), 1, pick(d, 0, 3)}};
    if (op->cls == LOP_ACTION || op == &lop_op_cast) a.i[3] = (int64_t)d->dt + 1;
    return a;
}

/* Holes and attributes of `(kind@k ?a ...)` from one random instance, whose parts fit each other.
 */
static void bind_instance(draw *d, const lop_term *t) {
    int64_t m = a_size(d), n = pick(d, 0, 3) ? m : a_size(d);
    const lop_node *a = instance(d, t->op, m, n);
    for (int i = 0; a && a->n == t->n && i < t->n; i++) {
        const lop_term *below = &d->text->term[d->text->index[t->first + i]];
        if (!below->op && !d->hole[below->hole]) d->hole[below->hole] = lop_node_ref(a->child[i]);
    }
    if (a && a->n == t->n && t->attr_hole >= 0 && !d->has_attr[t->attr_hole]) {
        d->attr[t->attr_hole] = a->attr;
        d->has_attr[t->attr_hole] = true;
    }
    lop_node_unref(a);
}

/* Term `id` as a node: owned; NULL where the draw does not work out. Recursion is as deep as the
 * rule's text, which is bounded. */
static const lop_node *fill(draw *d, int id, const lop_op *parent, int place) {
    const lop_term *t = &d->text->term[id];
    if (!t->op) {
        if (!d->hole[t->hole]) d->hole[t->hole] = in_hole(d, parent, place);
        return lop_node_ref(d->hole[t->hole]);
    }
    if (t->n == 0) return instance(d, t->op, a_size(d), a_size(d));
    if (t->op->random && t->op != &lop_op_dense) bind_instance(d, t);
    lop_attr attr = t->has_attr ? t->attr : an_attr(d, t->op);
    if (t->attr_hole >= 0) {
        if (!d->has_attr[t->attr_hole]) d->attr[t->attr_hole] = attr;
        d->has_attr[t->attr_hole] = true;
        attr = d->attr[t->attr_hole];
    }
    const lop_node *child[8] = {0}, *out = NULL;
    bool all = t->n <= 8;
    for (int i = 0; all && i < t->n; i++)
        all = (child[i] = fill(d, d->text->index[t->first + i], t->op, i)) != NULL;
    if (all && lop_node_make(d->ctx, t->op, &attr, t->n, child, NULL, &out, &d->err) != LOP_OK)
        out = NULL;
    for (int i = 0; i < t->n && i < 8; i++) lop_node_unref(child[i]);
    return out;
}

static bool mentions_solves(const lop_rule *rule) {
    static const char *const words[] = {"(inverse", "(solve", "(lu_solve", "(pow_det:-"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(rule->left, words[i]) || strstr(rule->right, words[i])) return true;
    return false;
}

static const lop_node *a_left(draw *d, lop_ctx *ctx, const lop_compiled *row, int number) {
    static const int64_t pool[] = {1, 2, 3, 2, 4, 3};
    memset(d, 0, sizeof *d);
    d->ctx = ctx;
    const lop_text *text = d->text = &row->left;
    d->solves = mentions_solves(row->rule);
    lop_err_open(&d->err);
    lop_rand_init(&d->rand, ctx, 977u + 7919u * (uint64_t)number, &d->err);
    d->dt = pick(d, 0, 4) ? LOP_c128 : LOP_f64;
    for (int i = 0; i < 3; i++) d->size[i] = i && pick(d, 0, 2) ? d->size[0] : pool[pick(d, 0, 6)];
    return fill(d, text->n - 1, NULL, 0);
}

static void forget(draw *d) {
    for (int i = 0; i < LOP_HOLES; i++) lop_node_unref(d->hole[i]);
    lop_rand_clear(&d->rand);
}

/* -- values */

typedef struct value {
    lop_dtype dt;
    int64_t n;
    void *p; /* owned */
} value;

static lop_status run(draw *d, const lop_plan *plan, value *out) {
    const lop_slot *o = &plan->slot[plan->out];
    lop_store store;
    lop_frame frame;
    lop_buf buf = {.dt = o->dt, .shape = o->shape};
    lop_status st = lop_shape_count(&o->shape, &out->n, &d->err);
    if (st != LOP_OK) return st;
    out->dt = o->dt;
    out->p = lop_calloc(d->ctx, (size_t)out->n, lop_dtype_size(o->dt));
    if (!out->p) return LOP_NOMEM;
    buf.p = out->p;
    int64_t stride = 1;
    for (int i = o->shape.ndim - 1; i >= 0; i--) {
        buf.stride[i] = stride;
        stride *= o->shape.dim[i];
    }
    lop_store_init(&store, d->ctx, 0);
    st = lop_frame_open(&frame, plan, NULL, &store, &d->err);
    if (st != LOP_OK) return st;
    for (int i = 0; st == LOP_OK && i < plan->nleaf; i++) {
        const lop_buf *leaf = lop_rand_find(&d->rand, plan->leaf[i].serial);
        st = leaf ? lop_frame_bind(&frame, i, leaf, &d->err) : LOP_INTERNAL;
    }
    if (st == LOP_OK) st = lop_frame_bind(&frame, plan->nleaf, &buf, &d->err);
    if (st == LOP_OK) st = lop_exec(&frame, &d->err);
    lop_frame_close(&frame);
    lop_store_clear(&store);
    return st;
}

static lop_status value_of(draw *d, const lop_rules *table, const lop_node *node, value *out) {
    lop_options options = {.fft = false};
    lop_attr a = {.i = {0, 0, 0, (int64_t)node->dtype + 1}};
    const lop_node *root = lop_node_ref(node);
    lop_plan *plan = NULL;
    lop_status st = LOP_OK;
    out->p = NULL;
    if (node->op->cls == LOP_OPERATOR) {
        lop_node_unref(root);
        st = lop_node_make(d->ctx, &lop_op_todense, &a, 1, &node, NULL, &root, &d->err);
    }
    if (st == LOP_OK) st = lop_plan_one(d->ctx, table, &options, root, &plan, &d->err);
    lop_node_unref(root);
    if (st == LOP_OK) st = run(d, plan, out);
    lop_plan_unref(plan);
    return st;
}

/* -- the trial */

static lop_status differ(draw *d, const lop_rule *rule, const lop_node *left, lop_err *err,
                         const char *what) {
    char *text = lop_dump(left, 24);
    lop_status st = lop_fail(err, LOP_DOMAIN, "rule %.60s: %.200s, for %.200s", rule->name, what,
                             text ? text : "?");
    lop_free(d->ctx, text);
    return st;
}

static lop_status compare(draw *d, const lop_rule *rule, const lop_node *left, const value *a,
                          const value *b, lop_err *err) {
    double largest = 0, worst = -1;
    int64_t at = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double _Complex u = lop_get(a->dt, a->p, i), v = lop_get(b->dt, b->p, i);
        largest = fmax(largest, fmax(cabs(u), cabs(v)));
        if (!isfinite(cabs(u)) || !isfinite(cabs(v))) return LOP_NOMATCH;
        if (cabs(u - v) > worst) {
            worst = cabs(u - v);
            at = i;
        }
    }
    if (worst <= 1e-7 * fmax(largest, 1e-300) || largest == 0) return LOP_OK;
    char what[200];
    double _Complex u = lop_get(a->dt, a->p, at), v = lop_get(b->dt, b->p, at);
    snprintf(
        what, sizeof what,
        "entry %lld is %.6g%+.6gi on the left and %.6g%+.6gi on the right (they differ by %.3g)",
        (long long)at, creal(u), cimag(u), creal(v), cimag(v), worst);
    return differ(d, rule, left, err, what);
}

/* OK: compared and equal; NOMATCH: nothing to compare; DOMAIN, with the numbers. */
static lop_status both(draw *d, const lop_rules *table, const lop_compiled *row,
                       const lop_node *left, lop_err *err) {
    lop_match m;
    lop_maker mk = {.ctx = d->ctx, .err = &d->err};
    const lop_node *right = NULL;
    value a = {.p = NULL}, b = {.p = NULL};
    char what[200], is[64], has[64];
    if (!lop_rule_match(row, left, &m)) return LOP_NOMATCH;
    if (row->rule->when && row->rule->when(&m) != LOP_TRUE) return LOP_NOMATCH;
    lop_status st = lop_instantiate(&row->right, row->right.n - 1, &m, &mk, &right);
    if (st == LOP_NOMEM) return st;
    if (st != LOP_OK) {
        snprintf(what, sizeof what, "the right side is not well-formed where the left is (%.120s)",
                 d->err.text);
        return differ(d, row->rule, left, err, what);
    }
    if (left->core != right->core || !lop_shape_equal(&left->shape, &right->shape)) {
        snprintf(what, sizeof what, "the left side has shape %s, the right %s",
                 lop_shape_text(&left->shape, has, sizeof has),
                 lop_shape_text(&right->shape, is, sizeof is));
        st = differ(d, row->rule, left, err, what);
    } else if (left->dtype != right->dtype) {
        snprintf(what, sizeof what, "the left side has dtype %s, the right %s",
                 lop_dtype_name(left->dtype), lop_dtype_name(right->dtype));
        st = differ(d, row->rule, left, err, what);
    } else {
        st = value_of(d, table, left, &a);
        if (st == LOP_OK) st = value_of(d, table, right, &b);
        if (st == LOP_OK)
            st = compare(d, row->rule, left, &a, &b, err);
        else if (st != LOP_NOMEM)
            st = LOP_NOMATCH; /* singular, or not to be computed */
    }
    lop_free(d->ctx, a.p);
    lop_free(d->ctx, b.p);
    lop_node_unref(right);
    return st;
}

lop_status lop_rule_trial(lop_ctx *ctx, const lop_rules *table, const lop_rule *rule,
                          lop_err *err) {
    lop_rules *one = NULL;
    draw *d = NULL;
    int compared = 0;
    lop_status st = lop_rules_new(ctx, rule, 0, &one, err);
    if (st == LOP_OK) st = lop_rules_add(one, rule, false, NULL, err);
    if (st == LOP_OK && !(d = lop_alloc(ctx, sizeof *d))) st = lop_fail(err, LOP_NOMEM, NULL);
    for (int i = 0; st == LOP_OK && i < TRIES && compared < WANTED; i++) {
        const lop_node *left = a_left(d, ctx, &one->row[0], i);
        if (left) {
            st = both(d, table, &one->row[0], left, err);
            compared += st == LOP_OK;
            if (st == LOP_NOMATCH) st = LOP_OK;
        } else if (d->err.status == LOP_NOMEM) {
            st = LOP_NOMEM;
        }
        lop_node_unref(left);
        forget(d);
    }
    if (st == LOP_OK && compared < WANTED)
        st =
            lop_fail(err, LOP_DOMAIN,
                     "rule %s could not be tried: its left side (and guard) fitted %d of %d random "
                     "draws, %d are due",
                     rule->name, compared, TRIES, WANTED);
    lop_free(ctx, d);
    lop_rules_free(one);
    return st == LOP_NOMEM ? lop_fail(err, st, NULL) : st;
}
