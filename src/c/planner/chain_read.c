/* chain_read.c: a product or sum of operators as groups of terms: views pushed to the factors,
 * scalars hoisted, inverses of square products reversed. Recursion is bounded by LOP_CH_DEPTH;
 * what is deeper, longer or of an exact dtype stays as written. Cost O(factors * atoms). */
#include "chain.h"
#include "expr/properties.h"
#include "ops/shared/factor.h"
#include "rewrite/line_sums.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    lop_chain *ch;
    lop_chstate *st;
    int depth, nest;
    bool keep; /* a factor that undoes the one before it is kept */
    struct {
        const lop_node *sum; /* of which it was read */
        int terms;           /* before it was */
        int uses;
        bool open; /* being read: its last term is not there yet */
    } group[LOP_CH_GROUPS];
} reader;

/* -- symbols */

lop_sym lop_chain_canon(const lop_chain *ch, const lop_chstate *st, lop_sym s) {
    int mode = lop_sym_mode(s);
    if (mode == 0 || s == LOP_CH_PROXY) return s;
    const lop_atom *a = lop_chain_atom(ch, st, s);
    if (!a) {
        if (st->group[lop_sym_group(s)].real) mode &= ~LOP_C;
    } else {
        if (a->symmetric) mode &= ~LOP_T;
        if (a->hermitian && (mode & LOP_T)) mode ^= LOP_H;
        if (a->real) mode &= ~LOP_C;
    }
    return lop_sym_make(lop_sym_number(s), lop_sym_inverse(s), mode);
}

lop_sym lop_chain_seen(const lop_chain *ch, const lop_chstate *st, lop_sym s, int mode) {
    return s == LOP_CH_PROXY ? s : lop_chain_canon(ch, st, (lop_sym)(s ^ mode));
}

static int64_t side(const lop_chain *ch, const lop_chstate *st, lop_sym s, bool rows) {
    if (s == LOP_CH_PROXY) return 0;
    if (lop_sym_mode(s) & LOP_T) rows = !rows;
    if (lop_sym_is_group(s)) {
        const lop_chgroup *g = &st->group[lop_sym_group(s)];
        return rows ? g->rows : g->cols;
    }
    const lop_node *a = ch->atom[lop_sym_number(s)].node;
    return rows ? lop_rows(a) : lop_cols(a);
}
int64_t lop_chain_rows(const lop_chain *ch, const lop_chstate *st, lop_sym s) {
    return side(ch, st, s, true);
}
int64_t lop_chain_cols(const lop_chain *ch, const lop_chstate *st, lop_sym s) {
    return side(ch, st, s, false);
}

/* -- atoms */

/* Is it X^H X of a dense X? Where that product has no digits left, QR of X solves
 * (solve_normal_equations.c). */
static bool is_normal(const lop_node *a) {
    const lop_node *x = a->op == &lop_op_prod ? a->child[0] : NULL;
    return x && x->op == &lop_op_view && x->child[0]->op == &lop_op_dense &&
           a->child[1]->op == &lop_op_dense;
}

