/* assumptions.c: one walk in post-order with a stack, each node once. Linear in nodes and
 * links. */
#include "assumptions.h"

#include "expr/node_map.h"

typedef struct walk {
    lop_ctx *ctx;
    const lop_rules *rules; /* borrowed: what is declared is read as its kind; NULL: tested */
    lop_map known;          /* node -> its place in made */
    const lop_node **made;  /* owned */
    const lop_node **stack; /* borrowed */
    int nmade, room_made, top, room;
} walk;

static lop_status grow(lop_ctx *ctx, const lop_node ***block, int n, int *room) {
    if (n < *room) return LOP_OK;
    const int wider = *room ? 2 * *room : 64;
    void *more = lop_realloc(ctx, (void *)*block, (size_t)wider * sizeof **block);
    if (!more) return LOP_NOMEM;
    *block = more;
    *room = wider;
    return LOP_OK;
}

static lop_status push(walk *w, const lop_node *n) {
    lop_status st = grow(w->ctx, &w->stack, w->top, &w->room);
    if (st == LOP_OK) w->stack[w->top++] = n;
    return st;
}

/* Children that are not known yet go on the stack; their number, or -1: no memory. */
static int descend(walk *w, const lop_node *n) {
    int at, count = 0;
    for (int i = n->n - 1; i >= 0; i--) {
        if (lop_map_get(&w->known, n->child[i], &at)) continue;
        if (push(w, n->child[i]) != LOP_OK) return -1;
        count++;
    }
    return count;
}

/* What was assumed of a node and may be used; of bands nothing relies on "orthogonal". */
static int64_t word_of(const lop_node *n) {
    const bool dense = n->op == &lop_op_dense;
    const int64_t word = dense || n->op == &lop_op_tridiagonal ? n->attr.i[0]
                         : n->op == &lop_op_banded             ? n->attr.i[2]
                         : n->op == &lop_op_blocktridiagonal   ? n->attr.i[1]
                                                               : 0;
    if (!dense && word == LOP_ASSUME_ORTHOGONAL) return 0;
    return word > LOP_ASSUME_GENERAL && word < LOP_ASSUME_TRIED ? word : 0;
}

/* The child that stands for all of it, behind the test: owned. */
static lop_status tested(const lop_node *n, int64_t word, const lop_node *const *child,
                         const lop_node **out, lop_err *err) {
    const lop_attr full = {.i = {word, 0, 0, 0}}, band = {.i = {word, n->attr.i[0], 0, 0}};
    if (n->op == &lop_op_dense)
        return lop_node_make(n->ctx, &lop_op_assume, &full, 1, child, NULL, out, err);
    if (n->op == &lop_op_banded)
        return lop_node_make(n->ctx, &lop_op_assume_band, &band, 1, child, NULL, out, err);
    if (n->op == &lop_op_blocktridiagonal)
        return lop_node_make(n->ctx, &lop_op_assume_blocks, &n->attr, n->n, child, NULL, out, err);
    const lop_node *three[3] = {child[1], child[0], child[2]};
    return lop_node_make(n->ctx, &lop_op_assume_tridiagonal, &full, 3, three, NULL, out, err);
}

