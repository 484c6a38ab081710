/* battery_rules.c: every row of the rule table by itself. The left pattern is filled at random:
 * shapes drawn per hole, complex non-Hermitian, mixed or exact dtypes, operands of all kinds,
 * batches. Wherever the left is well-formed and the guard says TRUE the right must be well-formed,
 * of the same shape and dtype, and equal. At least 50 such draws a row. Then the planner's own run
 * of the left under the whole table, which ends, reaches a form that no rule changes, and is right.
 */
#include "rules/builds.h"
#include "rewrite/guards.h"
#include "rewrite/ruleset.h"
#include "gen.h"
#include "ops/projections/projections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED = 60, TRIES = 60000 };

static world w;
static int wanted; /* WANTED, or fewer in a hurry */
/* -- filling a pattern */

typedef struct draw {
    gen g;
    const lop_text *text;
    const lop_node *hole[LOP_HOLES]; /* owned */
    lop_attr attr[LOP_HOLES];
    bool has_attr[LOP_HOLES];
    int64_t size[3]; /* what dimensions are drawn from */
    bool kernels;    /* under an element-wise product */
    bool grids;      /* sums of a Laplacian and a multiple of the identity */
    bool eyes;       /* a Kron begins with an identity */
} draw;

static int64_t a_size(draw *d) { return d->size[world_pick(&w, 0, 3)]; }

static lop_attr an_attr(draw *d, const lop_op *op) {
    int64_t dt = d->g.dtype == LOP_NO_DTYPE ? LOP_c128 : d->g.dtype;
    lop_attr a = t_ints(0, 0, 0, 0);
    if (op->coef) return gen_coef(&d->g);
    if (op == &lop_op_view || op == &lop_op_swap) a.i[0] = world_pick(&w, 1, 4);
    if (op == &lop_op_power) a.i[0] = world_pick(&w, 0, 4);
    if (op == &lop_op_convolution) a.i[0] = world_pick(&w, 0, 4);
    if (op == &lop_op_dft)
        a = t_ints(world_pick(&w, 0, 3), 0, world_pick(&w, 0, 2) ? LOP_c64 : LOP_c128, 0);
    if (op == &lop_op_dct)
        a = t_ints(world_pick(&w, 1, 5), 0, world_pick(&w, 0, 2) ? LOP_f64 : LOP_c128,
                   world_pick(&w, 0, 6));
    if (op == &lop_op_part) a.i[0] = world_pick(&w, 0, 2);
    if (op == &lop_op_diagonal && world_pick(&w, 0, 2)) a.i[0] = world_pick(&w, -3, 4);
    if (op == &lop_op_element) a = t_ints(world_pick(&w, 0, 3), world_pick(&w, 0, 3), 0, 0);
    if (op == &lop_op_diagonal_sums) a = gen_lines(&d->g);
    if (op == &lop_op_entry_sums) a = t_ints(LOP_AT_COO, world_pick(&w, 0, 5), 0, 0);
    if (op->cls == LOP_ACTION && world_pick(&w, 0, 2))
        a.i[3] = (world_pick(&w, 0, 2) ? dt : LOP_c128) + 1;
    if (op == &lop_op_sliced ||
        op == &lop_op_array_slice) { /* most drawn do not fit: there are many tries */
        a = t_ints(world_pick(&w, 0, 8) ? world_pick(&w, 0, 2) : 2, world_pick(&w, 0, 3),
                   world_pick(&w, 0, 2) ? 1 : world_pick(&w, -2, 3), world_pick(&w, 0, 4));
        if (a.i[0] == 2 && world_pick(&w, 0, 2)) a.i[3] = -1;
    }
    if (op == &lop_op_diagrun)
        a = t_ints(world_pick(&w, -1, 2), world_pick(&w, 0, 2) ? 1 : -1, world_pick(&w, 0, 3), 0);
    if (op == &lop_op_cast) a.i[3] = (world_pick(&w, 0, 3) ? LOP_c128 : dt) + 1;
    return a;
}

/* Kernels multiply element by element: one of the first sizes, or NULL. */
static const lop_node *a_kernel(draw *d) {
    const lop_node *out = NULL;
    const lop_dtype dt = world_pick(&w, 0, 2) ? LOP_f32 : LOP_f64;
    const lop_status st = lop_op_kernel.random(&w.rand, d->size[0], d->size[1], dt, &out);
    return st == LOP_OK ? out : NULL;
}

