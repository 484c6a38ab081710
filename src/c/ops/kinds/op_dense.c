/* op_dense.c: a matrix held as an array.
 *
 * y = A x by BLAS (gemm, gemv), own loops below the measured size and for integers.
 * Storage: the user's array, borrowed, any strides. Cost: 2 m n k flops, m n elements read.
 * attr.i[0]: the user's assumption (LOP_ASSUME_*); LOP_ASSUME_TRIED: it is symmetric, both halves
 * being there (py_lazy_symmetric.c), so that nothing is tested. */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->op->cls == LOP_OPERATOR || a->core != 2)
        return lop_fail(err, LOP_DIM, "dense takes a matrix");
    n->shape = a->shape;
    n->dtype = a->dtype;
    n->declared |= lop_is_declared_kind(n) || (lop_is_declared_half(n) && a->op != &lop_op_named);
    if (n->attr.i[0] && !lop_is_square(n)) {
        char t[128];
        return lop_fail(err, LOP_DIM, "assume_a needs a square matrix, got shape %s",
                        lop_shape_text(&n->shape, t, sizeof t));
    }
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    int64_t a = n->attr.i[0];
    bool real = !lop_is_complex(n->dtype),
         adjoint = a == LOP_ASSUME_HERMITIAN || a == LOP_ASSUME_POSITIVE,
         symmetric = a == LOP_ASSUME_SYMMETRIC || a == LOP_ASSUME_TRIED;
    if (a == LOP_ASSUME_DIAGONAL)
        return t == LOP_DIAGONAL || t == LOP_SYMMETRIC || (t == LOP_HERMITIAN && real)
                   ? LOP_TRUE
                   : LOP_UNKNOWN;
    if (t == LOP_ORTHOGONAL) return a == LOP_ASSUME_ORTHOGONAL ? LOP_TRUE : LOP_UNKNOWN;
    if (t == LOP_POSITIVE) return a == LOP_ASSUME_POSITIVE ? LOP_TRUE : LOP_UNKNOWN;
    if (t == LOP_HERMITIAN) return adjoint || (symmetric && real) ? LOP_TRUE : LOP_UNKNOWN;
    if (t == LOP_SYMMETRIC) return symmetric || (adjoint && real) ? LOP_TRUE : LOP_UNKNOWN;
    return LOP_UNKNOWN;
}

/* BLAS makes rows of few numbers as columns of few, and packs the long operand for them. Where the
 * columns of the result lie together it takes, with the turning, of the time otherwise: 1000 rows
 * and terms, 48 to 200 columns 0.77 to 0.86, 2000 and 200 0.76, 4000 rows, 500 terms 0.8; 500 rows,
 * 250 columns 1.13 (OpenBLAS 0.3.31, AVX-512, 2026-11-28). On one thread alone: two take 0.8 to 1,
 * but wait for each other at more places, beside other work four times as long. */
static bool turned_suits(int64_t m, int64_t n, int64_t terms, lop_dtype dt) {
    return (dt == LOP_f64 || dt == LOP_f32) && n >= 48 && n <= 256 && m >= 500 && m / 4 >= n &&
           terms >= 500;
}

static lop_status run_gemm(const lop_call *c) {
    lop_mat a = *c->a[2];
    int64_t mode = c->step->attr.i[0];
    const lop_mat *to = c->a[0];
    if (mode & LOP_T) a = (lop_mat){a.p, a.n, a.m, a.cs, a.rs, a.dt};
    if (c->more == 0 && to->cs == 1 && lopk_threads() == 1 &&
        turned_suits(to->m, to->n, a.n, to->dt) &&
        c->step->scratch >= (size_t)to->m * (size_t)to->n * lop_dtype_size(to->dt)) {
        const lop_mat t = {c->scratch, to->m, to->n, 1, to->m, to->dt};
        lopk_gemm(&t, &a, false, c->a[1], false);
        lopk_copy(to, &t);
        return LOP_OK;
    }
    if (lop_is_blas(a.dt) && c->more == 0)
        return lopk_gemm_parts(c->a[0], &a, (mode & LOP_C) != 0, c->a[1], false, c->team)
                   ? LOP_OK
                   : LOP_CALLBACK;
    if (lop_is_blas(a.dt) && c->z_step != 0) {
        lopk_gemm_each(c->a[0], c->y_step, &a, c->z_step, (mode & LOP_C) != 0, c->a[1], c->x_step,
                       c->more + 1);
        return LOP_OK;
    }
    if (lop_is_blas(a.dt)) {
        lopk_gemm_batch(c->a[0], c->y_step, &a, (mode & LOP_C) != 0, c->a[1], c->x_step,
                        c->more + 1);
        return LOP_OK;
    }
    lop_mat y = *c->a[0], x = *c->a[1];
    int64_t size = (int64_t)lop_dtype_size(a.dt);
    for (int64_t e = 0; e <= c->more; e++) {
        lopk_matmul_loop(&y, &a, false, &x, false);
        y.p = (char *)y.p + c->y_step * size;
        x.p = (char *)x.p + c->x_step * size;
        a.p = (char *)a.p + c->z_step * size;
    }
    return LOP_OK;
}

