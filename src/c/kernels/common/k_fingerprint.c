/* k_fingerprint.c: 128-bit fingerprint of a matrix's bytes and layout.
 *
 * Eight words w of 64 bits a round, with eight accumulators a and keys k of the round:
 *   a[i] += (low half ^ high half of (w[i] ^ k[i])) times the high half,  a[i ^ 1] += w[i]
 * so that a product that vanishes keeps the data, and one word that changes always changes an
 * accumulator; both factors have the high half, since the low one of small integers as doubles is
 * 0, and a product of which one factor is constant would be linear: the same for all their orders
 * in a block as the sum is. After sixteen rounds each is stirred, a <- (a ^ (a >> 47) ^ k) * prime,
 * which loses nothing. At the end they are folded by 128-bit products, and three more steps finish.
 * The loop is XXH3's (Collet), with keys of our own (splitmix64 of 0); the folding is of our own
 * after wyhash (Wang Yi). Not cryptographic: chance collisions only. Cost: one reading, at 50 GB/s
 * in cache (2026-11, EPYC; 28 without AVX2), outside it at that of memory. Strided matrices go line
 * by line, gathered through a 1 KiB buffer when no line is contiguous. */
#include "k_fingerprint.h"
#include "k_clones.h"
#include "kernels.h"

#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#define PRIME 0x9e3779b1u
enum { WORDS = 8, ROUND = 64, BLOCK = 16, GATHER = 1024 };

typedef unsigned __int128 u128;

static const uint64_t secret[BLOCK + WORDS] = {
    0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu,
    0x1b39896a51a8749bu, 0x53cb9f0c747ea2eau, 0x2c829abe1f4532e1u, 0xc584133ac916ab3cu,
    0x3ee5789041c98ac3u, 0xf3b8488c368cb0a6u, 0x657eecdd3cb13d09u, 0xc2d326e0055bdef6u,
    0x8621a03fe0bbdb7bu, 0x8e1f7555983aa92fu, 0xb54e0f1600cc4d19u, 0x84bb3f97971d80abu,
    0x7d29825c75521255u, 0xc3cf17102b7f7f86u, 0x3466e9a083914f64u, 0xd81a8d2b5a4485acu,
    0xdb01602b100b9ed7u, 0xa9038a921825f10du, 0xedf5f1d90dca2f6au, 0x54496ad67bd2634cu,
};

typedef struct state {
    uint64_t s[WORDS];
    unsigned char rest[ROUND];
    size_t held; /* bytes in rest, < ROUND */
    size_t at;   /* rounds since the last stirring, < BLOCK */
    uint64_t total;
} state;

static inline uint64_t rotl(uint64_t x, int r) { return (x << r) | (x >> (64 - r)); }

static inline void step(uint64_t *s0, uint64_t *s1, uint64_t d0, uint64_t d1) {
    const u128 w = (u128)(d0 ^ *s0) * (d1 ^ *s1);
    *s0 = rotl(*s0 ^ (uint64_t)w, 29) + d1;
    *s1 = rotl(*s1 ^ (uint64_t)(w >> 64), 31) + d0;
}

static inline void one_round(uint64_t *restrict s, const unsigned char *restrict p,
                             const uint64_t *key) {
    uint64_t w[WORDS], t[WORDS];
    memcpy(w, p, sizeof w);
    for (int i = 0; i < WORDS; i++) t[i] = w[i] ^ key[i];
    for (int i = 0; i < WORDS; i++) t[i] = ((t[i] ^ (t[i] >> 32)) & 0xffffffffu) * (t[i] >> 32);
    for (int i = 0; i < WORDS; i++) s[i] += t[i] + w[i ^ 1];
}
static inline void stir(uint64_t *restrict s) {
    for (int i = 0; i < WORDS; i++) s[i] = (s[i] ^ (s[i] >> 47) ^ secret[BLOCK + i]) * PRIME;
}

static const unsigned char *blocks_plain(uint64_t *restrict s, const unsigned char *restrict p,
                                         size_t count) {
    for (; count > 0; count--) {
        for (int r = 0; r < BLOCK; r++, p += ROUND) one_round(s, p, secret + r);
        stir(s);
    }
    return p;
}

