/* chain_build.c: the best state as nodes again. What is computed on the way stands as (dense array)
 * where it multiplies from the left; transposes of arrays are (swap), which costs nothing where a
 * kernel takes strides. */
#include "chain_build.h"
#include "expr/properties.h"

#include <string.h>

static lop_status value_of_group(lop_builder *b, int g, const lop_node **out);
static lop_status apply_group(lop_builder *b, int g, int mode, const lop_node *x,
                              const lop_node **out);

/* -- the association as text */

void lop_chmake_say(lop_builder *b, const char *s) {
    if (!b->text) return;
    for (; *s && b->used < LOP_ORDER - 1; s++) b->text[b->used++] = *s;
    b->text[b->used] = 0;
}

static void say_symbol(lop_builder *b, lop_sym s) {
    static const char *const view[4] = {"", "'", "*", "^H"};
    if (s == LOP_CH_PROXY) {
        lop_chmake_say(b, "_");
        return;
    }
    char name[2] = {0};
    int number = lop_sym_number(s);
    if (lop_sym_is_group(s)) {
        name[0] = (char)('0' + lop_sym_group(s) % 10);
        lop_chmake_say(b, "S");
    } else {
        bool array = b->ch->atom[number].array;
        name[0] = (char)((array ? 'a' : 'A') + number % 26);
    }
    lop_chmake_say(b, name);
    lop_chmake_say(b, view[lop_sym_mode(s)]);
    if (lop_sym_inverse(s)) lop_chmake_say(b, "^-1");
}

void lop_chmake_say_span(lop_builder *b, const lop_chdp *d, int i, int j) {
    if (i == j) {
        say_symbol(b, d->s[i]);
        return;
    }
    int at = d->at[i][j];
    lop_chmake_say(b, "(");
    lop_chmake_say_span(b, d, i, at);
    lop_chmake_say(b, " ");
    lop_chmake_say_span(b, d, at + 1, j);
    lop_chmake_say(b, ")");
}

/* The runners-up of a chain, for an explanation. */
static void say_others(lop_builder *b, const lop_chdp *d) {
    enum { RUNNERS = 3 };
    lop_trail *trail = b->mk->trace ? b->mk->trace->trail : NULL;
    lop_chother other[RUNNERS];
    char text[LOP_ORDER], *was = b->text;
    int used = b->used, n = trail && was ? lop_chain_others(&b->memo, d, other, RUNNERS) : 0;
    for (int i = 0; i < n; i++) {
        lop_chdp as = *d;
        as.at[other[i].i][other[i].j] = (uint8_t)other[i].at;
        b->text = text;
        b->used = 0;
        text[0] = 0;
        lop_chmake_say_span(b, &as, 0, d->n - 1);
        lop_trail_other(trail, -1, text, other[i].cost);
    }
    b->text = was;
    b->used = used;
}

/* -- arrays */

/* Takes over `a` in these. */
lop_status lop_chmake_wrap(lop_builder *b, const lop_op *op, const lop_attr *attr,
                           const lop_node *a, const lop_node **out) {
    lop_status st = lop_make1(b->mk, op, attr, a, out);
    lop_node_unref(a);
    return st;
}
lop_status lop_chmake_swapped(lop_builder *b, int mode, const lop_node *a, const lop_node **out) {
    lop_attr how = {.i = {mode, 0, 0, 0}};
    if (!lop_is_complex(a->dtype)) how.i[0] &= LOP_T;
    if (a->op == &lop_op_swap) { /* twice is none */
        how.i[0] ^= a->attr.i[0];
        const lop_node *inner = lop_node_ref(a->child[0]);
        lop_node_unref(a);
        a = inner;
    }
    *out = a;
    return how.i[0] ? lop_chmake_wrap(b, &lop_op_swap, &how, a, out) : LOP_OK;
}
static lop_status apply_to(lop_builder *b, const lop_op *op, const lop_node *a, const lop_node *x,
                           const lop_node **out) {
    lop_status st = lop_make2(b->mk, op, NULL, a, x, out);
    lop_node_unref(a);
    return st;
}
lop_status lop_chmake_scaled(lop_builder *b, const lop_chterm *t, const lop_node *a,
                             const lop_node **out) {
    lop_attr c = lop_coef_attr(t->c);
    *out = a;
    return lop_coef_test(b->mk->ctx, t->c, LOP_COEF_ONE)
               ? LOP_OK
               : lop_chmake_wrap(b, &lop_op_scale, &c, a, out);
}

