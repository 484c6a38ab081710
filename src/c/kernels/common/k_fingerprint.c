/* k_fingerprint.c: 128-bit fingerprint of a matrix's bytes and layout.
 *
 * Four lanes of two 64-bit words take 64 bytes a round. A lane's step with the words d0, d1:
 *   (h, l) = 128-bit product of (d0 ^ s0) and (d1 ^ s1)
 *   s0 <- rotl(s0 ^ l, 29) + d1,  s1 <- rotl(s1 ^ h, 31) + d0
 * so that even a vanishing product keeps the data. The lanes are folded by the same step with odd
 * constants, and three more steps finish. Own design after wyhash (Wang Yi) and XXH3 (Collet):
 * their multiply-and-fold, but with 128 bits of state a lane. Not cryptographic: chance collisions
 * only. Cost: about 5 bytes a cycle a lane pair in cache, the speed of memory outside it. Strided
 * matrices go line by line, gathered through a 1 KiB buffer when no line is contiguous. */
#include "k_clones.h"
#include "kernels.h"

#include <string.h>

enum { LANES = 4, ROUND = 64, GATHER = 1024 };

typedef unsigned __int128 u128;

static const uint64_t secret[8] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                                   0xd6e8feb86659fd93u, 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu,
                                   0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u};

typedef struct state {
    uint64_t s[2 * LANES];
    unsigned char rest[ROUND];
    size_t held; /* bytes in rest, < ROUND */
    uint64_t total;
} state;

static inline uint64_t rotl(uint64_t x, int r) { return (x << r) | (x >> (64 - r)); }

static inline void step(uint64_t *s0, uint64_t *s1, uint64_t d0, uint64_t d1) {
    const u128 w = (u128)(d0 ^ *s0) * (d1 ^ *s1);
    *s0 = rotl(*s0 ^ (uint64_t)w, 29) + d1;
    *s1 = rotl(*s1 ^ (uint64_t)(w >> 64), 31) + d0;
}

static inline uint64_t word(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void rounds(state *st, const unsigned char *p, size_t count) {
    uint64_t a0 = st->s[0], a1 = st->s[1], b0 = st->s[2], b1 = st->s[3];
    uint64_t c0 = st->s[4], c1 = st->s[5], d0 = st->s[6], d1 = st->s[7];
    for (; count > 0; count--, p += ROUND) {
        step(&a0, &a1, word(p), word(p + 8));
        step(&b0, &b1, word(p + 16), word(p + 24));
        step(&c0, &c1, word(p + 32), word(p + 40));
        step(&d0, &d1, word(p + 48), word(p + 56));
    }
    const uint64_t back[2 * LANES] = {a0, a1, b0, b1, c0, c1, d0, d1};
    memcpy(st->s, back, sizeof back);
}

static void feed(state *st, const unsigned char *p, size_t bytes) {
    st->total += bytes;
    if (st->held > 0) {
        const size_t take = bytes < ROUND - st->held ? bytes : ROUND - st->held;
        memcpy(st->rest + st->held, p, take);
        st->held += take;
        p += take;
        bytes -= take;
        if (st->held < ROUND) return;
        rounds(st, st->rest, 1);
        st->held = 0;
    }
    rounds(st, p, bytes / ROUND);
    st->held = bytes % ROUND;
    if (st->held > 0) memcpy(st->rest, p + (bytes - st->held), st->held);
}

static lop_fingerprint finish(state *st) {
    memset(st->rest + st->held, 0, ROUND - st->held);
    rounds(st, st->rest, 1);
    uint64_t lo = st->total ^ secret[0], hi = secret[1];
    for (int l = 0; l < LANES; l++)
        step(&lo, &hi, st->s[2 * l] ^ secret[2 * l], st->s[2 * l + 1] ^ secret[2 * l + 1]);
    for (int l = 0; l < 3; l++) step(&lo, &hi, secret[2 * l + 2], secret[2 * l + 3]);
    return (lop_fingerprint){lo, hi};
}

/* n elements of `size` bytes, stride bytes apart. */
static void feed_line(state *st, const unsigned char *p, int64_t n, int64_t stride, int64_t size) {
    if (stride == size) {
        feed(st, p, (size_t)(n * size));
        return;
    }
    unsigned char buffer[GATHER];
    const int64_t fit = GATHER / size;
    for (int64_t i = 0; i < n; i += fit) {
        const int64_t len = n - i < fit ? n - i : fit;
        for (int64_t j = 0; j < len; j++)
            memcpy(buffer + j * size, p + (i + j) * stride, (size_t)size);
        feed(st, buffer, (size_t)(len * size));
    }
}

lop_fingerprint lopk_fingerprint(lop_fingerprint seed, const lop_mat *a) {
    static const int64_t sizes[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = (bytes),
#include "base/dtype.def"
#undef LOP_DTYPE
    };
    const int64_t size = sizes[a->dt];
    state st = {.held = 0, .total = 0};
    for (int l = 0; l < 2 * LANES; l++)
        st.s[l] = secret[l] + (l % 2 ? seed.hi : seed.lo) * (secret[(l + 3) % 8] | 1);
    const uint64_t layout[ROUND / 8] = {
        (uint64_t)a->m,  (uint64_t)a->n, (uint64_t)a->rs, (uint64_t)a->cs,
        (uint64_t)a->dt, seed.lo,        seed.hi,         0};
    feed(&st, (const unsigned char *)layout, sizeof layout);
    const unsigned char *p = a->p;
    if (a->m == 0 || a->n == 0) return finish(&st);
    if (lop_mat_is_c(a) || lop_mat_is_f(a))
        feed(&st, p, (size_t)(a->m * a->n * size));
    else if (a->rs < a->cs)
        for (int64_t j = 0; j < a->n; j++)
            feed_line(&st, p + j * a->cs * size, a->m, a->rs * size, size);
    else
        for (int64_t i = 0; i < a->m; i++)
            feed_line(&st, p + i * a->rs * size, a->n, a->cs * size, size);
    return finish(&st);
}