/* Is there no way to solve with it but by its dense form? */
static bool is_formed(const lop_node *a) {
    while (a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_dense || a->op == &lop_op_kernel;
}

/* Is a solve with it one by Cholesky, which is tried of all that is its own adjoint as it is
 * written, and is there no cheaper way? Small matrices are left
 * out, which have another factor: two different factors of an ill-conditioned matrix do not fit
 * together in one formula */
static bool by_cholesky(const lop_node *a, lop_dtype dt) {
    if (lop_stack_fits(lop_rows(a), dt)) return false;
    if (a->op == &lop_op_dense) return lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE;
    if (a->op == &lop_op_prod) return lop_infer_semidefinite(a) && !is_normal(a);
    lop_line_sum states;
    if ((a->op != &lop_op_sum && a->op != &lop_op_kernel) || !lop_infer_hermitian(a) ||
        lop_line_update_read(&states, a))
        return false;
    while (a->op == &lop_op_sum) {
        if (is_formed(a->child[1])) return true;
        a = a->child[0];
    }
    return is_formed(a);
}

/* Is it its own adjoint, by what is assumed or by how it is written? */
static bool own_adjoint(const lop_node *a) {
    if (lop_node_trait(a, LOP_HERMITIAN) == LOP_TRUE) return true;
    return (a->op == &lop_op_sum || a->op == &lop_op_prod) && lop_infer_hermitian(a);
}

/* A Dense that is assumed triangular is one by now (lop_declared_kinds). */
static uint8_t triangle_of(const lop_node *a) {
    return a->op != &lop_op_triangular ? 0 : a->attr.i[0] ? 2 : 1;
}

static bool atom_of(lop_chain *ch, const lop_node *node, lop_sym *out) {
    int i = 0;
    if (!node->weak && !lop_is_blas(node->dtype)) return false; /* integers wrap as written */
    while (i < ch->natom && !lop_node_alike(ch->atom[i].node, node, 4)) i++;
    for (int j = 0; i == ch->natom && j < ch->natom; j++) {
        const int mode = lop_node_turned(ch->atom[j].node, node, 4);
        if (!mode) continue;
        *out = lop_sym_make(j, false, mode);
        return true;
    }
    if (i == LOP_CH_ATOMS) return false;
    if (i == ch->natom) {
        bool array = node->op->cls != LOP_OPERATOR, real = !lop_is_complex(node->dtype),
             hermitian = !array && own_adjoint(node);
        ch->atom[ch->natom++] = (lop_atom){
            node,
            array,
            real,
            (real && hermitian) || (!array && lop_node_trait(node, LOP_SYMMETRIC) == LOP_TRUE),
            hermitian,
            !array && by_cholesky(node, ch->dt),
            triangle_of(node)};
        lop_shape both;
        if (lop_nbatch(node) > 0) {
            ch->batched = true;
            if (lop_shape_batch(&ch->batch, 0, &node->shape, node->core, &both, NULL) != LOP_OK)
                return false;
            ch->batch = both;
        }
    }
    *out = lop_sym_make(i, false, 0);
    return true;
}
bool lop_chain_array(lop_chain *ch, const lop_node *x, lop_sym *out) { return atom_of(ch, x, out); }

/* -- terms */

/* Is a b the identity, by assumption or by how they are written? The same node, inverted or not,
 * with an inverse; or unitary, beside its adjoint. */
static bool undoes(const reader *r, lop_sym a, lop_sym b) {
    const int g = lop_sym_is_group(a)   ? lop_sym_group(a)
                  : lop_sym_is_group(b) ? lop_sym_group(b)
                                        : -1;
    const lop_sym whole = lop_sym_is_group(a) ? b : a;
    if (r->keep || (g >= 0 && lop_sym_is_group(whole))) return false;
    const lop_atom *of = &r->ch->atom[lop_sym_number(whole)];
    if (of->array || lop_nbatch(of->node) > 0) return false;
    if (g >= 0)
        return lop_sym_inverse(whole) && lop_sym_mode(a) == lop_sym_mode(b) && r->group[g].sum &&
               lop_node_alike(of->node, r->group[g].sum, 4) &&
               lop_infer_regular(of->node) == LOP_TRUE;
    if (lop_sym_number(a) != lop_sym_number(b)) return false;
    if (lop_sym_inverse(a) != lop_sym_inverse(b))
        return lop_sym_mode(a) == lop_sym_mode(b) && lop_infer_regular(of->node) == LOP_TRUE;
    return !lop_sym_inverse(a) && lop_chain_canon(r->ch, r->st, (lop_sym)(a ^ LOP_H)) == b &&
           lop_infer_unitary(of->node);
}

/* A sum that nothing else uses is forgotten. */
static void forget(reader *r, lop_sym s) {
    if (!lop_sym_is_group(s)) return;
    const int g = lop_sym_group(s);
    if (--r->group[g].uses > 0 || g != r->st->ngroup - 1) return;
    r->st->ngroup = g;
    r->st->nterm = r->group[g].terms;
}

static bool put(reader *r, lop_chterm *t, lop_sym s) {
    s = lop_chain_canon(r->ch, r->st, s);
    if (t->n > 0 && undoes(r, t->f[t->n - 1], s)) {
        forget(r, t->f[--t->n]);
        forget(r, s);
        return true;
    }
    if (t->n == LOP_CH_FACTORS) return false;
    t->f[t->n++] = s;
    return true;
}

/* May the coefficient go to the end of the chain? Not where that could bring values out of range
 * that were in it as written. */
static bool hoist(const reader *r, lop_chterm *t, const lop_attr *attr, int mode, bool inverse) {
    lop_ctx *ctx = r->ch->ctx;
    lop_coef c = lop_coef_of(attr);
    if (mode & LOP_C) c = lop_coef_conj(ctx, c);
    if (!inverse && lop_coef_test(ctx, c, LOP_COEF_ZERO)) {
        t->c = lop_coef_const(0, 0);
        return true;
    }
    if (!lop_coef_test(ctx, c, LOP_COEF_MODEST)) return false;
    if (inverse) c = lop_coef_over(ctx, lop_coef_const(1, 0), c);
    c = lop_coef_times(ctx, t->c, c);
    if (!lop_coef_test(ctx, t->c, LOP_COEF_ZERO) && !lop_coef_test(ctx, c, LOP_COEF_MODEST))
        return false;
    t->c = c;
    return true;
}

static bool read_term(reader *r, lop_chterm *t, const lop_node *node, int mode, bool inverse);
static bool read_sum(reader *r, lop_chgroup *g, const lop_node *node, int mode, lop_chterm seed);

static bool term_new(reader *r, lop_chgroup *g, int *at) {
    if (g->n == LOP_CH_GROUP || r->st->nterm == LOP_CH_TERMS) return false;
    *at = g->term[g->n++] = (int16_t)r->st->nterm++;
    return true;
}

static bool group_is_real(const reader *r, const lop_chgroup *g) {
    for (int i = 0; i < g->n; i++) {
        const lop_chterm *t = &r->st->term[g->term[i]];
        if (t->c.im != 0) return false;
        for (int j = 0; j < t->n; j++) {
            lop_sym s = t->f[j];
            if (lop_sym_is_group(s) ? !r->st->group[lop_sym_group(s)].real
                                    : !r->ch->atom[lop_sym_number(s)].real)
                return false;
        }
    }
    return true;
}

static bool groups_equal(lop_ctx *ctx, const lop_chstate *st, const lop_chgroup *a,
                         const lop_chgroup *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++) {
        const lop_chterm *s = &st->term[a->term[i]], *t = &st->term[b->term[i]];
        if (s->n != t->n || !lop_coef_same(ctx, s->c, t->c) ||
            memcmp(s->f, t->f, (size_t)s->n * sizeof *s->f) != 0)
            return false;
    }
    return true;
}

