/* k_selected_inverse.c: see k_selected_inverse.h.
 *
 * With Z = A^-1 and J the rows of column j of L (Takahashi, Fagan and Chin 1973; Erisman and Tinney
 * 1975, On computing certain elements of the inverse of a sparse matrix):
 *
 *   Z[J, j] = -Z[J, J] L[J, j],  Z[j, J] = -U[j, J] Z[J, J],  Z[j, j] = 1 / D_j - U[j, J] Z[J, j]
 *
 * from the last column to the first; J is a clique of the pattern, so that Z[J, J] is known.
 * Columns whose patterns agree (a supernode) share one dense copy of it. Cost: 4 sum |J|^2 flops
 * beside one pass over the columns in J for each supernode.
 *
 * The pattern: row i of the factor is what is met on the way up the elimination tree from the
 * entries of row i (Liu 1990, The role of elimination trees in sparse factorization). */
#include "k_selected_inverse.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

void lopk_select_counts(int64_t n, const int64_t *start, const int64_t *col, int64_t *parent,
                        int64_t *at, int64_t *mark) {
    for (int64_t i = 0; i <= n; i++) at[i] = 0;
    for (int64_t i = 0; i < n; i++) parent[i] = mark[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        mark[i] = i;
        for (int64_t p = start[i]; p < start[i + 1]; p++)
            for (int64_t j = col[p]; mark[j] != i; j = parent[j]) {
                if (parent[j] < 0) parent[j] = i;
                at[j + 1]++;
                mark[j] = i;
            }
    }
    for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
}

void lopk_select_rows(int64_t n, const int64_t *start, const int64_t *col, const int64_t *parent,
                      const int64_t *at, int64_t *row, int64_t *mark, int64_t *next) {
    for (int64_t i = 0; i < n; i++) {
        mark[i] = -1;
        next[i] = at[i];
    }
    for (int64_t i = 0; i < n; i++) {
        mark[i] = i;
        for (int64_t p = start[i]; p < start[i + 1]; p++)
            for (int64_t j = col[p]; j >= 0 && mark[j] != i && next[j] < at[j + 1]; j = parent[j]) {
                row[next[j]++] = i;
                mark[j] = i;
            }
    }
}

/* The first column of the supernode that ends with column e. */
static int64_t begins(const int64_t *at, const int64_t *row, int64_t e) {
    int64_t s = e;
    while (s > 0 && at[s] - at[s - 1] == at[s + 1] - at[s] + 1 && row[at[s - 1]] == s) s--;
    return s;
}

int64_t lopk_select_front(int64_t n, const int64_t *at, const int64_t *row) {
    int64_t most = 0;
    for (int64_t e = n - 1; e >= 0;) {
        const int64_t s = begins(at, row, e), order = e - s + 1 + at[e + 1] - at[e];
        most = order > most ? order : most;
        e = s - 1;
    }
    return most;
}

#define LOPK_TEMPLATE "kernels/sparse/k_selected_inverse_per_dtype.h"
#include "kernels/common/k_each.h"

void lopk_select(lop_dtype dt, int64_t n, const int64_t *at, const int64_t *row, void *lo, void *up,
                 void *d, int64_t *place, void *front, void *work) {
    switch (dt) {
    case LOP_f32: select_f32(n, at, row, lo, up, d, place, front, work); return;
    case LOP_f64: select_f64(n, at, row, lo, up, d, place, front, work); return;
    case LOP_c64: select_c64(n, at, row, lo, up, d, place, front, work); return;
    default: select_c128(n, at, row, lo, up, d, place, front, work); return;
    }
}