/* A Laplacian, or a multiple of the identity that shifts it onto no eigenvalue; or NULL. */
static const lop_node *of_grid(draw *d, int place) {
    const lop_op *op = place ? &lop_op_identity : &lop_op_laplacian;
    const lop_attr c = lop_attr_coef(0.37, 0.61);
    const lop_node *one = NULL, *out = NULL;
    lop_status st = op->random(&w.rand, d->size[0], d->size[0], LOP_c128, &one);
    if (st != LOP_OK) return NULL;
    if (!place) return one;
    out = t_node(&w, "scaled", &c, 1, &one);
    lop_node_unref(one);
    return out;
}

/* I (x) a of one element, or NULL. */
static const lop_node *eye_kron(draw *d) {
    const lop_node *pair[2] = {NULL, gen_operator(&d->g, 1, 1, 0)}, *out = NULL;
    const int64_t n = d->size[0];
    if (lop_op_identity.random(&w.rand, n, n, LOP_c128, &pair[0]) == LOP_OK && pair[1])
        out = t_node(&w, "kron", NULL, 2, pair);
    lop_node_unref(pair[0]);
    lop_node_unref(pair[1]);
    return out;
}

/* What stands in a hole: its parent says whether operator or array, and of which core. */
static const lop_node *a_hole(draw *d, const lop_op *parent, int place) {
    static const int cores[] = {1, 2, 2, 0};
    int64_t m = a_size(d), n = a_size(d);
    gen floats = d->g; /* with mixed integers every step of a chain wraps in its own dtype */
    if (floats.dtype == LOP_NO_DTYPE) floats.dtype = LOP_f64;
    if (place == 1 && (parent == &lop_op_sliced || parent == &lop_op_array_slice)) {
        const lop_node *index = NULL;
        return lop_rand_index(&w.rand, m, 0, n > 0 ? n : 1, &index) == LOP_OK ? index : NULL;
    }
    if (!strncmp(parent->name, "circ", 4) &&
        strcmp(parent->name, "circulant_det")) { /* vectors, sizes, right-hand sides */
        int sizes = parent == &lop_op_circular_convolution ? 2 : 1;
        if (place == sizes) return gen_sizes(&d->g, m);
        return gen_array(&d->g, place < sizes ? 1 : 2, m, n);
    }
    if (parent == &lop_op_dft || parent == &lop_op_dct) return gen_sizes(&d->g, m);
    if (parent == &lop_op_multitoeplitz || parent == &lop_op_convolution)
        return place ? gen_sizes(&d->g, m) : gen_array(&d->g, 1, m, 1);
    if (parent == &lop_op_hankel && place == 1) return gen_pair(&d->g, m, n);
    if (d->kernels && parent == &lop_op_elementwise) return a_kernel(d);
    if (d->grids && parent == &lop_op_sum) return of_grid(d, place);
    if (parent == &lop_op_entry_sums && place > 0) { /* rows or columns that all sizes have */
        const lop_node *index = NULL;
        int64_t least = d->size[0];
        for (int i = 1; i < 3; i++)
            if (d->size[i] < least) least = d->size[i];
        return lop_rand_index(&w.rand, least > 0 ? 3 : 0, 0, least > 0 ? least : 1, &index) ==
                       LOP_OK
                   ? index
                   : NULL;
    }
    if (parent->cls == LOP_ACTION && place == 0 && m == n && !world_pick(&w, 0, 6))
        return gen_assumed(&d->g, n);
    if (parent->cls == LOP_ACTION)
        return place == 0 ? gen_operator(&d->g, m, n, (int)world_pick(&w, 0, 2))
                          : gen_array(&floats, 2, m, n);
    if (parent == t_op("inverse_permutation") || parent == t_op("compose")) {
        const lop_node *p = NULL;
        return lop_rand_permutation(&w.rand, m, &p) == LOP_OK ? p : NULL;
    }
    if (parent->cls == LOP_ARRAY) return gen_array(&d->g, cores[world_pick(&w, 0, 4)], m, n);
    const lop_param *param = &parent->param[place < LOP_MAXPARAM ? place : 0];
    if (parent->title && param->name && param->role == LOP_P_ARRAY)
        return gen_array(&d->g, param->rank, m, n);
    return gen_operator(&d->g, m, world_pick(&w, 0, 2) ? m : n, (int)world_pick(&w, 0, 2));
}

