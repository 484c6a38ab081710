/* interp_compose.h: a part of interp.c: kinds of several operands, and the arrays they go by. */
/* -- blocks */

static void paste(tv *y, mv to, int64_t row, int64_t col, mv a) {
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++) to.v[(row + i) * y->n + col + j] = a.v[i * a.n + j];
}

/* The children side by side in rows of c, or (c = 0) along the diagonal. */
static const tv *pasted(ip *p, const lop_node *node, int64_t c) {
    const tv *f[64];
    lop_shape batch = {0}, both;
    int64_t rows = 0, cols = 0;
    if (node->n > 64) return fail(p, "too many blocks");
    for (int i = 0; i < node->n; i++) {
        if (!(f[i] = ip_eval(p, node->child[i]))) return NULL;
        if (!broadcast(&batch, &f[i]->batch, &both)) return fail(p, "blocks do not broadcast");
        batch = both;
        if (c == 0 || i % c == 0) rows += f[i]->m;
        if (c == 0 || i < c) cols += f[i]->n;
    }
    tv *y = blank(p, &batch, f[0]->core, rows, cols);
    for (int64_t e = 0; e < y->nb; e++)
        for (int64_t i = 0, row = 0, col = 0; i < node->n; i++) {
            paste(y, part(y, &batch, e), row, col, part(f[i], &batch, e));
            bool last = c == 0 || (i + 1) % c == 0;
            col = c != 0 && last ? 0 : col + f[i]->n;
            if (last) row += f[i]->m;
        }
    return y;
}
static void do_slice(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            y.v[i * y.n + j] = a.v[(node->attr.i[0] + i) * a.n + node->attr.i[2] + j];
}

static const tv *sum_of(ip *p, const tv *a, const tv *b) {
    bool fits = a && b && a->m == b->m && a->n == b->n;
    return fits ? zip(p, NULL, a, b, 2, a->m, a->n, do_add) : NULL;
}

static const tv *update(ip *p, const lop_node *node) {
    const tv *a[4] = {NULL};
    for (int i = 0; i < node->n; i++)
        if (!(a[i] = ip_eval(p, node->child[i]))) return NULL;
    return sum_of(p, a[0], lowrank(p, a[1], a[2], a[3]));
}

static const tv *eye_like(ip *p, int64_t n) {
    lop_shape none = {0};
    tv *eye = blank(p, &none, 2, n, n);
    for (int64_t i = 0; i < n; i++) eye->v[i * n + i] = one();
    return eye;
}
static const tv *kronsum(ip *p, const lop_node *node) {
    const tv *all = NULL;
    for (int i = 0; i < node->n; i++) {
        const tv *term = eye_like(p, 1);
        for (int j = 0; j < node->n; j++) {
            const tv *f =
                i == j ? ip_eval(p, node->child[i]) : eye_like(p, lop_rows(node->child[j]));
            if (!f) return NULL;
            term = zip(p, NULL, term, f, 2, term->m * f->m, term->n * f->n, do_kron);
        }
        all = all ? sum_of(p, all, term) : term;
    }
    return all;
}

/* schur_solve and schur_det: by the dense form of the sum, each part under its view. */
static const tv *by_schur(ip *p, const lop_node *node, const char *s) {
    const bool solves = !strcmp(s, "schur_solve");
    const int64_t *how = node->attr.i;
    const tv *all = NULL;
    for (int i = 0; i < 2; i++) {
        const int64_t mode =
            solves ? (how[i] ? LOP_H : LOP_N) ^ (how[2] ? LOP_C : LOP_N) : (how[i] ? LOP_C : LOP_N);
        const lop_node view = {.attr = {.i = {mode, 0, 0, 0}}};
        const tv *a = ip_eval(p, node->child[i]);
        if (!a) return NULL;
        const tv *f = zip(p, &view, a, NULL, 2, a->m, a->n, do_mode),
                 *eye = eye_like(p, lop_rows(node->child[1 - i])), *left = i ? eye : f,
                 *right = i ? f : eye;
        const tv *term = zip(p, NULL, left, right, 2, f->m * eye->m, f->n * eye->n, do_kron);
        all = all ? sum_of(p, all, term) : term;
    }
    if (!solves) return zip(p, node, all, NULL, 1, 2, 1, do_det);
    const tv *c = ip_eval(p, node->child[2]);
    return c ? solve(p, all, c) : NULL;
}