/* y += c A x by what is in the scratch, some rows at a time: of layouts that BLAS does not take. */
static void add_by_rows(const lop_call *c, const lop_mat *a, bool conj, double _Complex alpha) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt),
                  most = (int64_t)c->step->scratch / (y->n * size);
    for (int64_t i = 0; i < y->m; i += most) {
        const int64_t m = most < y->m - i ? most : y->m - i;
        const lop_mat t = {c->scratch, m, y->n, y->n, 1, y->dt},
                      to = {(char *)y->p + i * y->rs * size, m, y->n, y->rs, y->cs, y->dt},
                      of = {(char *)a->p + i * a->rs * size, m, a->n, a->rs, a->cs, a->dt};
        lopk_gemm(&t, &of, conj, c->a[1], false);
        lopk_scale(&t, alpha, 0, &t);
        lopk_add(&to, &to, &t);
    }
}

/* y += c A x, or y = z + c A x. */
static lop_status run_gemm_add(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_attr *attr = &c->step->attr;
    double _Complex alpha = attr->re + attr->im * I;
    lop_mat a = *c->a[2];
    bool conj = (attr->i[0] & LOP_C) != 0;
    if (attr->i[0] & LOP_T) a = (lop_mat){a.p, a.n, a.m, a.cs, a.rs, a.dt};
    if (c->step->n == 4) {
        lop_mat z = *c->a[3];
        if (attr->i[1]) z = (lop_mat){z.p, z.n, z.m, z.cs, z.rs, z.dt};
        if (a.n == 1 && lopk_rank_one(y, attr->re, &a, c->a[1], &z)) return LOP_OK;
        lopk_copy(y, &z);
    }
    if (attr->re == 1 && attr->im == 0) /* by our own loops as well */
        return lopk_gemm_parts(y, &a, conj, c->a[1], true, c->team) ? LOP_OK : LOP_CALLBACK;
    if (!lopk_gemm_add(y, alpha, &a, conj, c->a[1])) add_by_rows(c, &a, conj, alpha);
    return LOP_OK;
}

/* An assumed triangle: the other one is not read. attr.i[0] mode, attr.i[1] lower. */
static lop_status run_trmm(const lop_call *c) {
    static const char trans[4] = {'N', 'T', 'N', 'C'};
    const lop_mat *y = c->a[0];
    int64_t mode = c->step->attr.i[0];
    if (mode == LOP_C) /* conj(A) x = conj(A conj x) */
        lopk_conj(y, c->a[1]);
    else
        lopk_copy(y, c->a[1]);
    lop_status st = lopk_trmm(c->a[2], c->step->attr.i[1] != 0, false, trans[mode], y);
    if (st == LOP_OK && mode == LOP_C) lopk_conj(y, y);
    return st;
}

/* A product by the upper triangle of a matrix. attr.i[0] mode, i[1]: Hermitian, else symmetric. */
static lop_status run_half_gemm(const lop_call *c) {
    const int64_t mode = c->step->attr.i[0];
    const bool adjoint = c->step->attr.i[1] != 0,
               conj = adjoint ? mode == LOP_T || mode == LOP_C : (mode & LOP_C) != 0;
    lopk_symm(c->a[0], c->a[2], adjoint, conj, c->a[1], c->scratch);
    return LOP_OK;
}

static bool triangular(const lop_node *self) {
    return self->attr.i[0] == LOP_ASSUME_LOWER || self->attr.i[0] == LOP_ASSUME_UPPER;
}

