/* solve_views.c: solves and determinants see through views. A row for a kind names its head; a view
 * of a composite has another head, and would be taken by the rows for what has no structure. So a
 * view is moved to the parts first, and stays only where no row names what it comes to: there the
 * factor of the operator itself serves its views too.
 *
 * The moves are the table's own rows of views. Cost: a few nodes for each part, at most MOST. */
#include "builds.h"
#include "expr/properties.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

enum { DEPTH = 12, MOST = 256 };

static bool is_view(const lop_node *a) { return a->op == &lop_op_view; }
static bool has_views(const lop_node *a) {
    for (int i = 0; i < a->n; i++)
        if (is_view(a->child[i])) return true;
    return false;
}

/* The view moved down at the root, as often as there is a row for it. Takes over *a. */
static lop_status move(const lop_maker *mk, const lop_node **a, int *left) {
    lop_status st = LOP_OK;
    while (st == LOP_OK && is_view(*a) && --*left >= 0) {
        const lop_node *next = NULL;
        st = lop_push_once(mk, *a, false, &next);
        if (st != LOP_OK) break;
        lop_node_unref(*a);
        *a = next;
    }
    return st == LOP_NOMATCH ? LOP_OK : st;
}

/* The same for the parts that the moves have made views of. Takes over *a. Recursion is as deep as
 * DEPTH. */
static lop_status settle(const lop_maker *mk, const lop_node **a, int depth, int *left) {
    const lop_node *child[LOP_INFER_FACTORS] = {NULL}, *made = NULL;
    lop_status st = move(mk, a, left);
    const lop_node *now = *a;
    const int n = now->n;
    if (st != LOP_OK || is_view(now) || depth == 0 || n > LOP_INFER_FACTORS || !has_views(now))
        return st;
    bool same = true;
    for (int i = 0; i < n; i++) child[i] = lop_node_ref(now->child[i]);
    for (int i = 0; st == LOP_OK && i < n; i++) {
        if (is_view(child[i])) st = settle(mk, &child[i], depth - 1, left);
        same = same && child[i] == now->child[i];
    }
    if (st == LOP_OK && !same) {
        st = lop_make_op(mk, now->op, &now->attr, n, child, NULL, &made);
        if (st == LOP_OK) {
            lop_node_unref(now);
            *a = made;
        }
    }
    for (int i = 0; i < n; i++) lop_node_unref(child[i]);
    return st;
}

lop_status lop_settle(const lop_maker *mk, const lop_node **a) {
    int left = MOST;
    return settle(mk, a, DEPTH, &left);
}

/* The root's action on its operand with the views moved down. */
static lop_status settled(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *root = m->root, *child[4] = {lop_node_ref(root->child[0])};
    int left = MOST;
    if (root->n > 4) {
        lop_node_unref(child[0]);
        return LOP_NOMATCH;
    }
    for (int i = 1; i < root->n; i++) child[i] = root->child[i];
    lop_status st = settle(mk, &child[0], DEPTH, &left);
    if (st == LOP_OK && child[0] == root->child[0]) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, out);
    lop_node_unref(child[0]);
    return st;
}

/* conj(A)^-1 x = conj(A^-1 conj x), A^-T x = conj(A^-H conj x). */
lop_status lop_solve_conjugated(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *view = m->root->child[0], *a = NULL, *x = NULL, *y = NULL;
    const lop_attr h = {.i = {LOP_H, 0, 0, 0}};
    lop_status st = lop_make1(mk, &lop_op_conjugate, NULL, m->root->child[1], &x);
    if (st == LOP_OK && view->attr.i[0] == LOP_T)
        st = lop_make1(mk, &lop_op_view, &h, view->child[0], &a);
    else if (st == LOP_OK)
        a = lop_node_ref(view->child[0]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, a, x, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_conjugate, NULL, y, out);
    const lop_node *gone[] = {a, x, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* A view of a sum that is solved with as an update of rank k, as a view of that: its small matrix
 * serves both. */
LOP_BUILD(solve_view_update) {
    enum { STEPS = 4 };
    const lop_node *view = m->root->child[0], *x = m->root->child[1], *at = NULL, *seen = NULL;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, view->child[0], x, &at);
    for (int i = 0; st == LOP_OK && i < STEPS && at->child[0]->op != &lop_op_lowrankupdate; i++) {
        const lop_node *next = NULL;
        st = lop_push_once(mk, at, false, &next);
        lop_node_unref(at);
        at = next;
        if (st == LOP_OK && (at->op != &lop_op_solve || at->child[1] != x)) st = LOP_NOMATCH;
    }
    if (st == LOP_OK && at->child[0]->op != &lop_op_lowrankupdate) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &view->attr, at->child[0], &seen);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, seen, x, out);
    lop_node_unref(at);
    lop_node_unref(seen);
    return st;
}

/* What is not solved by the head it comes to is left: generic rows read a view where it is. */
LOP_BUILD(solve_view) {
    const lop_node *solve = NULL;
    lop_status st = settled(m, mk, &solve);
    if (st == LOP_OK && is_view(solve->child[0])) { /* of a real matrix: less of a view */
        *out = solve;
        return LOP_OK;
    }
    if (st == LOP_OK) st = lop_push_once(mk, solve, true, out);
    lop_node_unref(solve);
    return st;
}

/* In the dtype of the quotient: integers under an inverse are none. */
LOP_BUILD(solve_inverse) {
    const lop_node *x = NULL;
    lop_status st = lop_build_cast_x(m, mk, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), x, out);
    lop_node_unref(x);
    return st;
}

/* A view whose parts it moves to. */
LOP_BUILD(settle_view) { return settled(m, mk, out); }
/* A sum or a Block that has views among its terms. */
LOP_BUILD(settle_views) { return has_views(m->root->child[0]) ? settled(m, mk, out) : LOP_NOMATCH; }
