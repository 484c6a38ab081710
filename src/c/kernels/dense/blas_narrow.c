/* blas_narrow.c: BLAS and LAPACK of libraries with 32-bit integers, behind functions that take 64.
 *
 * The callers see to it that sizes fit (lop_blas_fits); lengths of work memory may not, and are cut
 * to what does. Pivots are copied: into the library's width before calls that read them, back to 64
 * bits, in place, after those that write them. */
#include "blas_table.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 256 }; /* pivots that need no memory of their own */

static inline int32_t cut(int64_t size) { return (int32_t)(size > INT32_MAX ? INT32_MAX : size); }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first n of 32 bits at p become n of 64 there. */
static void widen(int64_t *p, int64_t n) {
    for (int64_t i = n - 1; i >= 0; i--) {
        int32_t one;
        memcpy(&one, (const char *)p + (size_t)i * sizeof one, sizeof one);
        p[i] = one;
    }
}

/* A copy of 32 bits each, in `few` where that holds it; NULL: no memory. */
static int32_t *narrowed(const int64_t *p, int64_t n, int32_t few[FEW]) {
    int32_t *to = n > FEW ? malloc((size_t)n * sizeof *to) : few;
    few[0] = 0;
    for (int64_t i = 0; to && i < n; i++) to[i] = (int32_t)p[i];
    return to;
}

#define RET_VOID void
#define RET_PLAIN int32_t
#define RET_WIDEN int32_t
#define RET_NARROW int32_t
static struct {
#define LOP_BLAS(how, name, arguments, T) RET_##how(*name) LOP_##arguments(int32_t, T);
#define LOP_BLAS_OWN(ret, name, arguments)
#include "blas_table.def"
#undef LOP_BLAS
#undef LOP_BLAS_OWN
} in;

/* What is handed on, P the pivots; how many of these there are. */
#define ON_GEMV(P)                                                                                 \
    (order, trans, cut(m), cut(n), alpha, a, cut(lda), x, cut(incx), beta, y, cut(incy))
#define ON_GEMM(P)                                                                                 \
    (order, transa, transb, cut(m), cut(n), cut(k), alpha, a, cut(lda), b, cut(ldb), beta, c,      \
     cut(ldc))
#define ON_SYRK(P) (order, uplo, trans, cut(n), cut(k), alpha, a, cut(lda), beta, c, cut(ldc))
#define ON_SYMM(P)                                                                                 \
    (order, side, uplo, cut(m), cut(n), alpha, a, cut(lda), b, cut(ldb), beta, c, cut(ldc))
#define ON_TRSM(P) (order, side, uplo, trans, diag, cut(m), cut(n), alpha, a, cut(lda), b, cut(ldb))
#define ON_TRMV(P) (order, uplo, trans, diag, cut(n), a, cut(lda), x, cut(incx))
#define ON_POTRF(P) (order, uplo, cut(n), a, cut(lda))
#define ON_GETRF(P) (order, cut(m), cut(n), a, cut(lda), P)
#define ON_GETRS(P) (order, trans, cut(n), cut(k), a, cut(lda), P, b, cut(ldb))
#define ON_CON(P) (order, which, cut(n), a, cut(lda), anorm, rcond, work, second)
#define ON_GBTRF(P) (order, cut(m), cut(n), cut(kl), cut(ku), ab, cut(ldab), P)
#define ON_GBTRS(P) (order, trans, cut(n), cut(kl), cut(ku), cut(k), ab, cut(ldab), P, b, cut(ldb))
#define ON_PBTRF(P) (order, uplo, cut(n), cut(kd), ab, cut(ldab))
#define ON_PBTRS(P) (order, uplo, cut(n), cut(kd), cut(k), ab, cut(ldab), b, cut(ldb))
#define ON_STERF(P) (cut(n), d, e)
#define ON_GBBRD(P)                                                                                \
    (order, vect, cut(m), cut(n), cut(ncc), cut(kl), cut(ku), ab, cut(ldab), d, e, q, cut(ldq),    \
     pt, cut(ldpt), c, cut(ldc), work)
#define ON_GBBRD_C(P)                                                                              \
    (order, vect, cut(m), cut(n), cut(ncc), cut(kl), cut(ku), ab, cut(ldab), d, e, q, cut(ldq),    \
     pt, cut(ldpt), c, cut(ldc), work, rwork)