/* The same in vectors, written out: gcc 12 makes three products of each of these where it sees the
 * loop above, or none that is a vector's. Vectors of eight words are no faster (2026-11, EPYC). */
#if defined(__x86_64__) && defined(__GNUC__)
#define BLOCKS(isa, target_isa, vec, op, bits)                                                     \
    __attribute__((target(target_isa))) static const unsigned char *blocks_##isa(                  \
        uint64_t *restrict s, const unsigned char *restrict p, size_t count) {                     \
        enum { EACH = sizeof(vec) / 8, MANY = WORDS / EACH };                                      \
        static const uint64_t primes[WORDS] = {PRIME, PRIME, PRIME, PRIME,                         \
                                               PRIME, PRIME, PRIME, PRIME};                        \
        const vec prime = op##_loadu_##bits((const void *)primes);                                 \
        vec a[MANY];                                                                               \
        for (int i = 0; i < MANY; i++) a[i] = op##_loadu_##bits((const void *)(s + EACH * i));     \
        for (; count > 0; count--) {                                                               \
            for (int r = 0; r < BLOCK; r++, p += ROUND)                                            \
                for (int i = 0; i < MANY; i++) {                                                   \
                    const vec w = op##_loadu_##bits((const void *)(p + 8 * EACH * i)),             \
                              k = op##_loadu_##bits((const void *)(secret + r + EACH * i)),        \
                              t = op##_xor_##bits(w, k), high = op##_srli_epi64(t, 32),            \
                              product = op##_mul_epu32(op##_xor_##bits(t, high), high),            \
                              other = op##_shuffle_epi32(w, 0x4e);                                 \
                    a[i] = op##_add_epi64(a[i], op##_add_epi64(product, other));                   \
                }                                                                                  \
            for (int i = 0; i < MANY; i++) { /* stir */                                            \
                const vec k = op##_loadu_##bits((const void *)(secret + BLOCK + EACH * i)),        \
                          u = op##_xor_##bits(a[i], op##_srli_epi64(a[i], 47)),                    \
                          t = op##_xor_##bits(u, k),                                               \
                          high = op##_mul_epu32(op##_srli_epi64(t, 32), prime);                    \
                a[i] = op##_add_epi64(op##_mul_epu32(t, prime), op##_slli_epi64(high, 32));        \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < MANY; i++) op##_storeu_##bits((void *)(s + EACH * i), a[i]);           \
        return p;                                                                                  \
    }
BLOCKS(sse2, "sse2", __m128i, _mm, si128)
BLOCKS(avx2, "avx2", __m256i, _mm256, si256)
#undef BLOCKS
#endif

int lopk_fingerprint_force = LOPK_ONLY ? LOPK_ONLY : 2;
static const unsigned char *blocks(uint64_t *restrict s, const unsigned char *restrict p,
                                   size_t count) {
    const int force = lopk_fingerprint_force;
#if defined(__x86_64__) && defined(__GNUC__)
    if (force >= 2 && __builtin_cpu_supports("avx2")) return blocks_avx2(s, p, count);
    if (force != 0) return blocks_sse2(s, p, count);
#endif
    (void)force;
    return blocks_plain(s, p, count);
}

static void rounds(state *st, const unsigned char *p, size_t count) {
    while (count > 0 && (st->at > 0 || count < BLOCK)) {
        one_round(st->s, p, secret + st->at);
        p += ROUND;
        count--;
        if (++st->at == BLOCK) {
            stir(st->s);
            st->at = 0;
        }
    }
    if (count >= BLOCK) p = blocks(st->s, p, count / BLOCK);
    for (count %= BLOCK; count > 0; count--, p += ROUND) one_round(st->s, p, secret + st->at++);
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
    for (int l = 0; l < WORDS; l += 2)
        step(&lo, &hi, st->s[l] ^ secret[l], st->s[l + 1] ^ secret[l + 1]);
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
    state st = {.held = 0, .at = 0, .total = 0};
    for (int l = 0; l < WORDS; l++)
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