/* The operator a symbol stands for, its inverse apart. Owned. */
static lop_status operator_of(lop_builder *b, lop_sym s, int mode, const lop_node **out) {
    const lop_node *node = b->ch->atom[lop_sym_number(s)].node;
    lop_attr view = {.i = {lop_sym_mode(s) ^ mode, 0, 0, 0}};
    if (!lop_is_complex(node->dtype)) view.i[0] &= LOP_T;
    if (view.i[0]) return lop_make1(b->mk, &lop_op_view, &view, node, out);
    *out = lop_node_ref(node);
    return LOP_OK;
}

/* What a solve with `a` gives, where a's rank is below its rows by how it is written: an error.
 * Takes over *out. */
static lop_status unless_deficient(lop_builder *b, const lop_node *a, const lop_node **out) {
    const lop_attr how = {.i = {lop_infer_rank(a), lop_rows(a), 0, 0}};
    const lop_node *made = *out;
    if (!lop_is_square(a) || how.i[0] >= how.i[1]) return LOP_OK;
    const lop_status st = lop_make(b->mk, "rank_deficient", &how, 0, NULL, made, out);
    lop_node_unref(made);
    return st;
}

/* The opened inverse s applied to x; takes over x. NULL: the inverse itself. */
static lop_status solve_group(lop_builder *b, lop_sym s, int mode, const lop_node *x,
                              const lop_node **out) {
    const lop_atom *a = lop_chain_atom(b->ch, &b->ch->state, s);
    const lop_attr tried = {.i = {1 + lop_infer_assumed_definite(a->node), 0, 0, 0}},
                   how = {.i = {a->hermitian ? 1 + tried.i[0] : 0, 0, 0, 0}};
    const lop_node *sum = NULL;
    const int seen = lop_sym_mode(s) ^ mode, own = a->hermitian ? (seen ^ seen << 1) & LOP_C : 0;
    const lop_attr viewed = {.i = {lop_is_complex(b->ch->dt) ? seen : seen & LOP_T, 0, 0, 0}};
    lop_status st = value_of_group(b, lop_sym_group(s), &sum);
    /* of a transposed inverse rows are solutions, and columns are not: columns are made of it */
    if (st == LOP_OK && !x && !a->hermitian) st = lop_chmake_swapped(b, seen, sum, &sum);
    if (st == LOP_OK && x) st = lop_chmake_swapped(b, own, x, &x); /* conj(A)^-1 x by A's factor */
    if (st == LOP_OK && !x)
        st = lop_make1(b->mk, &lop_op_invert, &how, sum, out);
    else if (st == LOP_OK && a->hermitian)
        st = lop_make2(b->mk, &lop_op_cholesky_solve, &tried, sum, x, out);
    else if (st == LOP_OK)
        st = lop_make2(b->mk, &lop_op_lu_solve, &viewed, sum, x, out);
    lop_node_unref(sum);
    lop_node_unref(x);
    if (st == LOP_OK) st = lop_chmake_swapped(b, own, *out, out);
    return st == LOP_OK ? unless_deficient(b, a->node, out) : st;
}

static lop_status leaf(lop_builder *b, lop_sym s, const lop_node *proxy, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}};
    int mode = lop_sym_mode(s);
    lop_status st;
    if (s == LOP_CH_PROXY) {
        *out = lop_node_ref(proxy);
        return LOP_OK;
    }
    if (lop_sym_is_group(s) && lop_sym_inverse(s)) return solve_group(b, s, 0, NULL, out);
    if (lop_sym_is_group(s)) {
        st = value_of_group(b, lop_sym_group(s), out);
        return st == LOP_OK ? lop_chmake_swapped(b, mode, *out, out) : st;
    }
    const lop_atom *a = &b->ch->atom[lop_sym_number(s)];
    if (a->array) {
        d.i[0] = 1;
        *out = lop_node_ref(a->node);
        st = a->node->dtype == b->ch->dt ? LOP_OK : lop_chmake_wrap(b, &lop_op_cast, &d, *out, out);
        return st == LOP_OK ? lop_chmake_swapped(b, mode, *out, out) : st;
    }
    if (a->node->op == &lop_op_dense && !lop_sym_inverse(s)) {
        st = lop_make1(b->mk, &lop_op_todense, &d, a->node, out);
        return st == LOP_OK ? lop_chmake_swapped(b, mode, *out, out) : st;
    }
    const lop_node *op;
    st = operator_of(b, s, 0, &op);
    if (st == LOP_OK && lop_sym_inverse(s)) st = lop_chmake_wrap(b, &lop_op_inverse, NULL, op, &op);
    return st == LOP_OK ? lop_chmake_wrap(b, &lop_op_todense, &d, op, out) : st;
}

