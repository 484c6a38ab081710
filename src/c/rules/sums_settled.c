/* sums_settled.c: what a sum is before it is solved with, whatever the order of its terms:
 * circulants and multiples of the identity are one Circulant, and one thin term beside others that
 * are cheap to solve with as a sum is an update of that sum. Sums as such stay as they are written:
 * products with them need no new first column. Q X Q^H + c I is unitary_similar.c's. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"
#include "tidy_krons.h"

enum { TERMS = 8 };

lop_status lop_plus(const lop_maker *mk, const lop_node *term, const lop_node **sum) {
    const lop_node *both = NULL;
    lop_status st = *sum ? lop_make2(mk, &lop_op_sum, NULL, *sum, term, &both) : LOP_OK;
    if (st != LOP_OK) return st;
    lop_node_unref(*sum);
    *sum = both ? both : lop_node_ref(term);
    return LOP_OK;
}

/* One thin term more beside those in *low. */
static lop_status beside(const lop_maker *mk, const lop_node *term, const lop_node **low) {
    const lop_node *sum = NULL, *one = NULL;
    if (!*low) {
        *low = lop_node_ref(term);
        return LOP_OK;
    }
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, *low, term, &sum);
    if (st == LOP_OK) st = lop_close_once(mk, sum, &one);
    lop_node_unref(sum);
    if (st != LOP_OK) return st;
    lop_node_unref(*low);
    *low = one;
    return LOP_OK;
}

/* Is a term as good in the base: a band of few diagonals, as H^T H of a selection or of Kron(I, h)?
 */
static bool of_few_diagonals(const lop_node *a) {
    const lop_band b = lop_infer_bands(a);
    return 8 * (b.l + b.u) <= lop_rows(a);
}

/* One term more of a base, of one kind with what is there where that closes. */
static lop_status onto(const lop_maker *mk, const lop_node *term, const lop_node **base) {
    const lop_node *own = NULL, *both = NULL;
    if (!*base) return lop_plus(mk, term, base);
    lop_status st = term->op == &lop_op_scaled ? lop_close_once(mk, term, &own) : LOP_NOMATCH;
    if (st == LOP_NOMATCH) {
        own = lop_node_ref(term);
        st = LOP_OK;
    }
    if (st == LOP_OK) st = lop_sum_closed(mk, *base, own, &both);
    lop_node_unref(own);
    if (st != LOP_OK) return st;
    lop_node_unref(*base);
    *base = both;
    return LOP_OK;
}

/* An update apart: its base with what is in *base, of one kind where that closes; its thin term
 * owned in *thin. */
static lop_status split(const lop_maker *mk, const lop_node *a, const lop_node **base,
                        const lop_node **thin) {
    const parts p = parts_of(a);
    const lop_node *child[3] = {p.u, p.v, p.c};
    lop_status st = onto(mk, p.base, base);
    if (st != LOP_OK) return st;
    return lop_make(mk, "lowrank", NULL, p.c ? 3 : 2, child, NULL, thin);
}

/* Thin terms, however they are written, as one in *low, and the sum of the others in *base. Owned,
 * also after an error. */
static lop_status part(const lop_maker *mk, const lop_node *const *term, int n, bool keep_bands,
                       const lop_node **low, const lop_node **base) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *thin = NULL, *a = term[i];
        if (a->op == &lop_op_lowrankupdate)
            st = split(mk, a, base, &thin);
        else if (keep_bands && of_few_diagonals(a))
            st = LOP_OK;
        else if (a->op == &lop_op_lowrank)
            thin = lop_node_ref(a);
        else if (a->op == &lop_op_prod || a->op == &lop_op_scaled || a->op == &lop_op_kron ||
                 a->op == &lop_op_full)
            st = lop_thin_low(mk, a, &thin);
        if (st == LOP_NOMATCH) st = LOP_OK;
        if (st == LOP_OK) st = thin ? beside(mk, thin, low) : onto(mk, a, base);
        lop_node_unref(thin);
    }
    return st;
}

