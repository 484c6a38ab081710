/* interp_more.h: the part of interp.c with foldings and what Kron needs; included there alone. */
static void do_repeat(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    (void)b;
    for (int64_t i = 0; i < y.m; i++) y.v[i] = a.v[0];
}

static void do_gather(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    const int64_t *t = node->attr.i;
    bool back = !strcmp(node->op->name, "spread");
    for (int64_t l = 0; l < t[0]; l++)
        for (int64_t i = 0; i < t[1]; i++)
            for (int64_t r = 0; r < t[2]; r++)
                for (int64_t j = 0; j < t[3]; j++) {
                    int64_t tall = ((l * t[1] + i) * t[2] + r) * t[3] + j;
                    int64_t wide = i * t[0] * t[2] * t[3] + (l * t[2] + r) * t[3] + j;
                    y.v[back ? tall : wide] = a.v[back ? wide : tall];
                }
}

static const tv *refold(ip *p, const lop_node *node, const tv *a) {
    const int64_t *t = node->attr.i;
    int64_t L = t[0], n = t[1], R = t[2], k = t[3];
    bool wide = !strcmp(node->op->name, "kron_unfold") || !strcmp(node->op->name, "gather");
    bool copy = !strcmp(node->op->name, "gather") || !strcmp(node->op->name, "spread");
    if (copy)
        return zip(p, node, a, NULL, 2, wide ? n : L * n * R, wide ? L * R * k : k, do_gather);
    lop_shape batch = a->batch;
    if (wide && L != 1) batch.dim[batch.ndim++] = L;
    if (!wide && L != 1) batch.ndim--;
    tv *y = blank(p, &batch, 2, wide ? n : L * n * R, wide ? R * k : k);
    if (y->nb * y->m * y->n != a->nb * a->m * a->n) return fail(p, "a fold does not fit");
    memcpy(y->v, a->v, (size_t)(y->nb * y->m * y->n) * sizeof *y->v);
    return y;
}

/* Diagonal k of A (x) B from four diagonals: row a n + b, A's d-th with B's r-th, and the next. */
static const tv *weave(ip *p, const lop_node *node) {
    const tv *v[4];
    lop_shape batch = {0};
    for (int i = 0; i < 4; i++) {
        lop_shape both;
        v[i] = ip_eval(p, node->child[i]);
        if (!v[i]) return NULL;
        if (!broadcast(&batch, &v[i]->batch, &both)) return fail(p, "kron_diag_scatter");
        batch = both;
    }
    int64_t k = node->attr.i[0], n = node->attr.i[1], d = 0, row0 = k < 0 ? -k : 0;
    while (d * n > k) d--;
    while ((d + 1) * n <= k) d++;
    tv *y = blank(p, &batch, 1, node->attr.i[2], 1);
    for (int64_t e = 0; e < y->nb; e++)
        for (int64_t x = 0; x < y->m; x++) {
            int64_t a = (row0 + x) / n, b = (row0 + x) % n, c = b + k - d * n; /* B's column */
            int which = c < n ? 0 : 2;
            int64_t first = d + (which ? 1 : 0), col = which ? c - n : c;
            mv of_a = part(v[which], &batch, e), of_b = part(v[which + 1], &batch, e);
            val s = of_a.v[first < 0 ? a + first : a], t = of_b.v[b < col ? b : col];
            y->v[e * y->m + x] = mul(p, s, t);
        }
    return y;
}
static void do_comb(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    int64_t k = node->attr.i[0], s = node->attr.i[1], t = node->attr.i[2];
    for (int64_t x = 0; x < y.m; x++) {
        int64_t i = (x + (k < 0 ? -k : 0)) / s, j = (x + (k > 0 ? k : 0)) / t;
        y.v[x] = a.v[i % a.m * a.n + j % a.n];
    }
}