/* Factor s seen through `mode` more, applied to x. Takes over x. */
lop_status lop_chmake_factor_on(lop_builder *b, lop_sym s, int mode, const lop_node *x,
                                const lop_node **out) {
    const lop_node *op = NULL;
    lop_status st;
    if (lop_sym_is_group(s) && lop_sym_inverse(s)) return solve_group(b, s, mode, x, out);
    if (lop_sym_is_group(s)) {
        st = apply_group(b, lop_sym_group(s), lop_sym_mode(s) ^ mode, x, out);
    } else {
        st = operator_of(b, s, mode, &op);
        if (st == LOP_OK)
            st = apply_to(b, lop_sym_inverse(s) ? &lop_op_solve : &lop_op_apply, op, x, out);
    }
    lop_node_unref(x);
    return st;
}

/* Left times right, both dense: a transposed left is a view, which gemm takes as a flag. */
static lop_status gemm(lop_builder *b, const lop_chdp *d, int i, int k, int j,
                       const lop_node *proxy, const lop_node **out) {
    const lop_node *left, *right = NULL;
    lop_status st = lop_chmake_span(b, d, i, k, proxy, &left);
    if (st != LOP_OK) return st;
    lop_attr view = {.i = {0, 0, 0, 0}};
    if (left->op == &lop_op_swap) {
        const lop_node *inner = lop_node_ref(left->child[0]);
        view = left->attr;
        lop_node_unref(left);
        left = inner;
    }
    st = lop_chmake_wrap(b, &lop_op_dense, NULL, left, &left);
    if (st == LOP_OK && view.i[0]) st = lop_chmake_wrap(b, &lop_op_view, &view, left, &left);
    if (st != LOP_OK) return st;
    st = lop_chmake_span(b, d, k + 1, j, proxy, &right);
    if (st != LOP_OK) {
        lop_node_unref(left);
        return st;
    }
    st = apply_to(b, &lop_op_apply, left, right, out);
    lop_node_unref(right);
    return st;
}

/* R^H A^-1 R, or its diagonal alone: A is factor k, R what follows. */
lop_status lop_chmake_half(lop_builder *b, const lop_chdp *d, int k, int j, bool diagonal,
                           const lop_node *proxy, const lop_node **out) {
    const lop_node *op, *a, *r, *whose;
    lop_attr dense = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}}, tried = {.i = {1, diagonal, 0, 0}};
    lop_status st;
    if (lop_sym_is_group(d->s[k])) {
        const lop_atom *sum = lop_chain_atom(b->ch, &b->ch->state, d->s[k]);
        whose = sum ? sum->node : NULL;
        tried.i[0] = 1 + (sum && lop_infer_assumed_definite(sum->node));
        st = value_of_group(b, lop_sym_group(d->s[k]), &a);
    } else {
        whose = b->ch->atom[lop_sym_number(d->s[k])].node;
        st = operator_of(b, d->s[k], 0, &op);
        if (st != LOP_OK) return st;
        if (lop_node_trait(op, LOP_POSITIVE) == LOP_TRUE)
            tried.i[0] = 0;
        else
            tried.i[0] = 1 + lop_infer_assumed_definite(op);
        st = lop_make1(b->mk, &lop_op_todense, &dense, op, &a);
        lop_node_unref(op);
    }
    if (st != LOP_OK) return st;
    st = lop_chmake_span(b, d, k + 1, j, proxy, &r);
    if (st == LOP_OK) {
        st = lop_make2(b->mk, &lop_op_half_solve, &tried, a, r, out);
        lop_node_unref(r);
    }
    lop_node_unref(a);
    return st == LOP_OK && whose ? unless_deficient(b, whose, out) : st;
}

/* The d of t = diag(d) r, where one triangle by syrk takes it, else NULL: there are columns enough
 * for it (2026-11-25, EPYC: from 16 on). */