/* A sum within a product; one that was met before is the same group. */
static bool read_group(reader *r, lop_chterm *t, const lop_node *node, int mode) {
    lop_chstate *st = r->st;
    if (st->ngroup == LOP_CH_GROUPS || r->nest == LOP_CH_NEST) return false;
    int at = st->ngroup++, terms = st->nterm;
    lop_chgroup *g = &st->group[at];
    *g = (lop_chgroup){.rows = lop_rows(node), .cols = lop_cols(node)};
    r->group[at].sum = node;
    r->group[at].terms = terms;
    r->group[at].uses = 0;
    r->group[at].open = true;
    r->nest++;
    bool ok = read_sum(r, g, node, 0, (lop_chterm){.c = {.re = 1}});
    r->nest--;
    r->group[at].open = false;
    if (!ok) return false;
    g->real = group_is_real(r, g);
    for (int i = r->ch->nroot; i < at; i++)
        if (at + 1 == st->ngroup && !r->group[i].open &&
            groups_equal(r->ch->ctx, st, &st->group[i], g)) {
            st->ngroup--;
            st->nterm = terms;
            at = i;
        }
    r->group[at].uses++;
    return put(r, t, lop_sym_make(LOP_CH_ATOMS + at, false, mode));
}

static bool read_several(reader *r, lop_chterm *t, int n, const lop_node *const *node,
                         const int *view, int mode, bool inverse) {
    bool reversed = ((mode & LOP_T) != 0) != inverse;
    for (int i = 0; i < n; i++) {
        int at = reversed ? n - 1 - i : i;
        if (!read_term(r, t, node[at], mode ^ (view ? view[at] : 0), inverse)) return false;
    }
    return true;
}

static bool read_atom(reader *r, lop_chterm *t, const lop_node *node, int mode, bool inverse) {
    lop_sym s;
    return atom_of(r->ch, node, &s) &&
           put(r, t, lop_sym_make(lop_sym_number(s), inverse, mode ^ lop_sym_mode(s)));
}

