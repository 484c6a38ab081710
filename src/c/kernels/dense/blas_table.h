/* blas_table.h: the one BLAS of the process, as a table of functions that is filled when the module
 * is loaded.
 *
 *   library -- lop_blas_bind --> lop_blas.cblas_dgemm ... -- called --> k_blas.c, k_lapack.c and
 * others
 *
 * Nothing is linked: the library is NumPy's own where it can be, so that two of them do not fight
 * for the CPUs. This table (with blas_table.c and blas_narrow.c) is the only place that knows what
 * its symbols are called and how wide its integers are: those of the table have 64 bits; where the
 * library's have 32, thin functions stand between (blas_narrow.c) and sizes end at lop_blas.most.
 * The table is written once, before any other thread can call; all that is *borrowed* lives as long
 * as the process. */
#ifndef LOP_BLAS_TABLE_H
#define LOP_BLAS_TABLE_H

#include "base/base.h"

enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE {
    CblasNoTrans = 111,
    CblasTrans = 112,
    CblasConjTrans = 113,
    CblasConjNoTrans = 114
};
enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 };
enum CBLAS_DIAG { CblasNonUnit = 131, CblasUnit = 132 };
enum CBLAS_SIDE { CblasLeft = 141, CblasRight = 142 };
enum { LAPACK_ROW_MAJOR = 101, LAPACK_COL_MAJOR = 102 };

/* The arguments, I the library's integers, T the type of scalars. Arrays are void: the table is
 * where C's types of them end. */
#define LOP_GEMV(I, T)                                                                             \
    (int order, int trans, I m, I n, T alpha, const void *a, I lda, const void *x, I incx, T beta, \
     void *y, I incy)
#define LOP_GEMM(I, T)                                                                             \
    (int order, int transa, int transb, I m, I n, I k, T alpha, const void *a, I lda,              \
     const void *b, I ldb, T beta, void *c, I ldc)
#define LOP_SYRK(I, T)                                                                             \
    (int order, int uplo, int trans, I n, I k, T alpha, const void *a, I lda, T beta, void *c,     \
     I ldc)
#define LOP_SYMM(I, T)                                                                             \
    (int order, int side, int uplo, I m, I n, T alpha, const void *a, I lda, const void *b, I ldb, \
     T beta, void *c, I ldc)
#define LOP_TRSM(I, T)                                                                             \
    (int order, int side, int uplo, int trans, int diag, I m, I n, T alpha, const void *a, I lda,  \
     void *b, I ldb)
#define LOP_TRMV(I, T)                                                                             \
    (int order, int uplo, int trans, int diag, I n, const void *a, I lda, void *x, I incx)
#define LOP_POTRF(I, T) (int order, char uplo, I n, void *a, I lda)
#define LOP_GETRF(I, T) (int order, I m, I n, void *a, I lda, I *ipiv)
#define LOP_GETRS(I, T)                                                                            \
    (int order, char trans, I n, I k, const void *a, I lda, const I *ipiv, void *b, I ldb)
#define LOP_CON(I, T)                                                                              \
    (int order, char which, I n, const void *a, I lda, T anorm, void *rcond, void *work,           \
     void *second)
#define LOP_GBTRF(I, T) (int order, I m, I n, I kl, I ku, void *ab, I ldab, I *ipiv)
#define LOP_GBTRS(I, T)                                                                            \
    (int order, char trans, I n, I kl, I ku, I k, const void *ab, I ldab, const I *ipiv, void *b,  \
     I ldb)
#define LOP_PBTRF(I, T) (int order, char uplo, I n, I kd, void *ab, I ldab)
#define LOP_PBTRS(I, T)                                                                            \
    (int order, char uplo, I n, I kd, I k, const void *ab, I ldab, void *b, I ldb)
#define LOP_STERF(I, T) (I n, void *d, void *e)
#define LOP_GBBRD(I, T)                                                                            \
    (int order, char vect, I m, I n, I ncc, I kl, I ku, void *ab, I ldab, void *d, void *e,        \
     void *q, I ldq, void *pt, I ldpt, void *c, I ldc, void *work)
#define LOP_GBBRD_C(I, T)                                                                          \
    (int order, char vect, I m, I n, I ncc, I kl, I ku, void *ab, I ldab, void *d, void *e,        \
     void *q, I ldq, void *pt, I ldpt, void *c, I ldc, void *work, void *rwork)
#define LOP_BDSQR(I, T)                                                                            \
    (int order, char uplo, I n, I ncvt, I nru, I ncc, void *d, void *e, void *vt, I ldvt, void *u, \
     I ldu, void *c, I ldc, void *work)
#define LOP_GEQRF(I, T) (int order, I m, I n, void *a, I lda, void *tau, void *work, I lwork)
#define LOP_GEQP3(I, T)                                                                            \
    (int order, I m, I n, void *a, I lda, I *ipiv, void *tau, void *work, I lwork)
#define LOP_GEQP3_C(I, T)                                                                          \
    (int order, I m, I n, void *a, I lda, I *ipiv, void *tau, void *work, I lwork, void *rwork)
#define LOP_ORMQR(I, T)                                                                            \
    (int order, char side, char trans, I m, I n, I k, const void *a, I lda, const void *tau,       \
     void *c, I ldc, void *work, I lwork)