/* Indices modulo the size of the axis; false where there is no such axis or nothing on it. */
static bool bring_inside(const lop_node *a, const lop_attr *attr, const lop_node *index) {
    lop_attr first = t_ints(attr->i[0], 0, 1, 1);
    const lop_node *one =
        t_node(&w, a->op->cls == LOP_OPERATOR ? "sliced" : "array_slice", &first, 1, &a);
    if (!one) return false;
    lop_node_unref(one);
    int at = attr->i[0] < 2 ? lop_nbatch(a) + (int)attr->i[0] : lop_nbatch(a) + 1 - (int)attr->i[0];
    int64_t *v = lop_rand_find(&w.rand, index->serial)->p;
    for (int64_t i = 0; i < index->shape.dim[0]; i++) v[i] %= a->shape.dim[at];
    return true;
}

/* Kinds whose parameters and attributes fit each other: drawn as a whole. */
static bool fits_together(const lop_op *op) {
    static const char *const names[] = {"permutation",      "offdiag",        "tridiagonal",
                                        "banded",           "triangular",     "householder",
                                        "sparsetriangular", "quasiseparable", "reflections"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(op->name, names[i])) return true;
    return false;
}

/* Fills the holes of `(kind@k ?a ...)` from one random instance; holes filled before stay. */
static void bind_instance(draw *d, const lop_term *t) {
    int64_t m = a_size(d), n = world_pick(&w, 0, 3) ? m : a_size(d);
    const lop_node *a = t->op == &lop_op_dense ? gen_assumed(&d->g, m) : NULL;
    lop_status st = LOP_UNABLE;
    for (int i = 0; i < 20 && !(a && a->n == t->n); i++) {
        lop_node_unref(a);
        a = gen_instance(&d->g, t->op, m, n, &st);
    }
    for (int i = 0; a && i < t->n && a->n == t->n; i++) {
        const lop_term *below = &d->text->term[d->text->index[t->first + i]];
        if (!below->op && !d->hole[below->hole]) d->hole[below->hole] = lop_node_ref(a->child[i]);
    }
    if (a && t->attr_hole >= 0 && !d->has_attr[t->attr_hole]) {
        d->attr[t->attr_hole] = a->attr;
        d->has_attr[t->attr_hole] = true;
    }
    lop_node_unref(a);
}

/* An identity, or a multiple of one. */
static const lop_node *a_multiple(draw *d, const lop_op *op) {
    const lop_attr c = gen_coef(&d->g);
    const lop_node *one = NULL;
    const int64_t n = a_size(d);
    const lop_dtype dt = d->g.dtype == LOP_NO_DTYPE || world_pick(&w, 0, 2) ? LOP_f64 : d->g.dtype;
    if (!op->random || op->random(&w.rand, n, n, dt, &one) != LOP_OK) return NULL;
    return world_pick(&w, 0, 2) ? one : t_one_of(&w, lop_multiples_of(op)->name, &c, one);
}

