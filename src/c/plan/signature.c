/* signature.c: see signature.h. */
#include "signature.h"

#include "expr/op.h"

#include <string.h>

void lop_sign_open(lop_sign *s, lop_ctx *ctx) {
    s->ctx = ctx;
    s->hash = 0x9e3779b97f4a7c15u;
    s->n = s->leaves = s->numbers = s->shared = 0;
    s->word_room = LOP_SIGN_SHORT;
    s->leaf_room = s->number_room = s->seen_room = s->value_room = LOP_SIGN_FEW;
    s->by_class = false;
    s->word = s->few_word;
    s->serial = s->few_serial;
    s->number = s->few_number;
    s->seen = s->few_seen;
    s->value = s->few_value;
    s->by_serial = s->by_number = s->by_node = (lop_places){NULL, 0};
}

void lop_sign_close(lop_sign *s) {
    if (s->word != s->few_word) lop_free(s->ctx, s->word);
    if (s->serial != s->few_serial) lop_free(s->ctx, s->serial);
    if (s->number != s->few_number) lop_free(s->ctx, s->number);
    if (s->seen != s->few_seen) lop_free(s->ctx, s->seen);
    if (s->value != s->few_value) lop_free(s->ctx, s->value);
    lop_free(s->ctx, s->by_serial.at);
    lop_free(s->ctx, s->by_number.at);
    lop_free(s->ctx, s->by_node.at);
}

/* Twice the room, and at least `least` (0: twice): the memory in place of `at`; NULL: there is
 * none, or no more than `most` are taken. */
static void *more(lop_ctx *ctx, void *at, const void *few, int *room, int least, int most,
                  size_t each) {
    int next = *room > most / 2 ? most : 2 * *room;
    if (next < least) next = least;
    if (next <= *room || next > most) return NULL;
    const bool own = at != few;
    void *bigger = lop_realloc(ctx, own ? at : NULL, (size_t)next * each);
    if (!bigger) return NULL;
    if (!own) memcpy(bigger, few, (size_t)*room * each);
    *room = next;
    return bigger;
}

static bool more_words(lop_sign *s) {
    uint64_t *word =
        more(s->ctx, s->word, s->few_word, &s->word_room, 0, LOP_SIGN_WORDS, sizeof *word);
    if (word) s->word = word;
    return word != NULL;
}

bool lop_sign_word(lop_sign *s, uint64_t word) {
    if (s->n == s->word_room && !more_words(s)) return false;
    s->word[s->n++] = word;
    uint64_t h = (s->hash ^ word) * 0xff51afd7ed558ccdu;
    s->hash = h ^ (h >> 29);
    return true;
}

bool lop_sign_values(lop_sign *s, int n) {
    if (n <= s->value_room) return true;
    lop_number *value =
        more(s->ctx, s->value, s->few_value, &s->value_room, n, LOP_ENTRIES, sizeof *value);
    if (value) s->value = value;
    return value != NULL;
}

/* -- what has come before */

typedef uint64_t key_of(const lop_sign *s, int i);
static uint64_t key_of_leaf(const lop_sign *s, int i) { return s->serial[i]; }
static uint64_t key_of_node(const lop_sign *s, int i) {
    return (uint64_t)(uintptr_t)s->seen[i].node;
}
static uint64_t key_of_pair(lop_number x) {
    uint64_t re, im;
    memcpy(&re, &x.re, 8);
    memcpy(&im, &x.im, 8);
    return re ^ im * 0x9e3779b97f4a7c15u;
}
static uint64_t key_of_number(const lop_sign *s, int i) { return key_of_pair(s->number[i]); }

static uint64_t spread(uint64_t h) {
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 29);
}

/* The one of this key (and this number, if it is one), or -1. */
static int find(const lop_sign *s, const lop_places *p, key_of *of, uint64_t key,
                const lop_number *own) {
    const uint64_t mask = (uint64_t)(p->room - 1);
    for (uint64_t i = spread(key) & mask; p->at[i]; i = (i + 1) & mask) {
        const int at = p->at[i] - 1;
        if (of(s, at) == key && (!own || lop_number_equal(s->number[at], *own))) return at;
    }
    return -1;
}

static void put(const lop_sign *s, lop_places *p, key_of *of, int at) {
    const uint64_t mask = (uint64_t)(p->room - 1);
    uint64_t i = spread(of(s, at)) & mask;
    while (p->at[i]) i = (i + 1) & mask;
    p->at[i] = at + 1;
}

/* The last of `n` into the table, which there is from LOP_SIGN_FEW on; false: no memory. */
static bool enter(const lop_sign *s, lop_places *p, key_of *of, int n) {
    if (n < LOP_SIGN_FEW) return true;
    if (2 * n <= p->room) {
        put(s, p, of, n - 1);
        return true;
    }
    const int room = p->room ? 2 * p->room : 128;
    int *at = lop_calloc(s->ctx, (size_t)room, sizeof *at);
    if (!at) return false;
    lop_free(s->ctx, p->at);
    *p = (lop_places){at, room};
    for (int i = 0; i < n; i++) put(s, p, of, i);
    return true;
}

int lop_sign_leaf(const lop_sign *s, uint64_t serial) {
    if (s->by_serial.room) return find(s, &s->by_serial, key_of_leaf, serial, NULL);
    for (int i = 0; i < s->leaves; i++)
        if (s->serial[i] == serial) return i;
    return -1;
}