static const lop_node *scales_of(const lop_node *r, const lop_node *t) {
    if (t->op != &lop_op_apply || t->child[0]->op != &lop_op_diag || t->child[1] != r) return NULL;
    const lop_node *d = t->child[0]->child[0];
    const bool plain = lop_is_blas(r->dtype) && !r->weak && !d->weak && t->dtype == r->dtype;
    if (!plain || d->dtype != lop_dtype_real(r->dtype) || lop_cols(r) < 16) return NULL;
    return d;
}

/* R^H (M R): M is factor k, R what follows. */
static lop_status mirrored(lop_builder *b, const lop_chdp *d, int k, int j, const lop_node *proxy,
                           const lop_node **out) {
    const lop_node *r, *t = NULL;
    lop_status st = lop_chmake_span(b, d, k + 1, j, proxy, &r);
    if (st != LOP_OK) return st;
    st = lop_chmake_factor_on(b, d->s[k], 0, lop_node_ref(r), &t);
    const lop_node *scales = st == LOP_OK ? scales_of(r, t) : NULL;
    if (scales)
        st = lop_make2(b->mk, &lop_op_scaled_gram, NULL, r, scales, out);
    else if (st == LOP_OK)
        st = lop_make2(b->mk, &lop_op_gemm_triangle, NULL, r, t, out);
    lop_node_unref(r);
    lop_node_unref(t);
    return st;
}

/* A stored sparse matrix, seen through a view or not; NULL: the factor is another thing. */
static const lop_node *stored(const lop_builder *b, lop_sym s) {
    if (s == LOP_CH_PROXY || lop_sym_is_group(s) || lop_sym_inverse(s)) return NULL;
    const lop_atom *a = &b->ch->atom[lop_sym_number(s)];
    return !a->array && a->node->op == &lop_op_sparse ? a->node : NULL;
}

/* The dense form of two of them, by what is stored, where the second is not nearly full (as
 * lop_when_sparse_pair_thin has it). NOMATCH: they are others. */
static lop_status stored_pair(lop_builder *b, lop_sym left, lop_sym right, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}};
    const lop_node *r = stored(b, right), *op[2] = {NULL};
    if (!stored(b, left) || !r ||
        4 * (double)lop_cols(r->child[0]) > (double)lop_rows(r) * (double)lop_cols(r))
        return LOP_NOMATCH;
    lop_status st = operator_of(b, left, 0, &op[0]);
    if (st == LOP_OK) st = operator_of(b, right, 0, &op[1]);
    if (st == LOP_OK) st = lop_make2(b->mk, &lop_op_prod, NULL, op[0], op[1], out);
    lop_node_unref(op[0]);
    lop_node_unref(op[1]);
    return st == LOP_OK ? lop_chmake_wrap(b, &lop_op_todense, &d, *out, out) : st;
}

/* Span i..j of the chain as an array. Recursion is as deep as the chain is long. */
lop_status lop_chmake_span(lop_builder *b, const lop_chdp *d, int i, int j, const lop_node *proxy,
                           const lop_node **out) {
    int k = d->at[i][j], how = d->how[i][j];
    lop_attr adjoint = {.i = {how == LOP_CH_GRAM_T ? LOP_T : LOP_H, 0, 0, 0}};
    lop_status st = LOP_NOMATCH;
    if (j == i + 1 && (how == LOP_CH_LEFT || how == LOP_CH_RIGHT))
        st = stored_pair(b, d->s[i], d->s[j], out);
    if (st != LOP_NOMATCH) return st;
    switch (how) {
    case LOP_CH_LEAF: {
        const bool rows = lop_chain_by_rows(d, i);
        st = leaf(b, rows ? lop_chain_seen(b->ch, &b->ch->state, d->s[i], LOP_T) : d->s[i], proxy,
                  out);
        return st == LOP_OK && rows ? lop_chmake_swapped(b, LOP_T, *out, out) : st;
    }
    case LOP_CH_LEFT:
        st = lop_chmake_span(b, d, i + 1, j, proxy, out);
        return st == LOP_OK ? lop_chmake_factor_on(b, d->s[i], 0, *out, out) : st;
    case LOP_CH_RIGHT:
        st = lop_chmake_span(b, d, i, j - 1, proxy, out);
        if (st == LOP_OK) st = lop_chmake_swapped(b, LOP_T, *out, out);
        if (st == LOP_OK) st = lop_chmake_factor_on(b, d->s[j], LOP_T, *out, out);
        return st == LOP_OK ? lop_chmake_swapped(b, LOP_T, *out, out) : st;
    case LOP_CH_GEMM: return gemm(b, d, i, k, j, proxy, out);
    case LOP_CH_HALF: return lop_chmake_half(b, d, k, j, false, proxy, out);
    case LOP_CH_MIRROR: return mirrored(b, d, k, j, proxy, out);
    default:
        adjoint.i[1] = lop_chain_triangle(b->ch, d, k + 1, j);
        st = lop_chmake_span(b, d, k + 1, j, proxy, out);
        return st == LOP_OK ? lop_chmake_wrap(b, &lop_op_gram, &adjoint, *out, out) : st;
    }
}

