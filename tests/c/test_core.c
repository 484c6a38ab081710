/* test_core.c: base, buf, node and text: statuses, checked sizes, NumPy 2's promotion table,
 * broadcasting, what a node refuses, releasing, properties, the reader's errors, round trips of
 * every coefficient. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static world w;

/* -- base */

/* Freed blocks are kept for the next of about their size, up to a bound. */
static void spares(void) {
    enum { K = 1 << 10, M = 1 << 20 };
    (void)lop_spares_free();
    t_check(!lop_spares_free() && lop_spares_bytes() == 0, "there are none");
    lop_block_free(NULL);
    lop_block_free(lop_block(60 * K));
    t_check(lop_spares_bytes() == 0, "small ones are not kept");
    void *a = lop_block(M), *b = lop_block(M), *other;
    t_check(a && b && a != b, "two blocks");
    lop_block_free(a);
    if (lop_spares_bytes() == 0) { /* a sanitizer watches, or another system */
        lop_block_free(b);
        return;
    }
    lop_block_free(b);
    t_check((other = lop_block(M)) == b, "the last one of its size comes first");
    lop_block_free(other);
    t_check((other = lop_block(M / 2)) != a && other != b, "a much larger one does not");
    lop_block_free(other);
    t_check((other = lop_block(M - M / 8)) == b, "a somewhat larger one does");
    t_check(lop_spares_bytes() >= M + M / 2 && lop_spares_bytes() < 2 * M,
            "what is left is counted");
    lop_block_free(other);
    lop_spares_bound(2 * M + M / 2);
    t_check(lop_spares_bytes() <= 2 * M + M / 2, "the bound holds at once");
    lop_block_free(lop_block(2 * M));
    t_check(lop_spares_bytes() < 2 * M, "more than half of it is not kept");
    void *many[140] = {NULL};
    lop_spares_bound((int64_t)256 * M);
    for (int i = 0; i < 140; i++) many[i] = lop_block((size_t)(100 + 8 * i) * K);
    for (int i = 0; i < 140; i++) lop_block_free(many[i]);
    const int64_t kept = lop_spares_bytes();
    lop_block_free(lop_block(9 * M)); /* of huge pages */
    t_check(kept > 128 * 100 * K && lop_spares_bytes() > 9 * M, "a full table takes the next");
    (void)lop_spares_free();
    lop_block_free(lop_block(4 * M + 64)); /* a result and its line: no page more */
    t_check(lop_spares_bytes() < 4 * M + 64 * K, "nothing is rounded up to a huge page");
    char *grown = lop_block_resize(lop_block(9 * M), 20 * M);
    t_check(grown != NULL, "one grows");
    if (grown) grown[20 * M - 1] = 1;
    lop_block_free(grown);
    lop_spares_bound(0);
    lop_block_free(lop_block(9 * M));
    t_check(lop_spares_bytes() == 0, "none where none may be");
    lop_spares_bound((int64_t)256 * M);
}