static const lop_node *fill(draw *d, int id, const lop_op *parent, int place) {
    const lop_term *t = &d->text->term[id];
    if (!t->op) {
        if (!d->hole[t->hole]) d->hole[t->hole] = a_hole(d, parent, place);
        return lop_node_ref(d->hole[t->hole]);
    }
    if (d->eyes && t->op == &lop_op_kron && world_pick(&w, 0, 2)) return eye_kron(d);
    if (t->attr_hole >= 0 && lop_multiples_of(t->op)) return a_multiple(d, t->op);
    if (t->n == 0 && t->op->random) { /* a kind named alone: (kron), (identity) */
        int64_t m = a_size(d), n = world_pick(&w, 0, 2) ? m : a_size(d);
        const lop_node *a = gen_composite(&d->g, t->op, m, n, 1);
        for (int i = 0; i < 200 && !(a && a->op == t->op); i++) {
            lop_node_unref(a);
            a = t->op == &lop_op_kron ? gen_operator(&d->g, m, n, 1) : gen_kind(&d->g, m, n);
        }
        return a;
    }
    bool assumed = t->op == &lop_op_dense && t->attr_hole >= 0;
    if (assumed || fits_together(t->op)) bind_instance(d, t);
    lop_attr attr = t->has_attr ? t->attr : an_attr(d, t->op);
    if (t->op == &lop_op_dense) attr = t_ints(0, 0, 0, 0);
    if (t->attr_hole >= 0) {
        if (!d->has_attr[t->attr_hole]) d->attr[t->attr_hole] = attr;
        d->has_attr[t->attr_hole] = true;
        attr = d->attr[t->attr_hole];
    }
    const lop_node *child[4] = {0}, *out = NULL;
    bool all = t->n <= 4;
    for (int i = 0; all && i < t->n; i++)
        all = (child[i] = fill(d, d->text->index[t->first + i], t->op, i)) != NULL;
    if (all && t->either && world_pick(&w, 0, 2)) {
        const lop_node *first = child[0];
        child[0] = child[1];
        child[1] = first;
    }
    if (all && t->n == 2 && (t->op == &lop_op_sliced || t->op == &lop_op_array_slice))
        all = bring_inside(child[0], &attr, child[1]);
    if (all) out = t_node(&w, t->op->name, &attr, t->n, child);
    for (int i = 0; i < t->n && i < 4; i++) lop_node_unref(child[i]);
    return out;
}

