/* k_whole_of_half_per_isa.h: the loops of k_whole_of_half.c for one instruction set; included once
 * per set, which defines ISA (a name). A square is as many lines as a vector has elements: four of
 * 8 bytes, eight of 4. */
#define X(name) LOPK_CAT(LOPK_CAT(name, _), ISA)

static INLINE void X(turn_8)(wide *r, const wide *v) {
    wide u[4];
    UNROLL for (int i = 0; i < 4; i += 2) {
        u[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 4, 2, 6);
        u[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 5, 3, 7);
    }
    UNROLL for (int i = 0; i < 2; i++) {
        r[i] = __builtin_shufflevector(u[i], u[i + 2], 0, 1, 4, 5);
        r[i + 2] = __builtin_shufflevector(u[i], u[i + 2], 2, 3, 6, 7);
    }
}
static INLINE void X(turn_4)(wide *r, const wide *v) {
    slim u[8];
    wide w[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
        const slim p = (slim)v[i], q = (slim)v[i + 1];
        u[i] = __builtin_shufflevector(p, q, 0, 8, 2, 10, 4, 12, 6, 14);
        u[i + 1] = __builtin_shufflevector(p, q, 1, 9, 3, 11, 5, 13, 7, 15);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int j = 0; j < 2; j++) {
        const wide p = (wide)u[i + j], q = (wide)u[i + j + 2];
        w[i + j] = __builtin_shufflevector(p, q, 0, 4, 2, 6);
        w[i + j + 2] = __builtin_shufflevector(p, q, 1, 5, 3, 7);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        r[i] = __builtin_shufflevector(w[i], w[i + 4], 0, 1, 4, 5);
        r[i + 4] = __builtin_shufflevector(w[i], w[i + 4], 2, 3, 6, 7);
    }
}

/* A square's lines, and those of the square turned. */
static INLINE void X(square)(wide *v, wide *r, const char *a, int64_t lda, const int side) {
    UNROLL for (int i = 0; i < side; i++) v[i] = *(const wide_at *)(a + i * lda);
    if (side == 4)
        X(turn_8)(r, v);
    else
        X(turn_4)(r, v);
}

#define ALL(x) {x, x, x, x}
/* A square beside the diagonal to y and turned to t; to, over: bits to change there. */
static INLINE void X(beside)(char *y, int64_t ldy, char *t, int64_t ldt, const char *a, int64_t lda,
                             const int side, uint64_t to, uint64_t over) {
    const wide plain = ALL(to), minus = ALL(over);
    wide v[8], r[8];
    X(square)(v, r, a, lda, side);
    UNROLL for (int i = 0; i < side; i++) * (wide_at *)(y + i * ldy) = v[i] ^ plain;
    UNROLL for (int i = 0; i < side; i++) * (wide_at *)(t + i * ldt) = r[i] ^ minus;
}
/* One on it: what lies on the other side is masked away. keep: as many vectors of bits. */
static INLINE void X(on)(char *y, int64_t ldy, const char *a, int64_t lda, const int side,
                         const wide *keep, uint64_t to, uint64_t over) {
    const wide plain = ALL(to), minus = ALL(over);
    wide v[8], r[8];
    X(square)(v, r, a, lda, side);
    UNROLL for (int i = 0; i < side; i++) {
        *(wide_at *)(y + i * ldy) = ((v[i] ^ plain) & keep[i]) | ((r[i] ^ minus) & ~keep[i]);
    }
}
#undef ALL

/* m lines of n elements beside the diagonal, element by element. */
static INLINE void X(rest)(char *y, int64_t ldy, char *t, int64_t ldt, const char *a, int64_t lda,
                           int64_t m, int64_t n, const int64_t size, uint64_t plain,
                           uint64_t minus) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            one(y + i * ldy + j * size, a + i * lda + j * size, (size_t)size, plain);
            one(t + j * ldt + i * size, a + i * lda + j * size, (size_t)size, minus);
        }
}

/* The lines i .. i + m, m whole squares or the rest, of columns j .. past. */
static INLINE void X(strip)(char *y, int64_t ldy, const char *a, int64_t lda, int64_t i, int64_t m,
                            int64_t j, int64_t past, const int64_t size, uint64_t plain,
                            uint64_t minus) {
    const int side = size == 4 ? 8 : 4;
    for (; size < 16 && m == side && j + side <= past; j += side)
        X(beside)(y + i * ldy + j * size, ldy, y + j * ldy + i * size, ldy, a + i * lda + j * size,
                  lda, side, plain, minus);
    X(rest)(y + i * ldy + j * size, ldy, y + j * ldy + i * size, ldy, a + i * lda + j * size, lda,
            m, past - j, size, plain, minus);
}

/* A block of the lines b .. and the columns c .. end; it lies on the diagonal where b is c. */
#define WHOLE(SIZE)                                                                                \
    static INLINE void X(block_##SIZE)(char *y, int64_t ldy, const char *a, int64_t lda,           \
                                       int64_t n, bool upper, const wide *keep, int64_t b,         \
                                       int64_t c, int64_t end, uint64_t plain, uint64_t minus) {   \
        const int side = SIZE == 4 ? 8 : 4;                                                        \
        const bool main = b == c;                                                                  \
        for (int64_t i = b; i < min_of(n, b + LINES); i += side) {                                 \
            const int64_t m = min_of(side, n - i);                                                 \
            X(strip)(y, ldy, a, lda, i, m, main && upper ? i + m : c, main && !upper ? i : end,    \
                     SIZE, plain, minus);                                                          \
            if (main && SIZE < 16 && m == side)                                                    \
                X(on)(y + i * (ldy + SIZE), ldy, a + i * (lda + SIZE), lda, side, keep, plain,     \
                      minus);                                                                      \
            else if (main)                                                                         \
                for (int64_t p = i; p < i + m; p++) {                                              \
                    const int64_t q = upper ? p : i, k = upper ? i + m - p : p - i + 1;            \
                    X(rest)(y + p * ldy + q * SIZE, ldy, y + q * ldy + p * SIZE, ldy,              \
                            a + p * lda + q * SIZE, lda, 1, k, SIZE, plain, minus);                \
                }                                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void X(whole_##SIZE)(char *y, int64_t ldy, const char *a, int64_t lda, int64_t n,       \
                                bool upper, uint64_t plain, uint64_t minus) {                      \
        wide keep[8];                                                                              \
        memcpy(keep, masks(SIZE, upper), SIZE == 4 ? sizeof keep : sizeof keep / 2);               \
        for (int64_t b = 0; b < n; b += LINES) {                                                   \
            const int64_t past = min_of(n, b + LINES), right = upper ? n : b;                      \
            X(block_##SIZE)(y, ldy, a, lda, n, upper, keep, b, b, past, plain, minus);             \
            for (int64_t c = upper ? past : 0; c < right; c += LONG)                               \
                X(block_##SIZE)(y, ldy, a, lda, n, upper, keep, b, c, min_of(right, c + LONG),     \
                                plain, minus);                                                     \
        }                                                                                          \
    }
WHOLE(4)
WHOLE(8)
WHOLE(16)
#undef WHOLE

static const half_loop LOPK_CAT(loops_, ISA)[3] = {X(whole_4), X(whole_8), X(whole_16)};
#undef X
#undef ISA