static double flops(const lop_node *self, int64_t k) {
    return (triangular(self) ? 1.0 : 2.0) * (double)lop_rows(self) * (double)lop_cols(self) *
           (double)k;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t k, batch;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    /* One column reads less by the half even where the whole is there (600 rows 60 and 103 us,
     * Xeon, 2026-11-28); of many such, as under a Kron, each would read it anew. */
    const lop_node *half = batch > 1 || (k > 1 && lop_emit_knows(e, self->child[0]))
                               ? NULL
                               : lop_half_alone(self, k, lop_slot_dtype(e, out));
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, half ? half : self->child[0]),
                                  lop_slot_dtype(e, out), &st)};
    if (in[1] < 0) return st;
    if (half) {
        lop_step *s = lop_emit_step(e, k == 1 ? "symv" : "half-gemm", run_half_gemm, out, 2, in);
        if (!s) return LOP_NOMEM;
        s->attr.i[0] = mode;
        s->attr.i[1] = self->child[0]->attr.i[0];
        s->flags = LOP_STEP_GEMM;
        s->scratch = lopk_symm_scratch(lop_rows(self), k, self->dtype);
        s->flops = flops(self, k);
        return LOP_OK;
    }
    bool trmm = triangular(self) && lop_is_blas(lop_slot_dtype(e, out));
    lop_step *s = lop_emit_step(e, trmm ? "trmm" : "gemm", trmm ? run_trmm : run_gemm, out, 2, in);
    if (!s) return LOP_NOMEM;
    if (trmm) {
        s->attr.i[0] = mode;
        s->attr.i[1] = self->attr.i[0] == LOP_ASSUME_LOWER;
        s->flags = LOP_STEP_COLUMNS | LOP_STEP_GEMM;
        s->flops = flops(self, k) * (double)batch;
        return LOP_OK;
    }
    s->attr.i[0] = mode;
    if (lop_is_blas(lop_slot_dtype(e, out))) {
        s->adds = run_gemm_add;
        s->adds_name = "gemm-add";
    }
    const int64_t terms = mode & LOP_T ? lop_rows(self) : lop_cols(self),
                  rows = mode & LOP_T ? lop_cols(self) : lop_rows(self);
    if (batch == 1 && turned_suits(rows, k, terms, lop_slot_dtype(e, out)))
        s->scratch = (size_t)rows * (size_t)k * lop_dtype_size(lop_slot_dtype(e, out));
    s->flags = LOP_STEP_COLUMNS | LOP_STEP_BATCH | LOP_STEP_EACH | LOP_STEP_GEMM;
    s->flops = 2.0 * (double)lop_rows(self) * (double)lop_cols(self) * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    return lop_rand_dense(r, m, n, dt, out);
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    const int64_t a = self->attr.i[0];
    if (a == LOP_ASSUME_DIAGONAL || a == LOP_ASSUME_TRIDIAGONAL)
        return (lop_band){a == LOP_ASSUME_TRIDIAGONAL, a == LOP_ASSUME_TRIDIAGONAL};
    return (lop_band){a == LOP_ASSUME_UPPER ? 0 : INT64_MAX, a == LOP_ASSUME_LOWER ? 0 : INT64_MAX};
}

/* What an assumption leaves of the cotangent: its Hermitian part, its triangle, its diagonals. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    const int64_t word = self->attr.i[0];
    if (word == LOP_ASSUME_DIAGONAL)
        return lop_vjp_make(v, &lop_op_diag, NULL, lop_vjp_diagonal(v, g, 0), NULL);
    if (word == LOP_ASSUME_TRIDIAGONAL) {
        const lop_node *d[3];
        for (int i = 0; i < 3; i++) d[i] = lop_vjp_diagonal(v, g, i - 1);
        return lop_vjp_over(v, &lop_op_tridiagonal, NULL, 3, d);
    }
    if (word == LOP_ASSUME_LOWER || word == LOP_ASSUME_UPPER) {
        const lop_attr half = {.i = {word == LOP_ASSUME_LOWER, 0, 0, 0}};
        return lop_vjp_make(v, &lop_op_triangular, &half, lop_vjp_dense(v, g), NULL);
    }
    if (word == LOP_ASSUME_ORTHOGONAL)
        return lop_vjp_unable(v); /* what it moves along is not said */
    if (word != LOP_ASSUME_GENERAL && word != LOP_ASSUME_TRIED) {
        const lop_mode mode = word == LOP_ASSUME_SYMMETRIC ? LOP_T : LOP_H;
        g = lop_vjp_times(v, 0.5, 0, lop_vjp_sum(v, g, lop_vjp_view(v, g, mode)));
    }
    return lop_vjp_dense(v, g);
}

const lop_op lop_op_dense = {
    LOP_NAMED(dense),
    .flags = LOP_FLAG_entries | LOP_FLAG_held | LOP_FLAG_columns | LOP_FLAG_anew |
             LOP_FLAG_sliced_at_once | LOP_FLAG_linear,
    .title = "Dense",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 1,
    .param = {{"a", LOP_P_ARRAY, 2, NULL,
               "The matrix, shape (..., m, n). Borrowed: later writes to it are seen."},
              {"assume_a", LOP_P_ASSUME, 0, "None",
               "What is assumed of it, in scipy.linalg.solve's words: 'gen', 'sym', 'her', 'pos', "
               "'lower triangular', 'upper triangular', ... It says which part of the array is the "
               "matrix: of 'sym', 'her' and 'pos' the upper triangle, of a triangle that one, of "
               "'diagonal' and 'tridiagonal' these diagonals. No function reads the rest."}},
    .doc =
        {.brief = "A matrix held as an array.",
         .extended = "Use it to mix plain arrays with structured operators; ``@`` and ``+`` wrap "
                     "arrays by themselves.",
         .cost = "Build: O(1), no copy. Product with k columns: 2 m n k flops.",
         .notes = "BLAS gemm and gemv; own loops for small sizes and for integers.",
         .example =
             ">>> pl.Dense(np.array([[1., 2.], [3., 4.]])) @ np.array([1., 1.])\narray([3., 7.])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .flops = flops,
    .random = random_instance};
