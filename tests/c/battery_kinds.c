/* battery_kinds.c [seed [share [kind]]]: every kind with a `random` slot against the dense
 * interpreter: products in the four modes with 0, 1 and 3 columns, the adjoint identity, views of
 * views, dense form, diagonals, trace, elements, claimed properties; sizes 0 to 33, four BLAS
 * dtypes, i64, i8, u8, b8; all memory layouts. A kind joins by its line in kinds.def. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lop_dtype dtypes[] = {LOP_f64, LOP_c128, LOP_f32, LOP_c64,
                                   LOP_i64, LOP_i8,   LOP_u8,  LOP_b8};
static const int64_t sizes[] = {0, 1, 2, 5, 8, 33};
enum { NDTYPES = 8, NSIZES = 6 };
static const double FACTOR = 40; /* of u |A| |B|: sums of 33 terms, with room */

static world w;
static int layouts; /* the memory layout goes round */

static int next_layout(void) { return layouts++ % LAYOUTS; }

/* Owned view of `a`, or `a` again. */
static const lop_node *seen(const lop_node *a, int mode) {
    lop_attr m = t_ints(mode, 0, 0, 0);
    return mode ? t_one(&w, "view", &m, a) : lop_node_ref(a);
}

static void products(const lop_node *a, lop_dtype dt, const char *who) {
    static const int64_t columns[] = {0, 1, 3};
    for (int mode = 0; mode < 4; mode++) {
        const lop_node *v = seen(a, mode);
        if (!t_check(v != NULL, "%s: view: %s", who, w.err.text)) continue;
        for (int i = 0; i < 3; i++) {
            const lop_node *x = t_array(&w, dt, 2, 2, (int64_t[]){lop_cols(v), columns[i]});
            const lop_node *y = t_two_of(&w, "apply", lop_node_ref(v), x);
            t_agrees(&w, y, next_layout(), FACTOR, who);
            lop_node_unref(y);
        }
        lop_node_unref(v);
    }
}

static double _Complex dot(const placed *a, const placed *b) {
    double _Complex s = 0;
    for (int64_t i = 0; i < a->buf.shape.dim[0]; i++) {
        val x = val_load(a->buf.dt, a->buf.p, i), y = val_load(b->buf.dt, b->buf.p, i);
        s += (double _Complex)((x.re - x.im * I) * (y.re + y.im * I));
    }
    return s;
}

/* <u, A x> = <A^H u, x> without the interpreter. */
static void adjoint(const lop_node *a, lop_dtype dt, const char *who) {
    const lop_node *x = t_array(&w, dt, 2, 2, (int64_t[]){lop_cols(a), 1});
    const lop_node *u = t_array(&w, dt, 2, 2, (int64_t[]){lop_rows(a), 1});
    const lop_buf *bx = lop_rand_find(&w.rand, x->serial), *bu = lop_rand_find(&w.rand, u->serial);
    const lop_node *ah = seen(a, 3), *y = t_two(&w, "apply", a, x), *v = t_two(&w, "apply", ah, u);
    placed ay, au, px = {.buf = *bx}, pu = {.buf = *bu};
    if (t_check(y && v, "%s: %s", who, w.err.text)) {
        lop_status st = t_run(&w, y, 0, &ay), st2 = t_run(&w, v, 0, &au);
        if (t_check(st == LOP_OK && st2 == LOP_OK, "%s: %s", who, w.err.text)) {
            double _Complex left = dot(&pu, &ay), right = dot(&au, &px);
            double size = sqrt(creal(dot(&pu, &pu)) * creal(dot(&ay, &ay)));
            double tol = (dt == LOP_f32 || dt == LOP_c64 ? 1e-4 : 1e-12) *
                         (double)(lop_rows(a) * lop_cols(a) + 1) * (size > 1 ? size : 1);
            t_check(cabs(left - right) <= tol, "%s: <u, A x> = %g%+gi, <A^H u, x> = %g%+gi", who,
                    creal(left), cimag(left), creal(right), cimag(right));
        }
        placed_free(&ay);
        placed_free(&au);
    }
    lop_node_unref(x);
    lop_node_unref(u);
    lop_node_unref(ah);
    lop_node_unref(y);
    lop_node_unref(v);
}