static bool read_inside(reader *r, lop_chterm *t, const lop_node *node, int mode, bool inverse) {
    const lop_op *op = node->op;
    if (op == &lop_op_view)
        return read_term(r, t, node->child[0], mode ^ (int)node->attr.i[0], inverse);
    if (op == &lop_op_inverse) return read_term(r, t, node->child[0], mode, !inverse);
    if (op == &lop_op_prod &&
        (!inverse || (lop_is_square(node->child[0]) && lop_is_square(node->child[1]))))
        return read_several(r, t, 2, node->child, NULL, mode, inverse);
    if (op == &lop_op_root && (!inverse || lop_is_square(node->child[0]))) {
        const lop_node *f[2] = {node->child[0], node->child[0]};
        const int view[2] = {0, LOP_H};
        return read_several(r, t, 2, f, view, mode, inverse);
    }
    if (op == &lop_op_scaled) {
        lop_chterm was = *t;
        if (hoist(r, t, &node->attr, mode, inverse))
            return read_term(r, t, node->child[0], mode, inverse);
        *t = was;
    }
    if (op == &lop_op_sum && !inverse) return read_group(r, t, node, mode);
    if (op == &lop_op_power && node->attr.i[0] >= 1 && node->attr.i[0] <= 8) {
        for (int64_t i = 0; i < node->attr.i[0]; i++)
            if (!read_term(r, t, node->child[0], mode, inverse)) return false;
        return true;
    }
    if (op == &lop_op_lowrank && !inverse) {
        const lop_node *f[3] = {node->child[0], node->child[node->n - 1], node->child[1]};
        const int view[3] = {0, 0, LOP_H}, two[2] = {0, LOP_H};
        return node->n == 3 ? read_several(r, t, 3, f, view, mode, false)
                            : read_several(r, t, 2, node->child, two, mode, false);
    }
    if (op == &lop_op_zeros && !inverse) t->c = lop_coef_const(0, 0);
    return read_atom(r, t, node, mode, inverse);
}

static bool read_term(reader *r, lop_chterm *t, const lop_node *node, int mode, bool inverse) {
    if (r->depth == LOP_CH_DEPTH) return false;
    r->depth++;
    bool ok = read_inside(r, t, node, mode, inverse);
    r->depth--;
    return ok;
}

/* `seed`: the coefficient so far. */
static bool read_sum(reader *r, lop_chgroup *g, const lop_node *node, int mode, lop_chterm seed) {
    bool ok;
    if (r->depth == LOP_CH_DEPTH) return false;
    r->depth++;
    lop_chterm more = seed;
    if (node->op == &lop_op_sum) {
        ok = read_sum(r, g, node->child[0], mode, seed) &&
             read_sum(r, g, node->child[1], mode, seed);
    } else if (node->op == &lop_op_view) {
        ok = read_sum(r, g, node->child[0], mode ^ (int)node->attr.i[0], seed);
    } else if (node->op == &lop_op_scaled && hoist(r, &more, &node->attr, mode, false)) {
        ok = read_sum(r, g, node->child[0], mode, more);
    } else {
        int at;
        ok = term_new(r, g, &at);
        lop_chterm t = seed;
        ok = ok && read_term(r, &t, node, mode, false);
        if (ok && t.n == 0 &&
            !r->keep) { /* the identity is no factor: the product stays as written */
            t = seed;
            r->keep = true;
            ok = read_term(r, &t, node, mode, false);
            r->keep = false;
        }
        if (ok) r->st->term[at] = t;
    }
    r->depth--;
    return ok;
}

static bool read_root(reader *r, lop_chgroup *g, const lop_node *op, const lop_node *x) {
    lop_sym s;
    int at;
    lop_chterm t = {.c = {.re = 1}};
    if (!x) return read_sum(r, g, op, 0, t);
    if (!term_new(r, g, &at) || !read_term(r, &t, op, 0, false) || !atom_of(r->ch, x, &s) ||
        !put(r, &t, s))
        return false;
    r->st->term[at] = t;
    return true;
}

static bool read_roots(lop_chain *ch, lop_ctx *ctx, lop_dtype dt, int n, const lop_node *const *op,
                       const lop_node *x) {
    lop_chstate *st = &ch->state;
    reader r = {.ch = ch, .st = st};
    ch->ctx = ctx;
    ch->costs = lop_costs_of(ctx);
    ch->trail = NULL;
    ch->dt = dt;
    ch->batched = ch->known = false;
    ch->batch.ndim = 0;
    ch->natom = ch->states = 0;
    st->nterm = 0;
    ch->nroot = st->ngroup = n;
    if (!lop_is_blas(dt)) return false;
    for (int i = 0; i < n; i++) {
        lop_chgroup *g = &st->group[i];
        *g = (lop_chgroup){.rows = lop_rows(op[i]), .cols = lop_cols(x ? x : op[i])};
        if (!read_root(&r, g, op[i], x)) return false;
        g->real = group_is_real(&r, g);
    }
    return true;
}