/* Left sides that random filling would hardly ever make. */
static const lop_node *by_name(gen *g, const char *rule) {
    if (strstr(rule, "sparse-update") || strstr(rule, "sparse-rows") ||
        strstr(rule, "covered-inverse"))
        return gen_sparse_update(g, rule);
    if (strstr(rule, "pushed-pair") || strstr(rule, "distributed")) return gen_pushed_pair(g, rule);
    if (strstr(rule, "field-pushed")) return gen_field(g, rule);
    if (strstr(rule, "views-opened")) return gen_views_opened(g, rule);
    if (strstr(rule, "pushed")) return gen_pushed(g, rule);
    if (strstr(rule, "-beside-circulant")) return gen_beside_circulant(g, rule);
    if (strstr(rule, "-beside-deficient")) return gen_beside_deficient(g, rule);
    if (strstr(rule, "between-spectral") && world_pick(g->w, 0, 3) == 0)
        return gen_between_weights(g, rule);
    if (strstr(rule, "toeplitz-words")) return gen_toeplitz_words(g, rule);
    if (!strcmp(rule, "sums-expanded")) return gen_sums_expanded(g);
    if (!strcmp(rule, "diagonal-of-partial")) return gen_diagonal_of_partial(g);
    if (strstr(rule, "between-expanded")) return gen_between_expanded(g, rule);
    if (!strcmp(rule, "partial-turned") || !strcmp(rule, "partial-expanded") ||
        !strcmp(rule, "partial-product") || !strcmp(rule, "partial-krons") ||
        !strcmp(rule, "partial-kron") || !strcmp(rule, "partial-inverse-kron") ||
        !strcmp(rule, "partial-inverse-update") || !strcmp(rule, "partial-inverse-thin-sum"))
        return gen_partial(g, rule);
    if (!strcmp(rule, "solve-thin-sum"))
        return world_pick(&w, 0, 3) ? gen_thin_solve(g) : gen_identity_of_inverses(g, rule);
    if (!strncmp(rule, "entries", 7) &&
        (strstr(rule, "-blocks") || strstr(rule, "view-update") || strstr(rule, "-expanded")))
        return gen_own_blocks(g, rule);
    if (strstr(rule, "spelled") || strstr(rule, "parallel") || strstr(rule, "beside-") ||
        strstr(rule, "-circulants") || strstr(rule, "-kinds") || strstr(rule, "resolvent") ||
        strstr(rule, "smoother") || strstr(rule, "inverse-difference") || strstr(rule, "shifted") ||
        strstr(rule, "quadratic") || strstr(rule, "corner") || strstr(rule, "expanded") ||
        !strcmp(rule, "diagonal-plus-identity") || !strcmp(rule, "trace-plus-identity") ||
        !strcmp(rule, "diagonal-inverse-block") || !strcmp(rule, "dense-inverse-update") ||
        !strcmp(rule, "dense-inverse-thin-sum") || !strcmp(rule, "trace-inverse-update") ||
        strstr(rule, "-weighted") || strstr(rule, "-similar") || strstr(rule, "kron-runs"))
        return gen_identity_of_inverses(g, rule);
    if (strstr(rule, "dense-results")) return gen_results(g);
    if (!strcmp(rule, "solve-normal")) return gen_normal(g);
    if (!strcmp(rule, "scaledet-thin-sum") || !strcmp(rule, "diagonal-inverse-thin-sum"))
        return gen_thin_det(g, rule);
    if (strstr(rule, "-of-blocks")) return gen_of_blocks(g, rule);
    if (!strcmp(rule, "entries-inverse-band")) return gen_inverse_band(g);
    if (!strcmp(rule, "entries-near-band-inverse")) return gen_near_band_inverse(g);
    if (strstr(rule, "inverses-alike")) return gen_inverse_blocks(g, rule);
    if (strstr(rule, "blockdiag-alike") && world_pick(g->w, 0, 2)) return gen_stack_blocks(g, rule);
    if (!strcmp(rule, "solve-view-update")) return gen_view_update(g);
    if (strstr(rule, "blockdiag-plain")) return gen_plain_blocks(g);
    if (strstr(rule, "-picked") || strstr(rule, "-of-rows") || strstr(rule, "-of-terms") ||
        strstr(rule, "turned-to"))
        return gen_product_value(g, rule);
    if (strstr(rule, "kron-places")) return gen_kron_places(g);
    if (strstr(rule, "settled")) return gen_settled(g, rule);
    if (strstr(rule, "-line")) return gen_line(g, rule);
    if (strstr(rule, "-between-sparse") && (strstr(rule, "-rows-") || world_pick(&w, 0, 2)))
        return gen_between_sparse(g, rule);
    if (strstr(rule, "-sparse-product")) return gen_sparse_product(g, rule);
    if (strstr(rule, "-between-sums")) return gen_between_sparse(g, rule);
    if (strstr(rule, "-between")) return gen_between(g, rule);
    if (strstr(rule, "entries-inverse-blocktri")) return gen_blocktri_blocks(g, rule);
    if (strstr(rule, "spectral-sum") || !strcmp(rule, "solve-kronsum") ||
        !strcmp(rule, "scaledet-kronsum") || !strncmp(rule, "partial-inverse", 15))
        return gen_spectral(g, rule);
    if (strstr(rule, "sparse-pair")) return gen_sparse_pair(g, rule);
    if (!strncmp(rule, "trace", 5) && strstr(rule, "blocktri")) return gen_blocktri_trace(g, rule);
    if (!strcmp(rule, "diagonal-band") || !strcmp(rule, "trace-band"))
        return gen_band_product(g, rule);
    if (strstr(rule, "bordered") || strstr(rule, "block-views")) return gen_bordered(g, rule);
    if (!strcmp(rule, "entries-band") || !strcmp(rule, "entries-view") ||
        !strcmp(rule, "entries-triangle"))
        return gen_entries(g, rule);
    if (strstr(rule, "-digits")) return gen_digits(g, rule);
    if (!strcmp(rule, "cast-ravel") ||
        (!strncmp(rule, "cast", 4) && (strstr(rule, "column") || strstr(rule, "-circulant-"))))
        return gen_column(g, rule);
    if (!strcmp(rule, "add-shift")) return gen_shift(g);
    return NULL;
}

/* Is there a sum or product of whole numbers in what is inverted? It counts as floats from its
 * leaves on, which it does not where it is evaluated as it is written. */
static bool inverts_whole(const lop_node *a, bool within) {
    within |= a->op == &lop_op_inverse;
    if (within && a->op->cls != LOP_OPERATOR && a->n > 0 && !lop_is_blas(a->dtype)) return true;
    for (int i = 0; i < a->n; i++)
        if (inverts_whole(a->child[i], within)) return true;
    return false;
}