static void do_khatri(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            y.v[i * y.n + j] = mul(p, a.v[i / b.m * a.n + j], b.v[i % b.m * b.n + j]);
}
static void do_rowmix(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t q = 0; q < a.n; q++)
            for (int64_t j = 0; j < y.n; j++)
                y.v[i * y.n + j] =
                    add(p, y.v[i * y.n + j], mul(p, a.v[i * a.n + q], b.v[i * b.n + q * y.n + j]));
}
/* congruence, root, eigen: A B A^H. */
static const tv *sandwich(ip *p, const lop_node *node) {
    const tv *a = ip_eval(p, node->child[0]), *b = node->n > 1 ? ip_eval(p, node->child[1]) : NULL;
    if (!a || (node->n > 1 && !b)) return NULL;
    if (b && b->core == 1) b = zip(p, NULL, b, NULL, 2, b->m, b->m, do_diag);
    return lowrank(p, a, a, b);
}
static const tv *pair_of(ip *p, const lop_node *node, bool khatri) {
    const tv *a = ip_eval(p, node->child[0]), *b = ip_eval(p, node->child[1]);
    if (!a || !b) return NULL;
    return zip(p, NULL, a, b, 2, khatri ? a->m * b->m : a->m, a->n, khatri ? do_khatri : do_mul);
}

static const tv *sparse_pair(ip *p, const lop_node *node, const tv *a, const tv *b) {
    const tv *d = node->n > 2 ? ip_eval(p, node->child[2]) : NULL;
    const lop_node at = {.attr = {.i = {node->attr.i[1], 0, 0, 0}}};
    if (node->n > 2 && !d) return NULL;
    if (d) a = matmul(p, a, zip(p, node, d, NULL, 2, d->m, d->m, do_diag));
    a = a ? matmul(p, a, b) : NULL;
    return a && node->attr.i[0] ? diagonal(p, &at, a) : a;
}

/* Matrices behind each other, as a batch. */
static const tv *pile(ip *p, const lop_node *node) {
    lop_shape batch = {.ndim = 1, .dim = {node->n}};
    tv *y = blank(p, &batch, 2, lop_rows(node), lop_cols(node));
    for (int i = 0; i < node->n; i++) {
        const tv *a = ip_eval(p, node->child[i]);
        if (!a) return NULL;
        memcpy(y->v + i * y->m * y->n, a->v, (size_t)(y->m * y->n) * sizeof *y->v);
    }
    return y;
}

/* The product of determinants along the last batch dimension. */
static const tv *detall(ip *p, const lop_node *node) {
    const tv *a = ip_eval(p, node->child[0]);
    if (!a || a->batch.ndim < 1) return NULL;
    lop_shape batch = a->batch;
    int64_t many = batch.dim[--batch.ndim];
    tv *y = blank(p, &batch, 1, 2, 1);
    for (int64_t e = 0; e < y->nb; e++) {
        y->v[2 * e] = one();
        for (int64_t i = 0; i < many; i++)
            y->v[2 * e] = ip_det_times(y->v[2 * e], a->v[2 * (e * many + i)]);
    }
    return y;
}

/* A check's q = A^H u, u = A v: of the ones that probes are here the sum of q is |A v|^2: real, and
 * with .T for .H it is not. */
static bool bounds_norm(ip *p, const lop_node *q_node) {
    const tv *q = ip_eval(p, q_node);
    for (int64_t e = 0; q && e < q->nb; e++) {
        val sum = {0};
        for (int64_t i = 0; i < q->m; i++) sum = ip_add(p, sum, tv_at(q, e, i, 0));
        if (!isfinite(sum.mag)) continue; /* 1 / 0 in a draw */
        if (!(fabsl(sum.im) <= 1e-6L * sum.mag) || sum.re < -1e-6L * sum.mag) return false;
    }
    return q != NULL;
}