#define ON_BDSQR(P)                                                                                \
    (order, uplo, cut(n), cut(ncvt), cut(nru), cut(ncc), d, e, vt, cut(ldvt), u, cut(ldu), c,      \
     cut(ldc), work)
#define ON_GEQRF(P) (order, cut(m), cut(n), a, cut(lda), tau, work, cut(lwork))
#define ON_GEQP3(P) (order, cut(m), cut(n), a, cut(lda), P, tau, work, cut(lwork))
#define ON_GEQP3_C(P) (order, cut(m), cut(n), a, cut(lda), P, tau, work, cut(lwork), rwork)
#define ON_ORMQR(P)                                                                                \
    (order, side, trans, cut(m), cut(n), cut(k), a, cut(lda), tau, c, cut(ldc), work, cut(lwork))
#define ON_SYTRF(P) (order, uplo, cut(n), a, cut(lda), P, work, cut(lwork))
#define ON_SYCONV(P) (order, uplo, way, cut(n), a, cut(lda), P, e)
#define ON_SYTRS_3(P) (order, uplo, cut(n), cut(k), a, cut(lda), e, P, b, cut(ldb))
#define ON_SYEVD(P)                                                                                \
    (order, jobz, uplo, cut(n), a, cut(lda), w, work, cut(lwork), iwork, cut(liwork))
#define ON_HEEVD(P)                                                                                \
    (order, jobz, uplo, cut(n), a, cut(lda), w, work, cut(lwork), rwork, cut(lrwork), iwork,       \
     cut(liwork))
#define ON_GEES(P)                                                                                 \
    (order, jobvs, sort, select, cut(n), a, cut(lda), sdim, wr, wi, vs, cut(ldvs), work,           \
     cut(lwork), bwork)
#define ON_GEES_C(P)                                                                               \
    (order, jobvs, sort, select, cut(n), a, cut(lda), sdim, w, vs, cut(ldvs), work, cut(lwork),    \
     rwork, bwork)
#define ON_TRSYL(P)                                                                                \
    (order, opa, opb, cut(isgn), cut(m), cut(n), a, cut(lda), b, cut(ldb), c, cut(ldc), scale)
#define PIVOTS_GETRF least(m, n)
#define PIVOTS_GETRS n
#define PIVOTS_GBTRF least(m, n)
#define PIVOTS_GBTRS n
#define PIVOTS_GEQP3 n
#define PIVOTS_GEQP3_C n
#define PIVOTS_SYTRF n
#define PIVOTS_SYCONV n
#define PIVOTS_SYTRS_3 n

#define BODY_VOID(name, arguments)                                                                 \
    { in.name ON_##arguments(); }
#define BODY_PLAIN(name, arguments)                                                                \
    { return in.name ON_##arguments(); }
/* Zeros, which geqp3 reads, are zeros in either width. */
#define BODY_WIDEN(name, arguments)                                                                \
    {                                                                                              \
        const int64_t info = in.name ON_##arguments((int32_t *)(void *)ipiv);                      \
        widen(ipiv, PIVOTS_##arguments);                                                           \
        return info;                                                                               \
    }
#define BODY_NARROW(name, arguments)                                                               \
    {                                                                                              \
        int32_t few[FEW];                                                                          \
        int32_t *pivots = narrowed(ipiv, PIVOTS_##arguments, few);                                 \
        if (!pivots) return LOP_BLAS_NOMEM;                                                        \
        const int64_t info = in.name ON_##arguments(pivots);                                       \
        if (pivots != few) free(pivots);                                                           \
        return info;                                                                               \
    }
#define LOP_BLAS(how, name, arguments, T)                                                          \
    static LOP_RET_##how wide_##name LOP_##arguments(int64_t, T) BODY_##how(name, arguments)
#define LOP_BLAS_OWN(ret, name, arguments)
#include "blas_table.def"
#undef LOP_BLAS
#undef LOP_BLAS_OWN

void lop_blas_narrow(lop_blas_table *table) {
#define LOP_BLAS(how, name, arguments, T)                                                          \
    memcpy(&in.name, &table->name, sizeof in.name);                                                \
    table->name = wide_##name;
#define LOP_BLAS_OWN(ret, name, arguments)
#include "blas_table.def"
#undef LOP_BLAS
#undef LOP_BLAS_OWN
}