static const tv *sparse(ip *p, const lop_node *node) {
    const tv *data = ip_eval(p, node->child[0]), *i1 = ip_eval(p, node->child[1]),
             *i2 = ip_eval(p, node->child[2]);
    if (!data || !i1 || !i2) return NULL;
    lop_shape none = {0};
    int64_t format = node->attr.i[0], m = node->attr.i[1], n = node->attr.i[2], major = 0;
    tv *t = blank(p, &none, 2, m, n);
    for (int64_t at = 0; at < data->m; at++) {
        int64_t i = (int64_t)i1->v[at].i, j = i;
        if (format == 2) {
            j = (int64_t)i2->v[at].i;
        } else {
            while (major + 1 < i2->m && (int64_t)i2->v[major + 1].i <= at) major++;
            if (format == 0)
                i = major;
            else
                j = major;
            if (major + 1 >= i2->m) break; /* beyond indptr's last */
        }
        if (i < 0 || i >= m || j < 0 || j >= n) return fail(p, "a sparse index out of bounds");
        t->v[i * n + j] = add(p, t->v[i * n + j], data->v[at]);
    }
    return t;
}

static const tv *halfsolve(ip *p, const lop_node *node, const tv *a, const tv *b) {
    const lop_node adjoint = {.attr = {.i = {LOP_H, 0, 0, 0}}};
    const tv *x = solve(p, a, b), *bh = zip(p, &adjoint, b, NULL, 2, b->n, b->m, do_mode);
    x = x && bh ? matmul(p, bh, x) : NULL;
    return x && node->attr.i[1] ? diagonal(p, &(lop_node){0}, x) : x;
}

/* All elements of the children, row by row, in one column. */
static const tv *in_a_row(ip *p, const lop_node *node) {
    const lop_shape none = {0};
    tv *y = blank(p, &none, 2, lop_rows(node), 1);
    int64_t at = 0;
    for (int i = 0; i < node->n; i++) {
        const tv *a = ip_eval(p, node->child[i]);
        if (!a) return NULL;
        memcpy(y->v + at, a->v, (size_t)(a->m * a->n) * sizeof *a->v);
        at += a->m * a->n;
    }
    return y;
}

static bool in_bytes(const lop_node *node) {
    return node->op == &lop_op_results || node->op == &lop_op_results_array;
}

static bool of_bytes(const lop_node *node) {
    return in_bytes(node) || (node->n > 0 && in_bytes(node->child[0]));
}

/* Writes an array's elements from byte `at` on, each at its first byte. */
static bool in_place(ip *p, const lop_node *a, tv *y, int64_t *at) {
    const tv *t = ip_eval(p, a);
    const int64_t size = (int64_t)lop_dtype_size(a->dtype);
    for (int64_t k = 0; t && k < t->nb * t->m * t->n; k++, *at += size) y->v[*at] = t->v[k];
    return t != NULL;
}

/* The results of a program: a column of bytes. */
static const tv *results(ip *p, const lop_node *node) {
    const lop_shape none = {0};
    tv *y = blank(p, &none, 2, lop_rows(node), 1);
    int64_t at = 0;
    bool all = true;
    if (node->op == &lop_op_results_array)
        for (int i = 0; all && i < node->n; i++) all = in_place(p, node->child[i], y, &at);
    else
        for (const lop_node *a = node, *asked; all && a; a = lop_results_before(a)) {
            const lop_node *before = lop_results_before(a);
            const bool inside = p->inside;
            at = before ? lop_rows(before) : 0;
            if (lop_results_asked(a, &asked, NULL) != LOP_OK) return fail(p, "results");
            p->inside = false; /* actions in dtypes of their own */
            all = in_place(p, asked, y, &at);
            p->inside = inside;
            lop_node_unref(asked);
        }
    return all ? y : NULL;
}

/* The upper triangle, mirrored (attr.i[0]: conjugated). */
static void do_mirror(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            val v = i <= j ? a.v[i * y.n + j] : a.v[j * y.n + i];
            if (i > j && node->attr.i[0]) v.im = -v.im;
            y.v[i * y.n + j] = v;
        }
}