/* A multiple of the matrix of ones? */
static bool is_constant(const lop_node *a) {
    if (a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_full;
}

/* Is it a product with a sum in it, U (C + D) V? */
static bool has_sum_within(const lop_node *a) {
    int left = TERMS;
    while (a->op == &lop_op_scaled) a = a->child[0];
    for (; a->op == &lop_op_prod && left > 0; left--) {
        const lop_node *right = a->child[1];
        while (right->op == &lop_op_scaled || right->op == &lop_op_view) right = right->child[0];
        if (right->op == &lop_op_sum) return true;
        a = a->child[0];
        if (a->op == &lop_op_sum) return true;
    }
    return false;
}

/* An update of what is cheap to solve with only together, for k right sides. */
static lop_status one_update(const lop_maker *mk, const lop_node *all, const lop_node *const *term,
                             int n, int64_t k, bool keep_bands, const lop_node **out) {
    const lop_node *base = NULL, *low = NULL, *update = NULL;
    bool updates = n > 2;
    for (int i = 0; i < n; i++)
        updates = updates || term[i]->op == &lop_op_lowrankupdate || has_sum_within(term[i]) ||
                  is_constant(term[i]);
    if (!updates) return LOP_NOMATCH; /* two terms: solve_woodbury.c */
    lop_status st = part(mk, term, n, keep_bands, &low, &base);
    if (st == LOP_OK && (!low || (!base && low->op == &lop_op_lowrank))) st = LOP_NOMATCH;
    if (st == LOP_OK) {
        const lop_node *u = low->child[low->op == &lop_op_lowrankupdate];
        st = lop_cols(u) > lop_rows(u) / 2 ? LOP_NOMATCH : lop_update_of(mk, base, low, &update);
    }
    if (st == LOP_OK && lop_cheap_to_solve(update->child[0]) &&
        !lop_thin_better_whole(mk, all->dtype, all, update->child[0], lop_cols(update->child[1]),
                               k))
        *out = lop_node_ref(update);
    else if (st == LOP_OK)
        st = LOP_NOMATCH;
    lop_node_unref(update);
    lop_node_unref(low);
    lop_node_unref(base);
    return st;
}

lop_status lop_settled_update(const lop_maker *mk, const lop_node *sum, const lop_node **out) {
    const lop_node *term[TERMS];
    const int n = sum->op == &lop_op_sum ? lop_terms_of(sum, term, TERMS) : 0;
    lop_status st =
        n < 2 || lop_nbatch(sum) > 0 ? LOP_NOMATCH : one_update(mk, sum, term, n, 1, false, out);
    if (st == LOP_OK && (*out)->dtype != sum->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* -- thin terms that were put side by side when they were added: [U W] [V Z]^H = U V^H + W Z^H */

typedef struct opened {
    const lop_node *term[TERMS]; /* owned */
    int n;
    bool any; /* one was opened */
} opened;

static bool is_row_of(const lop_node *a, int64_t many) {
    return a->op == &lop_op_block && lop_nbatch(a) == 0 && a->attr.i[0] == 1 &&
           a->attr.i[1] == many;
}
static bool is_multiple_of_eye(const lop_node *c) {
    return c->op == &lop_op_scaled && c->child[0]->op == &lop_op_identity;
}

/* How many stand side by side; 0: it is one. */
static int beside_each_other(const parts *p) {
    const int many = p->u->op == &lop_op_block ? p->u->n : 0;
    if (many < 2 || !is_row_of(p->u, many) || !is_row_of(p->v, many)) return 0;
    const bool blocks = p->c && p->c->op == &lop_op_blockdiag && p->c->n == many;
    if (p->c && !blocks && !is_multiple_of_eye(p->c)) return 0;
    for (int j = 0; j < many; j++) {
        const int64_t u = lop_cols(p->u->child[j]), v = lop_cols(p->v->child[j]);
        const lop_node *c = blocks ? p->c->child[j] : NULL;
        if (c ? lop_rows(c) != u || lop_cols(c) != v : u != v) return 0;
    }
    return many;
}

static lop_status one_of(const lop_maker *mk, const parts *p, int j, const lop_node **out) {
    const lop_node *child[3] = {p->u->child[j], p->v->child[j], NULL}, *eye = NULL, *c = NULL;
    const lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(child[0]), lop_cols(child[0])}},
                           .dtype = LOP_f64,
                           .weak = LOP_WEAK,
                           .core = 2};
    lop_status st = LOP_OK;
    if (p->c && p->c->op == &lop_op_blockdiag) {
        c = lop_node_ref(p->c->child[j]);
    } else if (p->c) {
        st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &p->c->attr, eye, &c);
    }
    child[2] = c;
    if (st == LOP_OK) st = lop_make(mk, "lowrank", NULL, c ? 3 : 2, child, NULL, out);
    lop_node_unref(eye);
    lop_node_unref(c);
    return st;
}