/* Diagonals -k to k of a Dense of this array, as the kind of so many: owned. */
static lop_status of_diagonals(const lop_node *array, int k, const lop_node **out, lop_err *err) {
    const lop_node *v[3] = {NULL, NULL, NULL};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 2 * k + 1; i++) {
        const lop_attr at = {.i = {i - k, 0, 0, 0}};
        st = lop_node_make(array->ctx, &lop_op_array_diagonal, &at, 1, &array, NULL, &v[i], err);
    }
    if (st == LOP_OK)
        st = lop_node_make(array->ctx, k ? &lop_op_tridiagonal : &lop_op_diag, NULL, 2 * k + 1, v,
                           NULL, out, err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

/* A Dense of the matrix that its upper triangle is all of: owned. */
static lop_status of_half(const lop_node *dense, const lop_node *array, const lop_node **out,
                          lop_err *err) {
    const lop_attr how = {.i = {dense->attr.i[0] != LOP_ASSUME_SYMMETRIC, 0, 0, 0}};
    const lop_node *whole = NULL;
    lop_status st = lop_node_make(array->ctx, &lop_op_named, &how, 1, &array, NULL, &whole, err);
    if (st == LOP_OK)
        st = lop_node_make(dense->ctx, dense->op, &dense->attr, 1, &whole, NULL, out, err);
    lop_node_unref(whole);
    return st;
}

/* A Dense of this array as the kind that it is declared to be: owned. */
static lop_status as_declared(const lop_node *dense, const lop_node *array, const lop_node **out,
                              lop_err *err) {
    if (lop_is_declared_half(dense)) return of_half(dense, array, out, err);
    if (!lop_is_declared_triangle(dense))
        return of_diagonals(array, dense->attr.i[0] == LOP_ASSUME_TRIDIAGONAL, out, err);
    const lop_attr side = {.i = {dense->attr.i[0] == LOP_ASSUME_LOWER, 0, 0, 0}};
    return lop_node_make(dense->ctx, &lop_op_triangular, &side, 1, &array, NULL, out, err);
}

/* A kind of bands by its named half: owned. */
static lop_status of_lines(const lop_node *n, const lop_node *const *child, const lop_node **out,
                           lop_err *err) {
    const lop_node *v[3] = {NULL, NULL, NULL};
    int count = 0;
    lop_status st = lop_named_lines(n, child, &count, v, err);
    if (st == LOP_OK) st = lop_node_make(n->ctx, n->op, &n->attr, count, v, NULL, out, err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    if (st != LOP_OK || ((*out)->dtype == n->dtype && lop_shape_equal(&(*out)->shape, &n->shape)))
        return st;
    lop_node_unref(*out); /* the other half has a wider dtype, or a stack of its own */
    return lop_node_make(n->ctx, n->op, &n->attr, n->n, child, NULL, out, err);
}

/* Is a Dense by its word something else than its array? */
static bool is_read_anew(const lop_node *n) {
    return lop_is_declared_kind(n) || (lop_is_declared_half(n) && n->child[0]->op != &lop_op_named);
}

/* Is it a multiple by one that changes nothing else? */
static bool is_nothing(const lop_node *n, const lop_node *of) {
    return n->op == &lop_op_scaled && n->dtype == of->dtype && n->weak == of->weak &&
           lop_coef_test(n->ctx, lop_coef_of(&n->attr), LOP_COEF_ONE);
}

/* A node over children of which one is of another kind now: closed where it closes. Owned. */
static lop_status closed(const walk *w, const lop_node *n, const lop_node *const *child,
                         const lop_node **out, lop_err *err) {
    int rule;
    if (is_nothing(n, child[0])) { /* what it was a multiple of closes with others */
        *out = lop_node_ref(child[0]);
        return LOP_OK;
    }
    lop_status st = lop_close(w->rules, w->ctx, n->op, &n->attr, n->n, child, out, &rule, err);
    if (st == LOP_OK && (*out)->dtype == n->dtype && (*out)->weak == n->weak &&
        lop_shape_equal(&(*out)->shape, &n->shape))
        return LOP_OK;
    if (st == LOP_OK) lop_node_unref(*out);
    if (st != LOP_OK && st != LOP_NOMATCH) return st;
    return lop_node_make(w->ctx, n->op, &n->attr, n->n, child, NULL, out, err);
}

/* The node over what its children became: owned. */
static lop_status rebuilt(walk *w, const lop_node *n, const lop_node **out, lop_err *err) {
    const lop_node *few[8], **child = few, *test = NULL;
    const int64_t word = w->rules ? 0 : word_of(n);
    lop_status st = LOP_OK;
    bool same = word == 0;
    if (n->n > 8 && !(child = lop_calloc(w->ctx, (size_t)n->n, sizeof *child))) return LOP_NOMEM;
    for (int i = 0; i < n->n; i++) {
        int at = -1;
        (void)lop_map_get(&w->known, n->child[i], &at);
        child[i] = w->made[at];
        same = same && child[i] == n->child[i];
    }
    if (word) {
        const int place = n->op == &lop_op_dense || n->op == &lop_op_banded ? 0 : 1;
        st = tested(n, word, child, &test, err);
        if (st == LOP_OK) child[place] = test;
    }
    if (w->rules && n->op == &lop_op_dense && is_read_anew(n))
        st = as_declared(n, child[0], out, err);
    else if (w->rules && lop_has_named_lines(n))
        st = of_lines(n, child, out, err);
    else if (st == LOP_OK && same)
        *out = lop_node_ref(n);
    else if (st == LOP_OK && w->rules)
        st = closed(w, n, child, out, err);
    else if (st == LOP_OK)
        st = lop_node_make(w->ctx, n->op, &n->attr, n->n, child, NULL, out, err);
    lop_node_unref(test);
    if (child != few) lop_free(w->ctx, (void *)child);
    return st;
}

static lop_status visit(walk *w, lop_err *err) {
    const lop_node *n = w->stack[w->top - 1], *out;
    int at;
    if (lop_map_get(&w->known, n, &at)) return w->top--, LOP_OK;
    const int more = descend(w, n);
    if (more) return more < 0 ? LOP_NOMEM : LOP_OK;
    lop_status st = grow(w->ctx, &w->made, w->nmade, &w->room_made);
    if (st == LOP_OK) st = rebuilt(w, n, &out, err);
    if (st != LOP_OK) return st;
    w->made[w->nmade] = out;
    w->top--;
    return lop_map_set(&w->known, n, w->nmade++);
}

static lop_status walked(const lop_rules *rules, const lop_node *root, const lop_node **out,
                         lop_err *err) {
    walk w = {.ctx = root->ctx, .rules = rules};
    lop_status st = lop_map_init(&w.known, w.ctx);
    if (st == LOP_OK) st = push(&w, root);
    while (st == LOP_OK && w.top > 0) st = visit(&w, err);
    if (st == LOP_OK) *out = lop_node_ref(w.made[w.nmade - 1]);
    if (st == LOP_NOMEM) (void)lop_fail(err, st, NULL);
    for (int i = 0; i < w.nmade; i++) lop_node_unref(w.made[i]);
    lop_free(w.ctx, (void *)w.made);
    lop_free(w.ctx, (void *)w.stack);
    lop_map_clear(&w.known, w.ctx);
    return st;
}

lop_status lop_assumptions_tested(const lop_node *root, const lop_node **out, lop_err *err) {
    return walked(NULL, root, out, err);
}
lop_status lop_declared_kinds(const lop_rules *rules, const lop_node *root, const lop_node **out,
                              lop_err *err) {
    if (root->declared) return walked(rules, root, out, err);
    *out = lop_node_ref(root);
    return LOP_OK;
}
