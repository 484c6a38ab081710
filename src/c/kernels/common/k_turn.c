/* k_turn.c: a matrix copied and turned. Eight lines of x at a time, along long parts of them: what
 * is read runs on, and what is written fills whole lines of the cache (of 8 bytes), so that each is
 * fetched once. By tiles of 32 x 32, element by element, it took 1.4 to 2.2 times as long. */
#include "k_turn.h"

#include "k_clones.h"

#include <string.h>

enum { LINES = 8, LONG = 512 }; /* of a block, in elements */

/* An element of 16 bytes. */
typedef struct wide {
    uint64_t half[2];
} wide;

#define TURN(T)                                                                                    \
    LOPK_CLONES static void turn_##T(char *y, int64_t ldy, const char *x, int64_t ldx, int64_t m,  \
                                     int64_t n) {                                                  \
        const int64_t size = (int64_t)sizeof(T);                                                   \
        for (int64_t i = 0; i < m; i += LINES)                                                     \
            for (int64_t c = 0; c < n; c += LONG) {                                                \
                const int64_t end = n - c < LONG ? n : c + LONG,                                   \
                              lines = m - i < LINES ? m - i : LINES;                               \
                const char *from = x + i * ldx;                                                    \
                char *to = y + i * size;                                                           \
                if (lines == LINES) {                                                              \
                    for (int64_t j = c; j < end; j++) {                                            \
                        T v[LINES];                                                                \
                        for (int k = 0; k < LINES; k++)                                            \
                            memcpy(&v[k], from + k * ldx + j * size, sizeof(T));                   \
                        memcpy(to + j * ldy, v, sizeof v);                                         \
                    }                                                                              \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t j = c; j < end; j++)                                                  \
                    for (int64_t k = 0; k < lines; k++)                                            \
                        memcpy(to + j * ldy + k * size, from + k * ldx + j * size, sizeof(T));     \
            }                                                                                      \
    }
TURN(uint32_t)
TURN(uint64_t)
TURN(wide)
#undef TURN

void lopk_copy_turned(void *y, int64_t ldy, const void *x, int64_t ldx, int64_t m, int64_t n,
                      int64_t size) {
    if (size == 4)
        turn_uint32_t(y, ldy, x, ldx, m, n);
    else if (size == 8)
        turn_uint64_t(y, ldy, x, ldx, m, n);
    else
        turn_wide(y, ldy, x, ldx, m, n);
}