static bool is_composed(const char *s) {
    static const char *const heads[] = {"blockdiag",
                                        "blocks",
                                        "block",
                                        "grid",
                                        "checked",
                                        "checked_det",
                                        "checked_value",
                                        "checked_difference",
                                        "checked_update",
                                        "checked_update_det",
                                        "checked_quotient_det",
                                        "checked_share",
                                        "checked_beside",
                                        "checked_parallel",
                                        "weighted_gram",
                                        "scaled_gram",
                                        "top_square",
                                        "lowrankupdate",
                                        "kronsum",
                                        "congruence",
                                        "root",
                                        "eigen",
                                        "elementwise",
                                        "khatri_rao_array",
                                        "khatrirao",
                                        "cholesky_batch",
                                        "block_products",
                                        "joint_det",
                                        "rowmix",
                                        "shift",
                                        "spectral",
                                        "where_runs",
                                        "schur_solve",
                                        "schur_det",
                                        "normal_equations_solve",
                                        "toeplitz_solve",
                                        "toeplitz_det",
                                        "toeplitz_inverse_diagonal",
                                        "toeplitz_inverse",
                                        "first_unit",
                                        "grid_solve",
                                        "sparse_solve",
                                        "sparse_det",
                                        "sparsediag",
                                        "sparsetrace",
                                        "sparserows",
                                        "quasiseparable_solve",
                                        "quasiseparable_det",
                                        "quasiinvdiag",
                                        "block_tridiagonal_solve",
                                        "block_det",
                                        "blockinvblocks",
                                        "blockinvdiag",
                                        "bandinvdiag",
                                        "bandinvband",
                                        "triinvdiag",
                                        "bandbetween",
                                        "blockinvtrace"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (!strcmp(s, heads[i])) return true;
    return false;
}

static void do_shift(ip *p, const lop_node *node, mv y, mv a, mv b) {
    val c = coef(p, &node->attr);
    do_copy(p, node, y, a, b);
    for (int64_t i = 0; i < y.m; i++) y.v[i * y.n + i] = add(p, y.v[i * y.n + i], c);
}

/* R^H diag(d)^-1 R, and below it the columns' squares; without these it is R^H diag(d) R. */
static void do_weighted(ip *p, const lop_node *node, mv y, mv a, mv d) {
    (void)node;
    for (int64_t j = 0; j < a.n; j++)
        for (int64_t i = 0; i < y.m; i++)
            for (int64_t r = 0; r < a.m; r++) {
                const val v = a.v[r * a.n + j];
                const val by = y.m == a.n ? mul(p, v, d.v[r]) : i < a.n ? quotient(v, d.v[r]) : v;
                val *to = &y.v[i * y.n + j];
                *to = add(p, *to, mul(p, conj_of(a.v[r * a.n + (i < a.n ? i : j)]), by));
            }
}
/* The rows of a that y has. */
static void do_top(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    (void)b;
    memcpy(y.v, a.v, (size_t)(y.m * y.n) * sizeof *y.v);
}
static const tv *weighted_gram(ip *p, const lop_node *node, int64_t more) {
    const tv *a = ip_eval(p, node->child[0]), *d = ip_eval(p, node->child[1]);
    return a && d ? zip(p, node, a, d, 2, a->n + more, a->n, do_weighted) : NULL;
}

/* Each matrix times the rows of x that it meets. */
static const tv *products_below(ip *p, const lop_node *node) {
    const lop_node view = {.attr = {.i = {node->attr.i[0], 0, 0, 0}}};
    const bool turned = (node->attr.i[0] & LOP_T) != 0;
    const tv *x = ip_eval(p, node->child[0]);
    if (!x) return NULL;
    tv *y = blank(p, &x->batch, 2, lop_rows(node), x->n);
    for (int64_t i = 1, row = 0, at = 0; i < node->n; i++) {
        const tv *a = ip_eval(p, node->child[i]);
        const tv *seen =
            a ? zip(p, &view, a, NULL, 2, turned ? a->n : a->m, turned ? a->m : a->n, do_mode)
              : NULL;
        if (!seen) return NULL;
        tv *rows = blank(p, &x->batch, 2, seen->n, x->n);
        memcpy(rows->v, x->v + at * x->n, (size_t)(seen->n * x->n) * sizeof *x->v);
        const tv *one = matmul(p, seen, rows);
        if (!one) return NULL;
        memcpy(y->v + row * x->n, one->v, (size_t)(one->m * x->n) * sizeof *one->v);
        at += seen->n;
        row += seen->m;
    }
    return y;
}

static const tv *composed(ip *p, const lop_node *node, const char *s) {
    if (!strcmp(s, "checked") && node->attr.i[0]) /* by A v alone; else by A^H A v */
        return ip_eval(p, node->child[node->n - 1]);
    /* the fast branch; of a wrong bound something else, that it does not go unseen */
    if (!strcmp(s, "checked") || !strcmp(s, "checked_det") || !strcmp(s, "checked_value")) {
        const int q = strcmp(s, "checked") ? 4 : 3;
        const lop_node *next = node->child[node->n - 1]; /* the same by a better bound */
        if (q == 4 && next->op == node->op && next->child[0] == node->child[0])
            return ip_eval(p, next);
        return ip_eval(p, node->child[bounds_norm(p, node->child[q]) ? 0 : 1]);
    }
    if (!strcmp(s, "checked_difference") || !strncmp(s, "checked_update", 14) ||
        !strcmp(s, "checked_quotient_det") || !strcmp(s, "checked_share") ||
        !strcmp(s, "checked_beside") || !strcmp(s, "checked_parallel"))
        return ip_eval(p, node->child[0]);
    /* eigenvectors are not known here: the second */
    if (!strcmp(s, "spectral") || !strcmp(s, "where_runs"))
        return ip_eval(p, node->child[node->n - 1]);
    if (!strncmp(s, "schur_", 6)) return by_schur(p, node, s);
    if (!strcmp(s, "normal_equations_solve")) {
        const tv *a = ip_eval(p, node->child[0]), *b = ip_eval(p, node->child[1]);
        return a && b ? solve(p, a, b) : NULL;
    }
    if (!strcmp(s, "grid_solve")) {
        const tv *a = ip_eval(p, node->child[0]), *b = ip_eval(p, node->child[1]);
        return a && b ? ip_solve(p, a, LOP_N, b) : NULL;
    }
    if (!strcmp(s, "sparse_solve")) {
        const tv *a = ip_eval(p, node->child[0]), *b = ip_eval(p, node->child[1]);
        return a && b ? ip_solve(p, a, (lop_mode)node->attr.i[0], b) : NULL;
    }
    if (!strcmp(s, "toeplitz_solve") || !strcmp(s, "toeplitz_det") ||
        strstr(s, "toeplitz_inverse") || strstr(s, "sparse") ||
        !strcmp(s, "quasiseparable_solve") || !strcmp(s, "quasiseparable_det") ||
        !strcmp(s, "quasiinvdiag") || !strcmp(s, "block_tridiagonal_solve") ||
        !strcmp(s, "block_det") || strstr(s, "blockinv") || strstr(s, "invdiag") ||
        !strcmp(s, "bandbetween") || !strcmp(s, "bandinvband"))
        return ip_eval(p, node->child[node->n - 1]); /* the second: by definition */
    if (!strcmp(s, "first_unit")) {
        lop_shape batch = node->shape;
        batch.ndim--;
        tv *t = blank(p, &batch, 1, lop_cols(node), 1);
        for (int64_t e = 0; t->m > 0 && e < t->nb; e++) t->v[e * t->m] = one();
        return t;
    }
    if (!strcmp(s, "congruence") || !strcmp(s, "root") || !strcmp(s, "eigen"))
        return sandwich(p, node);
    if (!strcmp(s, "elementwise")) return pair_of(p, node, false);
    if (!strcmp(s, "khatri_rao_array") || !strcmp(s, "khatrirao")) return pair_of(p, node, true);
    if (!strcmp(s, "rowmix")) {
        const tv *w = ip_eval(p, node->child[0]), *g = ip_eval(p, node->child[1]);
        return w && g ? zip(p, node, w, g, 2, w->m, node->attr.i[0], do_rowmix) : NULL;
    }
    if (!strcmp(s, "joint_det")) return detall(p, node);
    if (!strcmp(s, "gemm_triangle")) {
        const lop_node adjoint = {.attr = {.i = {LOP_H, 0, 0, 0}}};
        const tv *r = ip_eval(p, node->child[0]), *t = ip_eval(p, node->child[1]);
        const tv *rh = r ? zip(p, &adjoint, r, NULL, 2, r->n, r->m, do_mode) : NULL;
        return rh && t ? matmul(p, rh, t) : NULL;
    }
    if (!strcmp(s, "weighted_gram")) return weighted_gram(p, node, 1);
    if (!strcmp(s, "scaled_gram")) return weighted_gram(p, node, 0);
    if (!strcmp(s, "top_square")) {
        const tv *a = ip_eval(p, node->child[0]);
        return a ? zip(p, node, a, NULL, 2, a->n, a->n, do_top) : NULL;
    }
    if (!strcmp(s, "shift")) {
        const tv *a = ip_eval(p, node->child[0]);
        return a ? zip(p, node, a, NULL, 2, a->m, a->n, do_shift) : NULL;
    }
    if (!strcmp(s, "cholesky_batch")) return pile(p, node);
    if (!strcmp(s, "block_products")) return products_below(p, node);
    if (!strcmp(s, "kronsum")) return kronsum(p, node);
    if (!strcmp(s, "lowrankupdate")) return update(p, node);
    if (!strcmp(s, "blockdiag") || !strcmp(s, "blocks")) return pasted(p, node, 0);
    return pasted(p, node, node->attr.i[1]);
}
