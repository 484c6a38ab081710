/* k_selected_inverse.c: see k_selected_inverse.h.
 *
 * With Z = A^-1 and J the rows of column j of L (Takahashi, Fagan and Chin 1973; Erisman and Tinney
 * 1975, On computing certain elements of the inverse of a sparse matrix):
 *
 *   Z[J, j] = -Z[J, J] L[J, j],  Z[j, J] = -U[j, J] Z[J, J],  Z[j, j] = 1 / D_j - U[j, J] Z[J, j]
 *
 * from the last column to the first; J is a clique of the pattern, so that Z[J, J] is known.
 * Columns whose patterns agree (a supernode) share one dense copy of it. Cost: 4 sum |J|^2 flops
 * beside the copy's n^2 numbers, from that of the supernode of before where that is the next one up
 * the tree, else in one pass over the columns in J. Of many columns S at once, T, V the
 * triangles on their diagonal and J the rows below all of them,
 *
 *   Z[J, S] = -Z[J, J] L[J, S] T^-1,  Z[S, J] = -V^-1 U[S, J] Z[J, J],
 *   Z[S, S] = V^-1 D^-1 T^-1 - V^-1 U[S, J] Z[J, S]
 *
 * The pattern: row i of the factor is what is met on the way up the elimination tree from the
 * entries of row i (Liu 1990, The role of elimination trees in sparse factorization). */
#include "k_selected_inverse.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"

#include <string.h>

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

/* Columns at once, from FEWEST on, where the dense copy is of ORDER rows or more: with the copies
 * that are taken over, a pedigree of 2,000 rows, whose last 369 columns are one supernode, takes 13
 * ms for 22 (2026-11-28). */
enum { PANEL = LOPK_SELECT_PANEL, FEWEST = 8, ORDER = 48 };

int64_t lopk_select_work(int64_t order) { return 2 * order * PANEL + 3 * PANEL * PANEL; }

#define LOPK_TEMPLATE "kernels/sparse/k_selected_inverse_per_dtype.h"
#include "kernels/common/k_each.h"

lop_status lopk_select(lop_dtype dt, int64_t n, const int64_t *at, const int64_t *row, void *lo,
                       void *up, void *d, int64_t *place, void *front, void *work) {
    const int64_t order = lopk_select_front(n, at, row);
    void *last = (char *)front + (size_t)(order * order) * lop_dtype_size(dt);
    int64_t *from = place + n;
    switch (dt) {
    case LOP_f32: return select_f32(n, at, row, lo, up, d, place, from, front, last, work);
    case LOP_f64: return select_f64(n, at, row, lo, up, d, place, from, front, last, work);
    case LOP_c64: return select_c64(n, at, row, lo, up, d, place, from, front, last, work);
    default: return select_c128(n, at, row, lo, up, d, place, from, front, last, work);
    }
}
