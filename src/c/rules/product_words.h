/* product_words.h: products as lists of their factors, which are taken apart and put together
 * anew: the terms of a sum seen through a mode, each a list. */
#ifndef LOP_PRODUCT_WORDS_H
#define LOP_PRODUCT_WORDS_H

#include "builds.h"

/* c f[0] f[1] .., the factors owned, none of them the identity; n 0: c times the identity. */
typedef struct lop_word {
    const lop_node *f[LOP_FACTORS];
    int n;
    lop_coef c;
} lop_word;

void lop_word_close(lop_word *w);
/* The product a seen through the mode. To be closed whatever comes back. NOMATCH: it has more
 * factors than there is room. */
lop_status lop_word_read(const lop_maker *mk, const lop_node *a, int mode,
                         lop_word *w) LOP_MUST_CHECK;
/* Likewise, views of products within it opened, too. */
lop_status lop_word_opened(const lop_maker *mk, const lop_node *a, int mode,
                           lop_word *w) LOP_MUST_CHECK;
/* between_sparse.c: OK where the product is A^-1 X A^-1 or A^-1 X A^-1 Y A^-1, of which entries are
 * selected; under a trace, or as the main diagonal of enough rows, that with anything sparse beside
 * it, too; else NOMATCH. */
lop_status lop_reads_between_sparse(const lop_maker *mk, const lop_node *root,
                                    const lop_word *w) LOP_MUST_CHECK;
/* sparse_borders.c: w with the inverses of S = B + U C V^H, B sparse, as E K^-1 E^T of the bordered
 * K; to be closed whatever comes back. NOMATCH: there is none. */
lop_status lop_word_bordered(const lop_maker *mk, const lop_word *w, lop_word *out) LOP_MUST_CHECK;
/* Factors from.. to - 1 of f, which are retained, put behind those of w; likewise one. */
lop_status lop_word_add(lop_word *w, const lop_node *const *f, int from, int to) LOP_MUST_CHECK;
lop_status lop_word_one(lop_word *w, const lop_node *f) LOP_MUST_CHECK;

/* w with what a term is, seen through the mode, in the place of factor `at`. To be closed whatever
 * comes back. */
lop_status lop_word_with(const lop_maker *mk, const lop_word *w, int at, const lop_node *term,
                         int mode, lop_word *all) LOP_MUST_CHECK;
/* The root's value of one product; `alone`: there is no sum; *pays is set where that has a way that
 * the sum has not. NOMATCH: none. */
typedef lop_status lop_word_value(const lop_maker *mk, const lop_node *root, const lop_word *w,
                                  bool alone, bool *pays, const lop_node **out);
/* The sum of those values. Owned in *out; NOMATCH: one has none, or none pays. */
lop_status lop_words_summed(const lop_maker *mk, const lop_node *root, const lop_word *list, int n,
                            lop_word_value *of, const lop_node **out) LOP_MUST_CHECK;
/* list[0], *n = 1, multiplied out, sums within terms too: factors that are sums and do not stay,
 * where all others stay. All of them are to be closed whatever comes back. NOMATCH: there are too
 * many terms. */
enum { LOP_WORDS = 12 };
lop_status lop_words_multiplied_out(const lop_maker *mk, bool (*stays)(const lop_node *f), bool all,
                                    lop_word *list, int *n) LOP_MUST_CHECK;

/* product_values.c: sparse by how it is written, or a BlockDiag of any length, multiples and views
 * of one. */
bool lop_has_few_entries(const lop_node *a);

/* A sum, or what is one behind a multiple, a view or both; borrowed, with the mode it is seen in
 * and *c multiplied by its number. NULL: f is none. */
const lop_node *lop_sum_seen(const lop_node *f, int *mode, lop_coef *c);
/* product_words.c: likewise B + U C V^H. */
const lop_node *lop_update_seen(const lop_node *f);

#endif