#define LOP_SYTRF(I, T) (int order, char uplo, I n, void *a, I lda, I *ipiv, void *work, I lwork)
#define LOP_SYCONV(I, T)                                                                           \
    (int order, char uplo, char way, I n, void *a, I lda, const I *ipiv, void *e)
#define LOP_SYTRS_3(I, T)                                                                          \
    (int order, char uplo, I n, I k, const void *a, I lda, const void *e, const I *ipiv, void *b,  \
     I ldb)
#define LOP_SYEVD(I, T)                                                                            \
    (int order, char jobz, char uplo, I n, void *a, I lda, void *w, void *work, I lwork,           \
     void *iwork, I liwork)
#define LOP_HEEVD(I, T)                                                                            \
    (int order, char jobz, char uplo, I n, void *a, I lda, void *w, void *work, I lwork,           \
     void *rwork, I lrwork, void *iwork, I liwork)
#define LOP_GEES(I, T)                                                                             \
    (int order, char jobvs, char sort, void *select, I n, void *a, I lda, void *sdim, void *wr,    \
     void *wi, void *vs, I ldvs, void *work, I lwork, void *bwork)
#define LOP_GEES_C(I, T)                                                                           \
    (int order, char jobvs, char sort, void *select, I n, void *a, I lda, void *sdim, void *w,     \
     void *vs, I ldvs, void *work, I lwork, void *rwork, void *bwork)
#define LOP_TRSYL(I, T)                                                                            \
    (int order, char opa, char opb, I isgn, I m, I n, const void *a, I lda, const void *b, I ldb,  \
     void *c, I ldc, void *scale)

#define LOP_RET_VOID void
#define LOP_RET_PLAIN int64_t
#define LOP_RET_WIDEN int64_t
#define LOP_RET_NARROW int64_t

typedef struct lop_blas_table {
#define LOP_BLAS(how, name, arguments, T) LOP_RET_##how(*name) LOP_##arguments(int64_t, T);
#define LOP_BLAS_OWN(ret, name, arguments) ret(*name) arguments;
#include "blas_table.def"
#undef LOP_BLAS
#undef LOP_BLAS_OWN
    int64_t most;   /* of a size: INT64_MAX, or INT32_MAX */
    unsigned fault; /* LOP_BLAS_FAULT_* that are known of this version */
} lop_blas_table;

/* One bit a fault, see the list in blas_table.c. */
enum { LOP_BLAS_FAULT_POTRF = 1 };

extern lop_blas_table lop_blas;

/* How calls are written: BLAS(cblas_dgemm)(...), BLAS(LAPACKE_dpotrf_work)(...). */
#define BLAS(name) lop_blas.name
#define LAPACK(name) lop_blas.name

/* Does the library's integer hold this size? */
static inline bool lop_blas_fits(int64_t size) { return size <= lop_blas.most; }

/* ---- binding ---- */

/* Where a library is to be had from: a symbol's address, NULL where it has none. */
typedef void *(*lop_blas_find)(void *user, const char *symbol);

/* Fills the table from one library. LOP_MISSING: it is no OpenBLAS, has 32-bit integers where
 * `wide` asks for 64, or lacks functions (named in err); the table is then as it was. */
lop_status lop_blas_bind(lop_blas_find find, void *user, bool wide, lop_err *err) LOP_MUST_CHECK;
bool lop_blas_bound(void);

/* What was bound: 32 or 64; the way its symbols are written ("scipy_*64_"). */
int lop_blas_integers(void);
const char *lop_blas_spelling(void);
/* What is done about known faults of this version, for i = 0, 1 ..; NULL after the last. */
const char *lop_blas_remedy(int i);
/* The symbol of a function of C's name, in whatever way it is written; NULL: there is none. */
void *lop_blas_symbol(lop_blas_find find, void *user, const char *name);

/* The functions in `table` are of a library whose integers have 32 bits: they are kept, and such as
 * take 64 and call them put in their places (blas_narrow.c). */
void lop_blas_narrow(lop_blas_table *table);
/* The info of such a function that had no memory for its copy of the pivots. */
enum { LOP_BLAS_NOMEM = -1010 };
/* What a negative info says: else a bug of the caller. */
static inline lop_status lop_blas_status(int64_t info) {
    return info == LOP_BLAS_NOMEM ? LOP_NOMEM : LOP_INTERNAL;
}

/* ---- finding a library (blas_load.c) ---- */

/* Binds what the loaded module at `path` was linked with (NULL: the program): nothing is loaded. */
lop_status lop_blas_of_module(const char *path, bool wide, lop_err *err) LOP_MUST_CHECK;
/* Loads the libraries at `paths` (':' between them) for nobody else, and binds. Their threads wait
 * briefly for work before they sleep (OPENBLAS_THREAD_TIMEOUT, unless the environment says), since
 * another BLAS has threads on the same CPUs. What was loaded before is taken as it is. */
lop_status lop_blas_load(const char *paths, bool wide, lop_err *err) LOP_MUST_CHECK;

/* The file that the bound functions lie in; "" where the system does not say. */
const char *lop_blas_file(void);
/* Calls `each` once for each library with a BLAS in the process, ours too: its file, what OpenBLAS
 * says of itself or "", its threads or 0. */
typedef void (*lop_blas_each)(void *user, const char *file, const char *config, int threads);
void lop_blas_all(lop_blas_each each, void *user);

#endif