/* One attempt at a well-formed left side; NULL when shapes did not meet. */
static const lop_node *a_left(const lop_rule *rule, const lop_text *text, bool views) {
    static const int64_t pool[] = {1, 2, 3, 2, 4, 0};
    static const lop_dtype exact[] = {LOP_i8, LOP_u8, LOP_b8, LOP_i64};
    draw d = {.text = text,
              .kernels = !strncmp(rule->name, "first-elementwise-kernel", 24),
              .grids = strstr(rule->name, "grid-sum") != NULL,
              .eyes = strstr(rule->name, "kron") && strstr(rule->name, "blockdiag")};
    const int64_t what = world_pick(&w, 0, 10);
    lop_dtype dt = what < 5 ? LOP_c128 : what < 7 ? LOP_NO_DTYPE : exact[world_pick(&w, 0, 4)];
    d.g = (gen){
        .w = &w, .dtype = dt, .solves = dt == LOP_c128, .views = views, .exprs = 2, .largest = 3};
    if (!world_pick(&w, 0, 4)) d.g.batch = (lop_shape){.ndim = 1, .dim = {2}};
    for (int i = 0; i < 3; i++)
        d.size[i] = i && world_pick(&w, 0, 2) ? d.size[0] : pool[world_pick(&w, 0, 6)];
    const lop_node *out = by_name(&d.g, rule->name);
    if (!out) out = fill(&d, text->n - 1, NULL, 0);
    for (int i = 0; i < LOP_HOLES; i++) lop_node_unref(d.hole[i]);
    if (!out || !inverts_whole(out, false)) return out;
    lop_node_unref(out);
    return NULL;
}

/* -- one row */

/* Rows that ask other rows what becomes of a view have these beside them. */
static const char *const asked[] = {"view-view",  "view-real",      "view-sum",   "view-scaled",
                                    "view-prod",  "view-prod-conj", "solve-prod", "view-diag",
                                    "view-zeros", "view-identity"};
enum { ASKED = sizeof asked / sizeof asked[0] };
static bool asks(const lop_rule *rule) {
    return rule->build == lop_build_solve_view || rule->build == lop_build_settle_view ||
           rule->build == lop_build_settle_views || rule->build == lop_build_partial_turned;
}

/* These ask another row what becomes of the sum. */
static const char *const updates = "solve-sum-lowrank", *const kinds = "close-toeplitz-plus";

/* A table of this row alone (owned; NULL if it does not compile), with row[0] in it, and its left
 * side parsed. `first` rows act on the heads below an action or a view; here where they are put. */
static lop_rules *alone(const lop_rule *rule, lop_rule row[1 + ASKED], lop_text *left) {
    lop_rules *one = NULL;
    int n = 0;
    row[n++] = *rule;
    if (row->phase == LOP_FIRST) row->phase = LOP_PUSH;
    for (int i = 0; i < lop_rule_count && asks(rule); i++)
        for (int j = 0; j < ASKED; j++)
            if (!strcmp(lop_rule_table[i].name, asked[j])) row[n++] = lop_rule_table[i];
    for (int i = 0; i < lop_rule_count && rule->build == lop_build_solve_view_update; i++)
        if (!strcmp(lop_rule_table[i].name, updates)) row[n++] = lop_rule_table[i];
    for (int i = 0; i < lop_rule_count && rule->build == lop_build_sum_of_kinds; i++)
        if (!strcmp(lop_rule_table[i].name, kinds)) row[n++] = lop_rule_table[i];
    if (lop_text_parse(&w.ctx, rule->left, left, &w.err) != LOP_OK) return NULL;
    if (lop_rules_new(&w.ctx, row, n, &one, &w.err) != LOP_OK) lop_text_clear(left);
    return one;
}

/* The left as the one rule leaves it: owned, NULL when it does not fire. */
static const lop_node *rewritten(const lop_rules *one, const lop_node *left, lop_tab *tab,
                                 lop_status *st) {
    const lop_node *right = NULL;
    lop_trace trace = {.count = 0};
    int which;
    const int64_t before = lop_rules_fired(one, 0);
    w.err = (lop_err){.step = -1};
    if (lop_rules_at(one, 0)->phase == LOP_CLOSE) {
        *st = lop_close(one, &w.ctx, left->op, &left->attr, left->n, left->child, &right, &which,
                        &w.err);
    } else {
        *st = lop_rewrite(one, tab, left, &right, &trace, &w.err);
        if (*st == LOP_OK && lop_rules_fired(one, 0) == before) *st = LOP_NOMATCH;
    }
    if (*st == LOP_OK) return right;
    lop_node_unref(right);
    return NULL;
}