static void values(const lop_node *a, const char *who) {
    int64_t m = lop_rows(a), n = lop_cols(a),
            offsets[] = {0, 1, -1, n - 1, 1 - m, n, -m, n + 3, -m - 3};
    lop_attr none = t_ints(0, 0, 0, 0);
    for (int mode = 0; mode < 4; mode++) {
        const lop_node *v = seen(a, mode), *y = t_one(&w, "todense", &none, v);
        t_agrees(&w, y, next_layout(), FACTOR, who);
        lop_node_unref(y);
        y = t_one(&w, "trace", &none, v);
        t_agrees(&w, y, next_layout(), FACTOR, who);
        lop_node_unref(y);
        if (m == n && n <= 5) { /* factored in the operator's dtype, given in double */
            double single = a->dtype == LOP_f32 || a->dtype == LOP_c64 ? 0x1p29 : 1;
            y = t_one(&w, "scaledet", &none, v);
            t_agrees(&w, y, next_layout(), FACTOR * single, who);
            lop_node_unref(y);
        }
        for (int i = 0; i < 9; i++) {
            lop_attr k = t_ints(offsets[i], 0, 0, 0);
            y = t_one(&w, "diagonal", &k, v);
            t_agrees(&w, y, next_layout(), FACTOR, who);
            lop_node_unref(y);
        }
        for (int i = 0; i < 4 && lop_rows(v) && lop_cols(v); i++) {
            lop_attr at =
                t_ints(world_pick(&w, 0, lop_rows(v)), world_pick(&w, 0, lop_cols(v)), 0, 0);
            if (i == 0) at.i[0] = at.i[1] = 0;
            if (i == 1) at = t_ints(lop_rows(v) - 1, lop_cols(v) - 1, 0, 0);
            y = t_one(&w, "element", &at, v);
            t_agrees(&w, y, next_layout(), FACTOR, who);
            lop_node_unref(y);
        }
        lop_node_unref(v);
    }
}

static void twice(const lop_node *a, lop_dtype dt, const char *who) {
    for (int pair = 0; pair < 9; pair++) {
        const lop_node *v = seen(a, 1 + pair / 3), *vv = v ? seen(v, 1 + pair % 3) : NULL;
        const lop_node *x = t_array(&w, dt, 2, 2, (int64_t[]){vv ? lop_cols(vv) : 0, 2});
        const lop_node *y = vv ? t_two(&w, "apply", vv, x) : NULL;
        t_agrees(&w, y, next_layout(), FACTOR, who);
        lop_node_unref(x);
        lop_node_unref(y);
        lop_node_unref(vv);
        lop_node_unref(v);
    }
}

/* -- properties */

static long double off(val a, val b) { return hypotl(a.re - b.re, a.im - b.im); }

/* Does the dense form have the property? Positive definiteness is left to assumptions. */
static bool holds(const tv *t, lop_trait trait) {
    bool square = t->m == t->n;
    val zero = {0}, one = {1, 1, 0, 1};
    if (!square && trait != LOP_ZERO && trait != LOP_REAL) return false;
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++) {
            val v = tv_at(t, 0, i, j), f = square ? tv_at(t, 0, j, i) : v, h = f;
            h.im = -h.im;
            if (trait == LOP_SYMMETRIC && off(v, f) > 1e-12L) return false;
            if (trait == LOP_HERMITIAN && off(v, h) > 1e-12L) return false;
            if (trait == LOP_DIAGONAL && i != j && off(v, zero) > 0) return false;
            if (trait == LOP_REAL && fabsl(v.im) > 0) return false;
            if (trait == LOP_ZERO && off(v, zero) > 0) return false;
            if (trait == LOP_IDENTITY && off(v, i == j ? one : zero) > 0) return false;
            if (trait != LOP_ORTHOGONAL) continue;
            val s = {0};
            for (int64_t k = 0; k < t->m; k++) {
                val a = tv_at(t, 0, k, i), b = tv_at(t, 0, k, j);
                s.re += a.re * b.re + a.im * b.im;
                s.im += a.re * b.im - a.im * b.re;
            }
            if (off(s, i == j ? one : zero) > 1e-9L) return false;
        }
    return true;
}

static void traits(const lop_node *a, const char *who) {
    ip p;
    ip_open(&p, &w.rand, a->dtype, false);
    const tv *t = ip_eval(&p, a);
    for (int trait = LOP_SYMMETRIC; t && trait <= LOP_IDENTITY; trait++) {
        if (trait == LOP_POSITIVE) continue;
        lop_truth said = lop_node_trait(a, (lop_trait)trait);
        if (said == LOP_UNKNOWN) continue;
        t_check(holds(t, (lop_trait)trait) == (said == LOP_TRUE),
                "%s: %lld x %lld claims property %d: %d", who, (long long)t->m, (long long)t->n,
                trait, said);
    }
    ip_close(&p);
}

