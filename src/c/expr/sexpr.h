/* sexpr.h: the s-expression notation, read and printed.
 *
 *   (prod (diag (array:float64[5]#3/1)) (identity:float64[5,5]~1))
 *
 * After a head: the op's integers `:1,0`, or its coefficient `:re,im,int,weak,dtype`; for heads
 * without children dtype and shape, then ~weakness, #serial, /core rank. In rules also ?a (a node)
 * and @c (all attributes of that head); on their left sides (sum* a b), two operands either way
 * round, and (identity@c), c times the identity, the identity itself for 1, as (eye@c) of arrays.
 * On right sides ?* is each operand of the first head that stands alone on the left, as (kron), and
 * ?+ the one beside it of the second: (kron (view@m ?*)) has as many operands as there are.
 * What dump prints reads back to an equal node. */
#ifndef LOP_TEXT_H
#define LOP_TEXT_H

#include "op.h"

enum { LOP_EACH = 26 };

/* A parsed text: terms in one array, children by index. */
typedef struct lop_term {
    const lop_op *op; /* NULL: a hole */
    int hole;         /* 0..25 for ?a..?z, then LOP_EACH for ?*, LOP_EACH + 1 for ?+ */
    int attr_hole;    /* 0..25 for @a..@z; -1 none */
    bool has_attr;    /* attributes were written */
    bool has_like;
    bool either; /* its two children stand either way round */
    lop_attr attr;
    lop_shape shape;
    lop_dtype dt;
    uint8_t weak, core;
    uint64_t serial;
    int n, first; /* children: index[first .. first + n) */
} lop_term;

typedef struct lop_text {
    lop_ctx *ctx;
    lop_term *term; /* post-order: children before parents; the root is the last */
    int *index;
    int n, nindex, room, room_index;
} lop_text;

lop_status lop_text_parse(lop_ctx *ctx, const char *text, lop_text *out,
                          lop_err *err) LOP_MUST_CHECK;
void lop_text_clear(lop_text *text);

/* Owned node from text without holes. Serials are kept as written (leaves are bound by them). */
lop_status lop_read(lop_ctx *ctx, const char *text, const lop_node **out,
                    lop_err *err) LOP_MUST_CHECK;
/* Owned text (lop_free with the context), NUL-terminated; `limit` nodes at most (0: all), then
 * "...". */
char *lop_dump(const lop_node *node, int64_t limit);

#endif