/* Both sides by the interpreter; a singular matrix on either leaves nothing to compare, but where
 * the right says that the left is so. */
static bool equal(const lop_node *left, const lop_node *right, bool *compared) {
    ip p;
    ip_open(&p, &w.rand, left->dtype, false);
    const tv *a = ip_eval(&p, left);
    const bool told = right->op == &lop_op_rank_deficient, alone = p.singular || (a && a->nb == 0);
    const tv *b = ip_eval(&p, right);
    *compared = a && (told || !p.singular);
    bool same =
        a && b &&
        (told ? alone
              : p.singular || tv_same(a, b, lop_is_blas(left->dtype) ? LOP_f64 : left->dtype, 200));
    /* a band of four rows, drawn rarely: tests/rewriting/test_inferred_bands.py has them */
    const bool band = p.why && !strcmp(p.why, "bandprobe");
    *compared = *compared && !band;
    t_check((a && b) || band, "the interpreter does not know %s", p.why ? p.why : "");
    ip_close(&p);
    return same || !a || !b;
}

static void say(const char *what, const lop_rule *rule, const lop_node *left,
                const lop_node *right) {
    char *a = lop_dump(left, 40), *b = right ? lop_dump(right, 40) : NULL;
    t_check(false, "%s: %s: %s\n    -> %s", rule->name, what, a ? a : "", b ? b : w.err.text);
    lop_free(&w.ctx, a);
    lop_free(&w.ctx, b);
}

#include "battery_pairs.h"

/* The whole table on the left: ends, in a form that no rule changes. */
static void fixed_point(const lop_rule *rule, const lop_node *left) {
    const lop_node *once = NULL, *twice = NULL;
    lop_tab tab;
    lop_trace trace = {.count = 0};
    lop_tab_init(&tab, &w.ctx);
    lop_status st = lop_rewrite(w.rules, &tab, left, &once, &trace, &w.err);
    if (st == LOP_OK) st = lop_rewrite(w.rules, &tab, once, &twice, &trace, &w.err);
    t_check(st == LOP_OK, "%s: whole table: %s", rule->name, w.err.text);
    if (st == LOP_OK && (trace.count || once != twice))
        say("not a fixed point of the whole table", rule, once, twice);
    lop_node_unref(once);
    lop_node_unref(twice);
    lop_tab_clear(&tab);
}

/* Is an operand an expression of integers under a float root? It wraps as written: not comparable.
 */
static bool wraps(const lop_node *node) {
    for (int i = 0; i < node->n; i++) {
        const lop_node *c = node->child[i];
        if (node->op->cls == LOP_ACTION && i && c->n && !lop_is_blas(c->dtype)) return true;
        if (wraps(c)) return true;
    }
    return false;
}

static bool one_dtype(const lop_node *node, lop_dtype dt) {
    bool index = lop_dtype_family(node->dtype) == 'i' && node->core == 1 && !node->n;
    if (node->dtype != dt && !(node->weak && !node->n) && !index) return false;
    for (int i = 0; i < node->n; i++)
        if (!one_dtype(node->child[i], dt)) return false;
    return true;
}