/* -- the battery */

static void instance(const lop_op *op, int64_t m, int64_t n, lop_dtype dt) {
    const lop_node *a = NULL;
    lop_status st = op->random(&w.rand, m, n, dt, &a);
    if (st == LOP_UNABLE) return;
    if (!t_check(st == LOP_OK, "%s: %s", op->name, w.err.text)) return;
    if (!t_check(lop_rows(a) == m && lop_cols(a) == n, "%s has a wrong shape", op->name)) return;
    products(a, dt, op->name);
    if (lop_is_blas(dt)) adjoint(a, dt, op->name);
    values(a, op->name);
    world_leaves(&w);
    lop_node_unref(a);
    if (op->random(&w.rand, m, n, dt, &a) != LOP_OK) return;
    twice(a, dt, op->name);
    traits(a, op->name);
    lop_node_unref(a);
    world_leaves(&w);
}

/* Another dtype on the right than the kind's: the leaves are cast, not the result. */
static void mixed(const lop_op *op) {
    for (int i = 0; i < NDTYPES; i++)
        for (int j = 0; j < NDTYPES; j++) {
            if (!lop_is_blas(dtypes[i]) && !lop_is_blas(dtypes[j]))
                continue; /* wrapping differs on the way */
            const lop_node *a = NULL;
            if (op->random(&w.rand, 6, 6, dtypes[i], &a) != LOP_OK) continue;
            const lop_node *y =
                t_two_of(&w, "apply", a, t_array(&w, dtypes[j], 2, 2, (int64_t[]){6, 2}));
            t_check(
                y && (op->id == LOP_ID_identity || y->dtype == lop_promote(dtypes[i], dtypes[j])),
                "%s: dtype", op->name);
            t_agrees(&w, y, next_layout(), FACTOR, op->name);
            lop_node_unref(y);
            world_leaves(&w);
        }
}

/* `only`: the name of a kind; NULL for all. */
static void all_kinds(const char *only) {
    for (int id = 0; id < lop_nops(); id++) {
        const lop_op *op = lop_op_at(id);
        if (!op->random || (only && strcmp(only, op->name) != 0)) continue;
        for (int d = 0; d < NDTYPES; d++)
            for (int i = 0; i < NSIZES; i++)
                for (int j = 0; j < NSIZES; j++) instance(op, sizes[i], sizes[j], dtypes[d]);
        mixed(op);
        t_group(op->name);
    }
}

/* -- composites of every pair of kinds */

static const lop_node *kind(const lop_op *op, int64_t m, int64_t n, lop_dtype dt) {
    const lop_node *a = NULL;
    lop_status st = op->random(&w.rand, m, n, dt, &a);
    if (st == LOP_UNABLE) st = t_op("dense")->random(&w.rand, m, n, dt, &a);
    return st == LOP_OK ? a : NULL;
}

/* A + 9 I: safely regular. */
static const lop_node *regular(const lop_op *op, int64_t n, lop_dtype dt) {
    lop_attr nine = lop_attr_coef(9, 0);
    const lop_node *eye = NULL;
    if (t_op("identity")->random(&w.rand, n, n, dt, &eye) != LOP_OK) return NULL;
    return t_two_of(&w, "sum", kind(op, n, n, dt), t_one_of(&w, "scaled", &nine, eye));
}