/* What is left of a group whose terms are nothing together, under a view, applied to x. */
static lop_status nothing(lop_builder *b, const lop_chgroup *group, int mode, const lop_node *x,
                          const lop_node **out) {
    const bool turned = (mode & LOP_T) != 0;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}};
    const lop_node like = {
        .shape = {.ndim = 2,
                  .dim = {turned ? group->cols : group->rows, x        ? lop_cols(x)
                                                              : turned ? group->rows
                                                                       : group->cols}},
        .dtype = b->ch->dt,
        .core = 2};
    lop_status st = lop_make(b->mk, "zeros", NULL, 0, NULL, &like, out);
    return st == LOP_OK ? lop_chmake_wrap(b, &lop_op_todense, &d, *out, out) : st;
}

/* The terms of a group under a view, applied to x (NULL: as they are), added up. */
lop_status lop_chmake_terms(lop_builder *b, int g, int mode, const lop_node *x,
                            const lop_node **out) {
    const lop_chgroup *group = &b->ch->state.group[g];
    lop_status st = LOP_OK;
    *out = NULL;
    for (int i = 0; i < group->n && st == LOP_OK; i++) {
        lop_chterm t = b->ch->state.term[group->term[i]];
        const lop_node *one = NULL, *both = NULL;
        lop_chdp own, *d = &own;
        if (mode & LOP_C) t.c = lop_coef_conj(b->ch->ctx, t.c);
        if (g == 0 && b->ch->known) {
            d = &b->ch->root;
        } else {
            lop_chain_items(&b->memo, &t, mode, x ? lop_cols(x) : -1, d);
            lop_chain_dp(&b->memo, d);
        }
        if (i > 0) lop_chmake_say(b, " + ");
        lop_chmake_say_span(b, d, 0, d->n - 1);
        if (group->n == 1) say_others(b, d);
        st = lop_chmake_span(b, d, 0, d->n - 1, x, &one);
        if (st == LOP_OK) st = lop_chmake_scaled(b, &t, one, &one);
        if (st != LOP_OK) break;
        if (*out) {
            st = lop_make2(b->mk, &lop_op_add, NULL, *out, one, &both);
            lop_node_unref(*out);
            lop_node_unref(one);
            *out = both;
        } else {
            *out = one;
        }
    }
    if (st == LOP_OK) return *out ? LOP_OK : nothing(b, group, mode, x, out);
    lop_node_unref(*out);
    *out = NULL;
    return st;
}

static lop_status value_of_group(lop_builder *b, int g, const lop_node **out) {
    bool shared = b->ch->state.group[g].shared;
    char *text = b->text;
    lop_status st = LOP_OK;
    if (!b->group[g] || !shared) {
        b->text = NULL; /* named, not spelled out */
        st = lop_chmake_terms(b, g, 0, NULL, out);
        b->text = text;
        if (st == LOP_OK && shared) b->group[g] = lop_node_ref(*out);
        return st;
    }
    *out = lop_node_ref(b->group[g]);
    return st;
}

static lop_status apply_group(lop_builder *b, int g, int mode, const lop_node *x,
                              const lop_node **out) {
    char *text = b->text;
    b->text = NULL;
    lop_status st = lop_chmake_terms(b, g, mode, x, out);
    b->text = text;
    return st;
}

void lop_chmake_open(lop_builder *b, lop_chain *ch, const lop_maker *mk) {
    memset(b->group, 0, sizeof b->group);
    b->ch = ch;
    b->mk = mk;
    b->text = mk->trace && !mk->trace->order[0] ? mk->trace->order : NULL;
    b->used = 0;
    lop_chmemo_open(&b->memo, ch, &ch->state);
}
void lop_chmake_close(lop_builder *b, double written) {
    for (int i = 0; i < LOP_CH_GROUPS; i++) lop_node_unref(b->group[i]);
    if (!b->text) return;
    b->mk->trace->written = written;
    b->mk->trace->states = b->ch->states;
}