/* Draws until `wanted` have fired and been compared; how many, and whether all agreed. */
static int battery(const lop_rule *rule, bool quiet, bool *agreed) {
    lop_text text;
    int good = 0;
    *agreed = true;
    lop_rule row[1 + ASKED];
    lop_rules *one = alone(rule, row, &text);
    for (int i = 0; one && i < TRIES && good < wanted && (!quiet || *agreed); i++) {
        lop_tab tab;
        lop_status st = LOP_NOMATCH;
        const lop_node *left = a_left(rule, &text, true), *right = NULL;
        lop_tab_init(&tab, &w.ctx);
        if (left) right = rewritten(one, left, &tab, &st);
        bool compared = false, same = true, type = true;
        if (right) {
            same = equal(left, right, &compared);
            type = lop_shape_equal(&left->shape, &right->shape) && left->dtype == right->dtype &&
                   left->core == right->core &&
                   (left->op->cls != LOP_OPERATOR || left->weak == right->weak);
        }
        /* alone a row need not come to an end: with all of them it must, see below */
        if (!quiet && st < 0 && st != LOP_LIMIT)
            say("the right side is not well-formed", rule, left, NULL);
        if (!quiet && !same) say("the sides differ", rule, left, right);
        if (!quiet && !type) say("shape or dtype changed", rule, left, right);
        if (left && st < 0) *agreed = false;
        *agreed = *agreed && same && type;
        good += compared && right;
        bool fits =
            right && (lop_is_blas(left->dtype) ? !wraps(left) : one_dtype(left, left->dtype));
        if (!quiet && right && compared)
            pairs_of((int)(rule - lop_rule_table), left, right, &tab, fits);
        if (!quiet && right && left->op->cls != LOP_OPERATOR && good % 4 == 0) {
            fixed_point(rule, left);
            if (fits) t_agrees(&w, left, i % LAYOUTS, 400 * gen_slack(left), rule->name);
        }
        lop_node_unref(left);
        lop_node_unref(right);
        lop_tab_clear(&tab);
        world_leaves(&w);
    }
    if (one) lop_text_clear(&text);
    lop_rules_free(one);
    return good;
}

#include "battery_mutants.h"

/* Does row i act under the whole table on expressions drawn from its own left side? */
static bool acts(int i) {
    lop_text text;
    if (lop_text_parse(&w.ctx, lop_rule_table[i].left, &text, &w.err) != LOP_OK) return false;
    for (int k = 0; k < 60000 && !lop_rules_fired(w.rules, i); k++) {
        const lop_node *root = a_left(&lop_rule_table[i], &text, true), *out = NULL;
        lop_trace trace = {.count = 0};
        lop_tab tab;
        lop_tab_init(&tab, &w.ctx);
        if (root && root->op->cls == LOP_OPERATOR && k % 4) { /* else as it stands */
            lop_attr dt = t_ints(0, 0, 0, (int64_t)root->dtype + 1);
            root = t_one_of(&w, "todense", &dt, root);
        }
        if (root && lop_rewrite(w.rules, &tab, root, &out, &trace, &w.err) != LOP_OK) out = NULL;
        lop_node_unref(root);
        lop_node_unref(out);
        lop_tab_clear(&tab);
        world_leaves(&w);
    }
    lop_text_clear(&text);
    return lop_rules_fired(w.rules, i) > 0;
}

/* A row before which others always come is to be removed. Close rows are for one node each. */
static void idle_rows(void) {
    for (int i = 0; i < lop_rule_count; i++) {
        const lop_rule *rule = &lop_rule_table[i];
        bool fired = rule->phase == LOP_CLOSE || lop_rules_fired(w.rules, i) > 0 || acts(i);
        t_check(fired, "%s never acts under the whole table", rule->name);
    }
    t_group("idle");
}

int main(int argc, char **argv) {
    const char *only = argc > 2 && *argv[2] ? argv[2] : NULL; /* of rows; then how many draws */
    wanted = (int)t_number(argc, argv, 3, WANTED);
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 3));
    w.ctx.alike = 2; /* few leaves make many blocks too */
    w.ctx.toeplitz = 1;
    w.ctx.check = LOP_CHECK_FULL;
    world_sparse(&w);
    for (int i = 0; i < lop_rule_count; i++) {
        const lop_rule *rule = &lop_rule_table[i];
        bool agreed;
        if (only && strcmp(only, rule->name) != 0) continue;
        int good = battery(rule, false, &agreed);
        t_check(good >= 50 || wanted < WANTED, "%s: only %d draws fired", rule->name, good);
        if (only) printf("%s: %d draws\n", rule->name, good);
    }
    t_group("rows");
    if (!only && wanted == WANTED) idle_rows();
    printf("%d pairs of rows fit the same expression, %d end in one form; %d checks\n", found.pairs,
           found.joined, found.checks);
    free(found.tried);
#ifndef __SANITIZE_ADDRESS__ /* it tries the test, not the library, and takes minutes there */
    if (!only && wanted == WANTED) watch_itself();
#endif
    world_close(&w, "battery_rules");
    t_group("mutants");
    return t_end();
}