enum { COMPOSITES = 15 };
static const lop_node *composite(int which, const lop_op *p, const lop_op *q, lop_dtype dt) {
    lop_attr weak_int = lop_attr_coef(3, 0), turn = lop_attr_coef(0.5, -2),
             strong = lop_attr_coef(1.5, 0), view = t_ints(3, 0, 0, 0);
    lop_attr cube = t_ints(3, 0, 0, 0), other = t_ints(1 + which % 3, 0, 0, 0);
    const lop_node *f[3];
    weak_int.i[1] = LOP_WEAK_INT;
    strong.i[1] = LOP_STRONG;
    strong.i[2] = dt;
    switch (which) {
    case 0: return t_two_of(&w, "sum", kind(p, 3, 5, dt), kind(q, 3, 5, dt));
    case 1: return t_two_of(&w, "prod", kind(p, 3, 5, dt), kind(q, 5, 2, dt));
    case 2: return t_one_of(&w, "scaled", &weak_int, kind(p, 4, 4, dt));
    case 3: return t_one_of(&w, "scaled", &turn, kind(p, 3, 5, dt));
    case 4: return t_one_of(&w, "scaled", &strong, kind(p, 4, 4, dt));
    case 5: return t_one_of(&w, "power", &cube, kind(p, 4, 4, dt));
    case 6: return t_one_of(&w, "inverse", NULL, regular(p, 4, dt));
    case 7: return t_two_of(&w, "kron", kind(p, 2, 3, dt), kind(q, 3, 3, dt));
    case 8: return t_two_of(&w, "lowrank", kind(p, 5, 2, dt), kind(q, 4, 2, dt));
    case 9:
        return t_one_of(&w, "view", &view,
                        t_one_of(&w, "view", &other,
                                 t_two_of(&w, "prod", kind(p, 3, 4, dt), kind(q, 4, 4, dt))));
    case 10:
        return t_one_of(&w, "inverse", NULL,
                        t_two_of(&w, "kron", regular(p, 2, dt), regular(q, 3, dt)));
    case 11:
        return t_two_of(&w, "prod", t_two_of(&w, "sum", kind(p, 4, 4, dt), kind(q, 4, 4, dt)),
                        kind(p, 4, 3, dt));
    case 12:
        return t_one_of(&w, "inverse", NULL,
                        t_two_of(&w, "prod", regular(p, 3, dt), regular(q, 3, dt)));
    case 13: f[0] = kind(p, 4, 2, dt), f[1] = kind(q, 5, 3, dt), f[2] = kind(p, 2, 3, dt); break;
    default: f[0] = kind(p, 2, 1, dt), f[1] = kind(q, 3, 3, dt), f[2] = kind(p, 1, 4, dt); break;
    }
    const lop_node *out = t_node(&w, which == 13 ? "lowrank" : "kron", NULL, 3, f);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return out;
}

/* Every pair meets, in one of `share` of the composites; `make sweep` asks for all of them. */
static void composites(int share) {
    for (int i = 0; i < lop_nops(); i++)
        for (int j = 0; j < lop_nops(); j++) {
            const lop_op *p = lop_op_at(i), *q = lop_op_at(j);
            if (!p->random || !q->random) continue;
            for (int which = 0; which < COMPOSITES; which++) {
                if ((i + 2 * j + which) % share) continue;
                lop_dtype dt = dtypes[(i + j + which) % 4];
                const lop_node *a = composite(which, p, q, dt);
                char who[80];
                snprintf(who, sizeof who, "%s, %s: composite %d", p->name, q->name, which);
                if (!t_check(a != NULL, "%s: %s", who, w.err.text)) continue;
                products(a, dt, who);
                values(a, who);
                lop_node_unref(a);
                world_leaves(&w);
            }
        }
    t_group("composites of pairs");
}

/* Large enough for the FFT, in the four modes, and the same without it. */
static void large_toeplitz(void) {
    static const int64_t shapes[][2] = {{700, 700}, {2000, 300}, {300, 2000}};
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 4; d++)
            for (int e = 0; e < 4; e++)
                for (int mode = 0; mode < 4; mode++) {
                    const lop_node *a = NULL;
                    if (s && (d != e || mode == 2)) continue;
                    if (!t_check(t_op("toeplitz")
                                         ->random(&w.rand, shapes[s][0], shapes[s][1], dtypes[d],
                                                  &a) == LOP_OK,
                                 "memory"))
                        return;
                    const lop_node *v = seen(a, mode),
                                   *x = t_array(&w, dtypes[e], 2, 2, (int64_t[]){lop_cols(v), 2});
                    const lop_node *y = t_two_of(&w, "apply", v, x);
                    t_agrees(&w, y, next_layout(), 60, "large toeplitz");
                    w.options.fft = false;
                    if (mode == 3)
                        t_agrees(&w, y, next_layout(), 2000, "large toeplitz without fft");
                    w.options.fft = true;
                    lop_node_unref(y);
                    lop_node_unref(a);
                    world_leaves(&w);
                }
    t_group("large toeplitz");
}

int main(int argc, char **argv) {
    const char *only = argc > 3 ? argv[3] : NULL;
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 20261121));
    all_kinds(only);
    if (!only) composites((int)t_number(argc, argv, 2, 13));
    if (!only) large_toeplitz();
    world_close(&w, "battery_kinds");
    t_group("memory");
    return t_end();
}