static void drop(opened *o) {
    for (int i = 0; i < o->n; i++) lop_node_unref(o->term[i]);
}

/* Each term, a base and its thin terms one by one. NOMATCH: they are too many. */
static lop_status open_terms(const lop_maker *mk, const lop_node *const *term, int n, opened *o) {
    lop_status st = LOP_OK;
    *o = (opened){.n = 0};
    if (n > TERMS) return LOP_NOMATCH;
    for (int i = 0; i < n; i++) o->term[o->n++] = lop_node_ref(term[i]);
    for (int i = 0; st == LOP_OK && i < o->n;) {
        const lop_node *a = o->term[i];
        const bool thin = a->op == &lop_op_lowrank || a->op == &lop_op_lowrankupdate;
        const parts p = thin ? parts_of(a) : (parts){NULL};
        const int many = thin ? beside_each_other(&p) : 0;
        if (many == 0) {
            i++;
            continue;
        }
        if (o->n + many > TERMS) return LOP_NOMATCH;
        o->any = true;
        if (p.base) o->term[o->n++] = lop_node_ref(p.base);
        for (int j = 1; st == LOP_OK && j < many; j++) { /* the first takes the place of them all */
            const lop_node *one = NULL;
            st = one_of(mk, &p, j, &one);
            if (st == LOP_OK) o->term[o->n++] = one;
        }
        const lop_node *first = NULL;
        if (st == LOP_OK) st = one_of(mk, &p, 0, &first);
        if (st != LOP_OK) break;
        o->term[i] = first;
        lop_node_unref(a);
    }
    return st;
}

/* The same with what is a band of few diagonals among them in the base. NOMATCH: nothing is. */
static lop_status opened_update(const lop_maker *mk, const lop_node *all,
                                const lop_node *const *term, int n, int64_t k,
                                const lop_node **out) {
    opened o;
    bool few = false;
    lop_status st = open_terms(mk, term, n, &o);
    for (int i = 0; st == LOP_OK && i < o.n; i++)
        few = few || (o.term[i]->op == &lop_op_lowrank && of_few_diagonals(o.term[i]));
    if (st == LOP_OK)
        st = o.any && few ? one_update(mk, all, o.term, o.n, k, true, out) : LOP_NOMATCH;
    drop(&o);
    return st;
}

/* -- multiples of sums: c (A + B) = c A + c B */

/* c a, one multiple where a is one. NOMATCH: the product of the numbers is none. */
static lop_status one_multiple(const lop_maker *mk, const lop_attr *c, const lop_node *a,
                               const lop_node **out) {
    if (a->op != &lop_op_scaled) return lop_make1(mk, &lop_op_scaled, c, a, out);
    const lop_coef both = lop_coef_times(mk->ctx, lop_coef_of(c), lop_coef_of(&a->attr));
    const lop_attr by = lop_coef_attr(both);
    return lop_coef_test(mk->ctx, both, LOP_COEF_FINITE)
               ? lop_make1(mk, &lop_op_scaled, &by, a->child[0], out)
               : LOP_NOMATCH;
}

/* Is a multiple of either term as exact as one of the sum? */
static bool alike_exact(const lop_node *sum) {
    const lop_dtype real = lop_dtype_real(sum->dtype);
    for (int i = 0; i < 2; i++)
        if (!sum->child[i]->weak && lop_dtype_real(sum->child[i]->dtype) != real) return false;
    return true;
}

/* The terms one by one, what is a multiple of a sum of that precision as multiples of its own, as
 * many as there is room for. */
static lop_status multiplied_out(const lop_maker *mk, const lop_node *const *term, int n,
                                 opened *o) {
    lop_status st = LOP_OK;
    *o = (opened){.n = 0};
    for (int i = 0; i < n; i++) o->term[o->n++] = lop_node_ref(term[i]);
    for (int i = 0; i < o->n;) {
        const lop_node *a = o->term[i], *part[2] = {NULL, NULL};
        const lop_node *sum = a->op == &lop_op_scaled ? a->child[0] : a;
        if (sum->op != &lop_op_sum || !alike_exact(sum) || o->n == TERMS) {
            i++;
            continue;
        }
        for (int j = 0; st == LOP_OK && j < 2; j++)
            if (a == sum)
                part[j] = lop_node_ref(sum->child[j]);
            else
                st = one_multiple(mk, &a->attr, sum->child[j], &part[j]);
        if (st != LOP_OK) {
            lop_node_unref(part[0]);
            if (st != LOP_NOMATCH) return st;
            st = LOP_OK;
            i++;
            continue;
        }
        o->term[i] = part[0];
        o->term[o->n++] = part[1];
        o->any = true;
        lop_node_unref(a);
    }
    return LOP_OK;
}

