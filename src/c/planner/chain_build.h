/* chain_build.h: a state as nodes; for chain_build.c and chain_rules.c alone. */
#ifndef LOP_CHAIN_BUILD_H
#define LOP_CHAIN_BUILD_H

#include "chain.h"
#include "rewrite/build.h"

typedef struct lop_builder {
    lop_chain *ch;
    const lop_maker *mk;
    lop_chmemo memo;
    const lop_node *group[LOP_CH_GROUPS]; /* owned: shared ones, made */
    char *text;                           /* NULL, or where the association goes */
    int used;
} lop_builder;

void lop_chmake_open(lop_builder *b, lop_chain *ch, const lop_maker *mk);
void lop_chmake_close(lop_builder *b, double written);

/* The terms of a group under a view, applied to x (NULL: as they are), added up. Owned, all. */
lop_status lop_chmake_terms(lop_builder *b, int g, int mode, const lop_node *x,
                            const lop_node **out) LOP_MUST_CHECK;
/* Span i..j of the chain as an array. */
lop_status lop_chmake_span(lop_builder *b, const lop_chdp *d, int i, int j, const lop_node *proxy,
                           const lop_node **out) LOP_MUST_CHECK;
/* R^H A^-1 R, or its diagonal alone: A is factor k, R what follows. */
lop_status lop_chmake_half(lop_builder *b, const lop_chdp *d, int k, int j, bool diagonal,
                           const lop_node *proxy, const lop_node **out) LOP_MUST_CHECK;
/* Factor s seen through `mode` more, applied to x. Takes over x. */
lop_status lop_chmake_factor_on(lop_builder *b, lop_sym s, int mode, const lop_node *x,
                                const lop_node **out) LOP_MUST_CHECK;
/* These take over `a`. */
lop_status lop_chmake_wrap(lop_builder *b, const lop_op *op, const lop_attr *attr,
                           const lop_node *a, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_chmake_swapped(lop_builder *b, int mode, const lop_node *a,
                              const lop_node **out) LOP_MUST_CHECK;
lop_status lop_chmake_scaled(lop_builder *b, const lop_chterm *t, const lop_node *a,
                             const lop_node **out) LOP_MUST_CHECK;
/* The association as text. */
void lop_chmake_say(lop_builder *b, const char *s);
void lop_chmake_say_span(lop_builder *b, const lop_chdp *d, int i, int j);

#endif