static void base(void) {
    static const lop_status all[] = {LOP_OK,    LOP_UNABLE,   LOP_NOMATCH,  LOP_DIM,     LOP_DTYPE,
                                     LOP_NOMEM, LOP_OVERFLOW, LOP_SINGULAR, LOP_DOMAIN,  LOP_INDEX,
                                     LOP_PARSE, LOP_LIMIT,    LOP_MISSING,  LOP_INTERNAL};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        t_check(lop_status_name(all[i])[0] != 0, "status %d has no name", all[i]);
        t_check((lop_status_exception(all[i]) == NULL) == (all[i] >= 0), "status %d: exception",
                all[i]);
    }
    lop_err err = {.status = LOP_OK};
    t_check(lop_fail(&err, LOP_DIM, "%d", 7) == LOP_DIM && err.status == LOP_DIM &&
                !strcmp(err.text, "7"),
            "lop_fail");
    t_check(lop_fail(&err, LOP_NOMEM, NULL) == LOP_NOMEM && !strcmp(err.text, "out of memory"),
            "lop_fail without text");
    t_check(lop_fail(NULL, LOP_DIM, "x") == LOP_DIM, "lop_fail without room");
    char longer[2 * LOP_ERR_TEXT];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    (void)lop_fail(&err, LOP_DIM, "%s", longer);
    t_check(strlen(err.text) == LOP_ERR_TEXT - 1, "a long text is cut");
    int64_t v;
    t_check(lop_mul_ok(3, 5, &v) && v == 15, "mul");
    t_check(!lop_mul_ok(INT64_MAX, 2, &v) && !lop_mul_ok(-1, 2, &v), "mul refuses");
    t_check(!lop_add_ok(INT64_MAX, 1, &v), "add refuses");
    static const lop_truth t[] = {LOP_FALSE, LOP_TRUE, LOP_UNKNOWN};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            lop_truth both = t[a] == LOP_FALSE || t[b] == LOP_FALSE ? LOP_FALSE
                             : a == 1 && b == 1                     ? LOP_TRUE
                                                                    : LOP_UNKNOWN;
            t_check(lop_and(t[a], t[b]) == both, "and");
            t_check(lop_or(t[a], t[b]) == lop_not(lop_and(lop_not(t[a]), lop_not(t[b]))), "or");
        }
    t_check(lop_calloc(&w.ctx, SIZE_MAX / 2, 3) == NULL, "calloc checks its product");
    void *p = lop_realloc(&w.ctx, NULL, 0);
    t_check(p != NULL, "zero bytes are a block");
    lop_free(&w.ctx, p);
    lop_free(&w.ctx, NULL);
    lop_rng a = {5}, b = {5};
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; i++) {
        double x = lop_rng_normal(&a);
        sum += x;
        squares += x * x;
        t_check(x == lop_rng_normal(&b) && fabs(x) < 4, "the generator repeats itself");
    }
    t_check(fabs(sum) < 500 && fabs(squares / 20000 - 1) < 0.05, "the generator's moments");
    t_group("base");
}

/* -- dtypes and shapes */

static const char letters[] = "bcCsSiIlLfdFD";
/* numpy.promote_types of NumPy 2.4, in dtype.def's order. */
static const char *const table[LOP_NDTYPE] = {
    "bcCsSiIlLfdFD", "ccssiilldfdFD", "CsCsSiIlLfdFD", "ssssiilldfdFD", "SiSiSiIlLfdFD",
    "iiiiiilldddDD", "IlIlIlIlLddDD", "lllllllldddDD", "LdLdLdLdLddDD", "fffffddddfdFD",
    "dddddddddddDD", "FFFFFDDDDFDFD", "DDDDDDDDDDDDD"};
/* A Python int, float, complex with each dtype. */
static const char weak_int[] = "lcCsSiIlLfdFD", weak_float[] = "dddddddddfdFD",
                  weak_complex[] = "DDDDDDDDDFDFD";

static void dtypes(void) {
    for (int i = 0; i < LOP_NDTYPE; i++) {
        lop_dtype a = (lop_dtype)i;
        for (int j = 0; j < LOP_NDTYPE; j++)
            t_check(letters[lop_promote(a, (lop_dtype)j)] == table[i][j], "promotion of %s and %s",
                    lop_dtype_name(a), lop_dtype_name((lop_dtype)j));
        t_check(letters[lop_promote_weak(LOP_WEAK, a)] == letters[i], "an adopting kind with %s",
                lop_dtype_name(a));
        t_check(letters[lop_promote_weak(LOP_WEAK_INT, a)] == weak_int[i], "int with %s",
                lop_dtype_name(a));
        t_check(letters[lop_promote_weak(LOP_WEAK_FLOAT, a)] == weak_float[i], "float with %s",
                lop_dtype_name(a));
        t_check(letters[lop_promote_weak(LOP_WEAK_COMPLEX, a)] == weak_complex[i],
                "complex with %s", lop_dtype_name(a));
        t_check(lop_dtype_parse(lop_dtype_name(a)) == a, "the name of %s", lop_dtype_name(a));
        t_check(lop_promote(a, LOP_NO_DTYPE) == LOP_NO_DTYPE &&
                    lop_promote(LOP_NO_DTYPE, a) == LOP_NO_DTYPE,
                "no dtype absorbs");
        for (int k = 0; k < 4; k++) { /* what is stored is what is read */
            double _Complex room[4] = {0}, v = k % 3;
            lop_set(a, room, k, v);
            t_check(creal(lop_get(a, room, k)) == (a == LOP_b8 ? creal(v) != 0 : creal(v)),
                    "set and get of %s", lop_dtype_name(a));
        }
    }
    t_check(lop_dtype_parse("float16") == LOP_NO_DTYPE && lop_dtype_size(LOP_NO_DTYPE) == 0,
            "no dtype");
    t_group("dtypes");
}