bool lop_chain_read(lop_chain *ch, lop_ctx *ctx, lop_dtype dt, const lop_node *op,
                    const lop_node *x) {
    return read_roots(ch, ctx, dt, 1, &op, x);
}
bool lop_chain_read_several(lop_chain *ch, lop_ctx *ctx, lop_dtype dt, int n,
                            const lop_node *const *op) {
    return n < LOP_CH_GROUPS / 2 && read_roots(ch, ctx, dt, n, op, NULL);
}

int lop_chain_open(lop_chain *ch, lop_chstate *st, int atom) {
    reader r = {.ch = ch, .st = st};
    const lop_node *node = ch->atom[atom].node;
    if ((node->op != &lop_op_sum && node->op != &lop_op_prod) || lop_nbatch(node) > 0 ||
        is_normal(node) || st->ngroup == LOP_CH_GROUPS)
        return -1;
    int at = st->ngroup++;
    lop_chgroup *g = &st->group[at];
    *g = (lop_chgroup){.rows = lop_rows(node),
                       .cols = lop_cols(node),
                       .shared = true,
                       .opened = (int16_t)(atom + 1)};
    r.group[at].open = true; /* not all of its terms are there for those within it to compare */
    if (!read_sum(&r, g, node, 0, (lop_chterm){.c = {.re = 1}})) return -1;
    g->real = group_is_real(&r, g);
    return at;
}

bool lop_chain_term(lop_chain *ch, const lop_node *op, bool inverse, lop_chterm *t) {
    reader r = {.ch = ch, .st = &ch->state, .keep = true};
    return read_term(&r, t, op, 0, inverse);
}

/* -- as written */

static double written_dense(lop_dtype dt, const lop_node *a, int depth);

static double written_apply(lop_dtype dt, const lop_node *a, int64_t k, int depth) {
    double out = (double)lop_rows(a) * (double)k;
    if (depth == 0) return 0;
    if (a->op == &lop_op_prod || a->op == &lop_op_sum) {
        double both = written_apply(dt, a->child[0], k, depth - 1) +
                      written_apply(dt, a->child[1], k, depth - 1);
        return a->op == &lop_op_sum ? both + out : both;
    }
    if (a->op == &lop_op_view || a->op == &lop_op_part)
        return written_apply(dt, a->child[0], k, depth - 1);
    if (a->op == &lop_op_scaled) return out + written_apply(dt, a->child[0], k, depth - 1);
    if (a->op == &lop_op_power)
        return (double)a->attr.i[0] * written_apply(dt, a->child[0], k, depth - 1);
    if (a->op == &lop_op_inverse)
        return written_dense(dt, a->child[0], depth - 1) +
               lop_price_factor(lop_costs_of(a->ctx), dt, a->child[0], 1).flops +
               lop_price_solve(lop_costs_of(a->ctx), dt, a->child[0], k, 1).flops;
    return lop_price_apply(lop_costs_of(a->ctx), dt, a, k, 1).flops;
}

static bool composite(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_prod || a->op == &lop_op_sum || a->op == &lop_op_power;
}

static double written_dense(lop_dtype dt, const lop_node *a, int depth) {
    double out = (double)lop_rows(a) * (double)lop_cols(a);
    if (depth == 0) return 0;
    if (a->op == &lop_op_prod) {
        double right = written_dense(dt, a->child[1], depth - 1);
        if (!composite(a->child[0]))
            return right + written_apply(dt, a->child[0], lop_cols(a), depth - 1);
        return right + written_dense(dt, a->child[0], depth - 1) +
               2 * out * (double)lop_cols(a->child[0]);
    }
    if (a->op == &lop_op_sum)
        return out + written_dense(dt, a->child[0], depth - 1) +
               written_dense(dt, a->child[1], depth - 1);
    if (a->op == &lop_op_view) return written_dense(dt, a->child[0], depth - 1);
    if (a->op == &lop_op_scaled) return out + written_dense(dt, a->child[0], depth - 1);
    if (a->op == &lop_op_power || a->op == &lop_op_inverse || a->op == &lop_op_part)
        return written_apply(dt, a, lop_cols(a), depth - 1);
    return lop_price_dense(lop_costs_of(a->ctx), dt, a, 1).flops;
}

double lop_chain_written(lop_dtype dt, const lop_node *op, const lop_node *x) {
    return x ? written_apply(dt, op, lop_cols(x), LOP_CH_DEPTH)
             : written_dense(dt, op, LOP_CH_DEPTH);
}