/* c I + a M^-1? Solves and determinants: resolvents.c, checked. */
static bool is_resolvent(const lop_node *const *term, int n) {
    bool eye = false, inverse = false;
    for (int i = 0; i < n; i++) {
        const lop_node *a = term[i]->op == &lop_op_scaled ? term[i]->child[0] : term[i];
        eye = eye || a->op == &lop_op_identity;
        inverse = inverse || a->op == &lop_op_inverse;
    }
    return n == 2 && eye && inverse;
}

/* An update whose U and V are Krons, as one Kron with its base. NOMATCH: it is none. */
static lop_status one_kron(const lop_maker *mk, const lop_node *update, const lop_node **out) {
    const parts p = parts_of(update);
    if (p.c || lop_nbatch(update) > 0) return LOP_NOMATCH;
    lop_status st = lop_krons_update(mk, p.base, p.u, p.v, out);
    if (st == LOP_OK && ((*out)->dtype != update->dtype || (*out)->weak != update->weak)) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* The sum is what the root acts on, or on its inverse or a view of it. */
LOP_BUILD(sum_settled) {
    const lop_node *root = m->root, *inner = root->child[0], *term[TERMS], *child[2] = {NULL},
                   *settled = NULL, *inverse = NULL;
    const bool below = inner->op == &lop_op_inverse || inner->op == &lop_op_view;
    const lop_node *sum = below ? inner->child[0] : inner;
    const bool update = sum->op == &lop_op_lowrankupdate;
    const int n = update ? 1 : lop_terms_of(sum, term, TERMS);
    const int64_t k = root->n > 1 && root->child[1]->shape.ndim > 1 ? lop_cols(root->child[1]) : 1;
    if (n < (update ? 1 : 2) || sum->shape.ndim != 2 || !lop_is_blas(sum->dtype))
        return LOP_NOMATCH;
    if (update) term[0] = sum;
    const bool circulant = !update && lop_is_circulant_sum(sum);
    const bool within =
        circulant && inner->op != &lop_op_view && lop_holds_inverse(sum, LOP_CIRCULANT_DEPTH);
    if (within && root->op != &lop_op_solve) return lop_circulant_fraction(mk, root, sum, out);
    if (within) {
        const lop_status made = lop_circulant_fraction(mk, root, sum, out);
        if (made != LOP_NOMATCH) return made;
    }
    if (circulant && root->n > 0 && root->op != &lop_op_diagonal && is_resolvent(term, n))
        return LOP_NOMATCH;
    lop_status st = update      ? one_kron(mk, sum, &settled)
                    : circulant ? LOP_NOMATCH
                                : lop_shifted_similar(mk, sum, &settled);
    if (st == LOP_NOMATCH)
        st = circulant ? lop_one_circulant(mk, sum, &settled)
                       : opened_update(mk, sum, term, n, k, &settled);
    opened out_of = {.n = 0};
    if (st == LOP_NOMATCH && !update && !circulant) st = multiplied_out(mk, term, n, &out_of);
    if (st == LOP_OK && !settled) st = LOP_NOMATCH;
    for (int keep = update || circulant || out_of.n == 0 ? -1 : 1; st == LOP_NOMATCH && keep >= 0;
         keep--)
        st = one_update(mk, sum, out_of.term, out_of.n, k, keep != 0, &settled);
    drop(&out_of);
    if (st != LOP_OK) return st;
    if (below) st = lop_make1(mk, inner->op, &inner->attr, settled, &inverse);
    child[0] = inverse ? inverse : settled;
    if (root->n > 1) child[1] = root->child[1];
    if (st == LOP_OK && circulant && root->op == &lop_op_solve)
        st = lop_solve_circulant(mk, root, child[0], out);
    else if (st == LOP_OK)
        st = lop_make(mk, root->op->name, &root->attr, root->n, child, NULL, out);
    lop_node_unref(inverse);
    lop_node_unref(settled);
    return st;
}

/* Sums along diagonals are only of circulant ones easier so. */
LOP_BUILD(sums_inverse_settled) {
    const lop_node *sum = m->root->child[0]->child[0];
    return lop_is_circulant_sum(sum) ? lop_build_sum_settled(m, mk, out) : LOP_NOMATCH;
}