static lop_shape shape(int n, const int64_t *dim) { return lop_shape_of(n, dim); }
#define SHAPE(...)                                                                                 \
    shape((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void broadcasts(lop_shape a, lop_shape b, lop_shape want, bool fits) {
    lop_shape got;
    lop_err err;
    lop_status st = lop_shape_batch(&a, 2, &b, 2, &got, &err);
    t_check((st == LOP_OK) == fits, "broadcast: status %d", st);
    if (fits)
        t_check(lop_shape_equal(&got, &want), "broadcast of %d and %d dimensions", a.ndim, b.ndim);
}

static void shapes(void) {
    int64_t count;
    lop_err err;
    lop_shape big = SHAPE(INT64_MAX, 2), none = SHAPE(0, 5), s3 = SHAPE(2, 3, 4), scalar = {0};
    t_check(lop_shape_count(&big, &count, &err) == LOP_OVERFLOW, "an overflowing count");
    t_check(lop_shape_count(&none, &count, &err) == LOP_OK && count == 0, "an empty count");
    t_check(lop_shape_count(&s3, &count, &err) == LOP_OK && count == 24, "a count");
    t_check(lop_shape_count(&scalar, &count, &err) == LOP_OK && count == 1, "a number counts 1");
    broadcasts(SHAPE(2, 3, 9, 9), SHAPE(3, 8, 8), SHAPE(2, 3), true);
    broadcasts(SHAPE(2, 1, 9, 9), SHAPE(3, 8, 8), SHAPE(2, 3), true);
    broadcasts(SHAPE(9, 9), SHAPE(8, 8), (lop_shape){0}, true);
    broadcasts(SHAPE(0, 9, 9), SHAPE(1, 8, 8), SHAPE(0), true);
    broadcasts(SHAPE(0, 9, 9), SHAPE(2, 8, 8), SHAPE(0), false);
    broadcasts(SHAPE(2, 9, 9), SHAPE(3, 8, 8), SHAPE(0), false);
    char text[64], tiny[4];
    lop_shape s1 = SHAPE(7);
    t_check(!strcmp(lop_shape_text(&s3, text, sizeof text), "(2, 3, 4)"), "%s", text);
    t_check(!strcmp(lop_shape_text(&s1, text, sizeof text), "(7,)"), "%s", text);
    t_check(!strcmp(lop_shape_text(&scalar, text, sizeof text), "()"), "%s", text);
    t_check(strlen(lop_shape_text(&s3, tiny, sizeof tiny)) < sizeof tiny, "little room");
    for (int64_t m = 0; m < 5; m++)
        for (int64_t n = 0; n < 5; n++)
            for (int64_t k = -7; k < 8; k++) {
                int64_t want = 0;
                for (int64_t i = 0; i < m; i++) want += i + k >= 0 && i + k < n;
                t_check(lop_diag_length(m, n, k) == want, "diagonal %lld of %lld x %lld",
                        (long long)k, (long long)m, (long long)n);
            }
    t_check(lop_diag_length(3, 3, INT64_MIN) == 0 && lop_diag_length(3, 3, INT64_MAX) == 0,
            "a diagonal far away");
    t_group("shapes");
}

/* -- nodes */

static const lop_node *read(const char *text) {
    const lop_node *out = NULL;
    w.err.text[0] = 0;
    w.err.status = lop_read(&w.ctx, text, &out, &w.err);
    return out;
}

static void refuses(const char *text, lop_status want) {
    int64_t alive = w.ctx.live;
    const lop_node *out = read(text);
    t_check(!out && w.err.status == want && w.err.text[0], "%s: status %s (%s)", text,
            lop_status_name(w.err.status), w.err.text);
    lop_node_unref(out);
    t_check(w.ctx.live == alive, "%s leaves something behind", text);
}

#define A33 "(dense:0 (array:float64[3,3]#1))"
#define A23 "(dense:0 (array:float64[2,3]#2))"
#define V3 "(array:float64[3]#3/1)"

static void nodes(void) {
    refuses("(sum " A33 " " A23 ")", LOP_DIM);
    refuses("(prod " A23 " " A23 ")", LOP_DIM);
    refuses("(sum " A33 ")", LOP_DIM);
    refuses("(kron)", LOP_DIM);
    refuses("(power:2 " A23 ")", LOP_DIM);
    refuses("(power:-1 " A33 ")", LOP_DIM);
    refuses("(view:4 " A33 ")", LOP_DIM);
    refuses("(view:0 " A33 ")", LOP_DIM);
    refuses("(inverse " A23 ")", LOP_SINGULAR);
    refuses("(dense:3 (array:float64[2,3]#2))", LOP_DIM);
    refuses("(dense:0 " V3 ")", LOP_DIM);
    refuses("(dense:0 " A33 ")", LOP_DIM);
    refuses("(diag " A33 ")", LOP_DIM);
    refuses("(diag (array:float64[1,1,1,1,1,1,1,2]#1/1))", LOP_DIM);
    refuses("(diag (array:float64[3,3]#1))", LOP_DIM);
    refuses("(toeplitz " V3 " " A33 ")", LOP_DIM);
    refuses("(sum " A33 " (array:float64[3,3]#1))", LOP_DIM);
    refuses("(add " A33 " (array:float64[3,3]#1))", LOP_DIM);
    refuses("(scale:1,0,1,0,10 " A33 ")", LOP_DIM);
    refuses("(apply " A33 " " A33 ")", LOP_DIM);
    refuses("(apply (array:float64[3,3]#1) (array:float64[3,3]#1))", LOP_DIM);
    refuses("(apply " A33 " " V3 ")", LOP_DIM);
    refuses("(apply " A33 " (array:float64[2,2]#9))", LOP_DIM);
    refuses("(solve " A23 " (array:float64[2,2]#9))", LOP_SINGULAR);
    refuses("(element:3,0,0,0 " A33 ")", LOP_INDEX);
    refuses("(element:0,-1,0,0 " A33 ")", LOP_INDEX);
    refuses("(array_element:0,3 (array:float64[3,3]#1))", LOP_INDEX);
    refuses("(todense:0,0,0,10 (dense:0 (array:complex128[2,2]#2)))", LOP_DTYPE);
    refuses("(todense:0,0,0,99 " A33 ")", LOP_DTYPE);
    refuses("(cast:0,0,0,0 " V3 ")", LOP_DTYPE);
    refuses("(results:-1,0,0 " A33 ")", LOP_DOMAIN);
    refuses("(results:5,0,0 " A33 ")", LOP_DOMAIN);
    refuses("(results:0,0,0 " A33 " " A33 ")", LOP_DIM);
    refuses("(results:0,0,0 " V3 ")", LOP_DIM);
    refuses("(results:2,0,0 " A33 " (results:0,0,0 (dense:0 (array:float32[3,3]#1))))", LOP_DOMAIN);
    refuses("(results:3,2,0 " A23 ")", LOP_INDEX);
    refuses("(results_array (ones:float64[3]~1/1))", LOP_DTYPE);
    refuses("(results_array (array:float32[3]#3/1) (array:float64[3]#3/1))", LOP_DOMAIN);
    refuses("(selection:3,0,10 " V3 ")", LOP_DTYPE);
    refuses("(selection:-3,0,10 (array:int64[3]#3/1))", LOP_DIM);
    refuses("(sparse:0,3,3 " V3 " (array:int64[3]#4/1) (array:int64[3]#5/1))", LOP_DIM);
    refuses("(sparse:0,3,3 " V3 " (array:int8[3]#4/1) (array:int64[4]#5/1))", LOP_DTYPE);
    refuses("(sparse:7,3,3 " V3 " (array:int64[3]#4/1) (array:int64[3]#5/1))", LOP_DIM);
    refuses("(lowrank " A33 " " A23 " " A23 ")", LOP_DIM);
    refuses("(sum (dense:0 (array:float64[2,3,3]#1)) (dense:0 (array:float64[4,3,3]#2)))", LOP_DIM);
    refuses("(kron (zeros:float64[4611686018427387904,1]) (zeros:float64[4,1]))", LOP_OVERFLOW);
    refuses("(kron_unfold:2,2,1,1 (array:float64[3,1]#1))", LOP_DIM);
    refuses("(kron_unfold:-1,2,1,1 (array:float64[3,1]#1))", LOP_OVERFLOW);
    refuses("(identity:float64[2,3])", LOP_DIM);
    refuses("(zeros:float64[2,3]/1)", LOP_DIM);
    refuses("(zeros:float64[2]/1)", LOP_DIM);
    refuses("(unit:0:float64[3,1]/1)", LOP_DIM);
    refuses("(eye:float64[3,3]~1)", LOP_DIM);
    refuses("(array:float64[3,3]~1#5)", LOP_DTYPE);
    refuses("(unit:5:float64[3,1])", LOP_DIM);
    const lop_node *element = read("(results:3,0,2 " A23 ")");
    t_check(element && lop_rows(element) == 8, "an element's row, then its column");
    lop_node_unref(element);
    const lop_node *a = read(A33), *b = read("(kron " A33 " " A23 ")");
    t_check(a && b && lop_rows(b) == 6 && lop_cols(b) == 9, "kron's shape");
    t_check(a && a->refs == 1 && lop_node_ref(a) == a && a->refs == 2, "counting");
    lop_node_unref(a);
    lop_node_unref(a);
    lop_node_unref(b);
    lop_node_unref(NULL);
    const lop_node *x = t_array(&w, LOP_f64, 1, 1, (int64_t[]){2}),
                   *y = t_array(&w, LOP_f64, 1, 1, (int64_t[]){2});
    t_check(x->serial && y->serial > x->serial, "serials grow");
    lop_node_unref(x);
    lop_node_unref(y);
    t_group("nodes");
}

static void has_type(const char *text, lop_dtype dt, int weak) {
    const lop_node *a = read(text);
    t_check(a && a->dtype == dt && a->weak == weak, "%s is %s ~%d", text,
            a ? lop_dtype_name(a->dtype) : w.err.text, a ? a->weak : -1);
    lop_node_unref(a);
}

#define I8 "(diag (array:int8[3]#1/1))"
#define F32 "(diag (array:float32[3]#1/1))"
#define EYE "(identity:float64[3,3]~1)"

static void node_types(void) {
    has_type("(sum " EYE " " F32 ")", LOP_f32, 0);
    has_type("(sum " EYE " " EYE ")", LOP_f64, 1);
    has_type("(scaled:2,0,2,2,0 " EYE ")", LOP_f64, 2);
    has_type("(sum (scaled:0.5,0,0,3,0 " EYE ") " I8 ")", LOP_f64, 0);
    has_type("(sum (scaled:2,0,2,2,0 " EYE ") " I8 ")", LOP_i8, 0);
    has_type("(scaled:2,0,2,2,0 " I8 ")", LOP_i8, 0);
    has_type("(scaled:2,0,2,3,0 " I8 ")", LOP_f64, 0);
    has_type("(scaled:2,1,2,4,0 " F32 ")", LOP_c64, 0);
    has_type("(scaled:2,0,2,0,10 " F32 ")", LOP_f64, 0);
    has_type("(scale:0.5,0,0,3,0 (ones:float64[3]~1/1))", LOP_f64, 3);
    has_type("(inverse " I8 ")", LOP_f64, 0);
    has_type("(inverse " F32 ")", LOP_f32, 0);
    has_type("(solve " I8 " (array:float32[3,1]#2))", LOP_f64, 0);
    has_type("(solve " EYE " (array:float32[3,1]#2))", LOP_f32, 0);
    has_type("(solve " EYE " (array:int8[3,1]#2))", LOP_f64, 0);
    has_type("(apply " EYE " (array:int8[3,1]#2))", LOP_i8, 0);
    has_type("(trace:0,0,0,0 " I8 ")", LOP_i64, 0);
    has_type("(trace:0,0,0,0 (diag (array:uint8[3]#1/1)))", LOP_u64, 0);
    has_type("(trace:0,0,0,0 " F32 ")", LOP_f32, 0);
    has_type("(part:0 (diag (array:complex64[3]#1/1)))", LOP_f32, 0);
    t_group("dtypes of nodes");
}

/* -- text */

static void text(void) {
    static const char *const bad[] = {"",
                                      "(",
                                      ")",
                                      "()",
                                      "(sum",
                                      "sum",
                                      "(nothing)",
                                      "(array)",
                                      "(array:float64)",
                                      "(array:float64[2)",
                                      "(array:float64[2]#/1)",
                                      "(array:float64[-1]#1)",
                                      "(array:float65[2]#1/1)",
                                      "(array:float64[2]#1)",
                                      "(view:x " A33 ")",
                                      "(view:1,2 " A33 ")",
                                      "(scaled:1,0 " A33 ")",
                                      "(scaled:1,0,1,9,0 " A33 ")",
                                      "(scaled:1,0,1,0,77 " A33 ")",
                                      "?",
                                      "?A",
                                      "(sum@1 ?a ?b)",
                                      A33 " " A33,
                                      "(sum ?a ?b)",
                                      "(scaled@c " A33 ")",
                                      "(array:float64[1,1,1,1,1,1,1,1,1]#1)",
                                      "(identity)",
                                      "(identity:float64[3,3]~)",
                                      "(sum " A33 " ))"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) refuses(bad[i], LOP_PARSE);
    static const double values[] = {0,
                                    -0.0,
                                    1,
                                    -1,
                                    0.1,
                                    1e-300,
                                    -1e300,
                                    4.9406564584124654e-324,
                                    9007199254740993.0,
                                    INFINITY,
                                    -INFINITY,
                                    NAN};
    const lop_node *a = read(A33);
    for (int i = 0; i < 12; i++)
        for (int weak = 0; weak <= LOP_WEAK_COMPLEX; weak++) {
            lop_attr c = {
                .re = values[i], .im = values[11 - i], .i = {INT64_MIN + i, weak, LOP_c128, 0}};
            const lop_node *s = t_one(&w, "scaled", &c, a), *back;
            char *dumped = lop_dump(s, 0);
            back = read(dumped);
            bool nan = values[i] != values[i] ||
                       values[11 - i] != values[11 - i]; /* its sign may be lost */
            t_check(back && (nan || lop_attr_equal(&back->attr, &s->attr)) &&
                        back->dtype == s->dtype,
                    "back from %s", dumped);
            lop_free(&w.ctx, dumped);
            lop_node_unref(s);
            lop_node_unref(back);
        }
    char *some = lop_dump(a, 1), *all = lop_dump(a, 0);
    t_check(strstr(some, "...") && !strcmp(all, A33), "a limited dump: %s", some);
    lop_free(&w.ctx, some);
    lop_free(&w.ctx, all);
    lop_node_unref(a);
    lop_text t;
    t_check(lop_text_parse(&w.ctx, " (apply@k\n(kron)\t?x ) ", &t, &w.err) == LOP_OK && t.n == 3 &&
                t.term[2].attr_hole == 'k' - 'a',
            "a pattern: %s", w.err.text);
    lop_text_clear(&t);
    t_group("text");
}

/* -- properties */

static void trait(const char *text, lop_trait which, lop_truth want) {
    const lop_node *a = read(text);
    t_check(a && lop_node_trait(a, which) == want, "property %d of %s: %d", which, text,
            a ? (int)lop_node_trait(a, which) : -1);
    lop_node_unref(a);
}

static void traits(void) {
    trait("(dense:3 (array:complex128[3,3]#1))", LOP_POSITIVE, LOP_TRUE);
    trait("(dense:3 (array:complex128[3,3]#1))", LOP_HERMITIAN, LOP_TRUE);
    trait("(dense:3 (array:complex128[3,3]#1))", LOP_SYMMETRIC, LOP_UNKNOWN);
    trait("(dense:3 (array:float64[3,3]#1))", LOP_SYMMETRIC, LOP_TRUE);
    trait("(dense:2 (array:complex128[3,3]#1))", LOP_POSITIVE, LOP_UNKNOWN);
    trait("(dense:1 (array:complex128[3,3]#1))", LOP_HERMITIAN, LOP_UNKNOWN);
    trait("(dense:1 (array:complex128[3,3]#1))", LOP_SYMMETRIC, LOP_TRUE);
    trait("(dense:0 (array:float64[3,3]#1))", LOP_REAL, LOP_TRUE);
    trait("(diag (array:complex128[3]#1/1))", LOP_HERMITIAN, LOP_UNKNOWN);
    trait("(diag (array:float64[3]#1/1))", LOP_HERMITIAN, LOP_TRUE);
    trait("(kron (dense:3 (array:float64[3,3]#1)) (identity:float64[2,2]))", LOP_POSITIVE,
          LOP_TRUE);
    trait("(kron (dense:3 (array:float64[3,3]#1)) (dense:0 (array:float64[3,3]#2)))", LOP_POSITIVE,
          LOP_UNKNOWN);
    trait("(zeros:float64[3,2])", LOP_SYMMETRIC, LOP_FALSE);
    trait("(zeros:float64[2,2])", LOP_IDENTITY, LOP_FALSE);
    t_group("properties");
}

int main(void) {
    world_open(&w, 1);
    base();
    spares();
    dtypes();
    shapes();
    nodes();
    node_types();
    text();
    traits();
    world_close(&w, "test_core");
    t_group("memory");
    return t_end();
}