/* The leaf's number by first appearance, or -1: no room. */
static int number_of(lop_sign *s, uint64_t serial) {
    const int known = lop_sign_leaf(s, serial);
    if (known >= 0) return known;
    if (s->leaves == s->leaf_room) {
        uint64_t *at =
            more(s->ctx, s->serial, s->few_serial, &s->leaf_room, 0, LOP_SIGN_LEAVES, sizeof *at);
        if (!at) return -1;
        s->serial = at;
    }
    s->serial[s->leaves++] = serial;
    return enter(s, &s->by_serial, key_of_leaf, s->leaves) ? s->leaves - 1 : -1;
}

/* The same of a coefficient that is named. */
static int source_of(lop_sign *s, lop_number own) {
    int i = 0;
    if (s->by_number.room)
        i = find(s, &s->by_number, key_of_number, key_of_pair(own), &own);
    else
        while (i < s->numbers && !lop_number_equal(s->number[i], own)) i++;
    if (i >= 0 && i < s->numbers) return i;
    if (s->numbers == s->number_room) {
        lop_number *at =
            more(s->ctx, s->number, s->few_number, &s->number_room, 0, LOP_SOURCES, sizeof *at);
        if (!at) return -1;
        s->number = at;
    }
    s->number[s->numbers++] = own;
    return enter(s, &s->by_number, key_of_number, s->numbers) ? s->numbers - 1 : -1;
}

/* Of a node that has come before, the place of its words: one word for all that is below it. Only
 * nodes that something else refers to can come again; where there is no room for more of them they
 * are written in full. */
static int place_of(lop_sign *s, const lop_node *n) {
    if (n->refs < 2 || n->n == 0) return -1;
    int i = 0;
    if (s->by_node.room)
        i = find(s, &s->by_node, key_of_node, (uint64_t)(uintptr_t)n, NULL);
    else
        while (i < s->shared && s->seen[i].node != n) i++;
    if (i >= 0 && i < s->shared) return s->seen[i].at;
    if (s->shared == s->seen_room) {
        lop_sign_seen *at =
            more(s->ctx, s->seen, s->few_seen, &s->seen_room, 0, LOP_SIGN_SHARED, sizeof *at);
        if (!at) return -1;
        s->seen = at;
    }
    s->seen[s->shared++] = (lop_sign_seen){n, s->n};
    if (!enter(s, &s->by_node, key_of_node, s->shared)) s->shared--;
    return -1;
}

/* -- words */

/* A coefficient by its class: its sign, or that it is complex, and which of those before it has the
 * same value. */
static bool sign_class(lop_sign *s, const lop_attr *c) {
    const uint64_t kind = c->im != 0 ? 2 : c->re < 0;
    const int i = source_of(s, (lop_number){c->re, c->im});
    return i >= 0 && lop_sign_word(s, (uint64_t)(i + 1) << 2 | kind);
}

static bool sign_attr(lop_sign *s, const lop_node *n) {
    const lop_attr *a = &n->attr;
    const bool varies = s->by_class && lop_coef_may_vary(n);
    uint64_t re, im;
    memcpy(&re, &a->re, 8);
    memcpy(&im, &a->im, 8);
    bool fits = varies ? sign_class(s, a) : lop_sign_word(s, re) && lop_sign_word(s, im);
    for (int i = varies; i < 4; i++) fits = fits && lop_sign_word(s, (uint64_t)a->i[i]);
    return fits;
}

static bool sign_shape(lop_sign *s, const lop_shape *shape) {
    bool fits = true;
    for (int i = 0; i < shape->ndim; i++) fits = fits && lop_sign_word(s, (uint64_t)shape->dim[i]);
    return fits;
}

/* An array has no children: its number stands in the place of theirs. */
static bool sign_one(lop_sign *s, const lop_node *n) {
    static const lop_attr none;
    const bool plain = lop_attr_equal(&n->attr, &none);
    const int count = n->op == &lop_op_array ? number_of(s, n->serial) : n->n;
    if (count < 0 || count >= 1 << 18) return false;
    uint64_t head = (uint64_t)lop_op_id(n->op) | (uint64_t)n->dtype << 16 |
                    (uint64_t)n->weak << 24 | (uint64_t)n->core << 32 | (uint64_t)plain << 36 |
                    (uint64_t)n->shape.ndim << 37 | (uint64_t)count << 45 |
                    (uint64_t)(s->by_class && lop_coef_may_vary(n)) << 63;
    return lop_sign_word(s, head) && (plain || sign_attr(s, n)) &&
           (n->n > 0 || sign_shape(s, &n->shape));
}

bool lop_sign_node(lop_sign *s, const lop_node *root) {
    enum { FEW = 64 };
    const lop_node *few[FEW], **stack = few;
    int top = 0, room = FEW;
    bool fits = true;
    stack[top++] = root;
    while (fits && top > 0) {
        const lop_node *n = stack[--top];
        const int at = place_of(s, n);
        if (at >= 0) {
            fits = lop_sign_word(s, UINT16_MAX | (uint64_t)at << 16);
            continue;
        }
        fits = sign_one(s, n);
        if (fits && n->n > room - top) {
            const lop_node **bigger = more(s->ctx, (void *)stack, (const void *)few, &room,
                                           top + n->n, LOP_SIGN_WORDS, sizeof *bigger);
            fits = bigger != NULL;
            if (fits) stack = bigger;
        }
        for (int i = n->n - 1; fits && i >= 0; i--) stack[top++] = n->child[i];
    }
    if (stack != few) lop_free(s->ctx, (void *)stack);
    return fits;
}
