/* test_threads.c: parts of a loop side by side: each once, in turns, stopped, on fewer threads than
 * asked for; and the kernels that use them: the same bits on any number of threads.
 *
 * By hand under ThreadSanitizer: gcc -g -O1 -fsanitize=thread, see test_kernels.c for the rest. */
#include "kernels/kernel_matrix/k_kernel_matrix.h"
#include "kernels/common/k_threads.h"
#include "kernels/common/kernels.h"
#include "support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { COUNT = 500, PLACES = 7, ROOM = 1000 };

/* -- parts */

typedef struct tally {
    int64_t times[COUNT]; /* each part's own */
    double sum[PLACES];   /* written in turns: not associative */
    int turn[PLACES];
    atomic_int first, misplaced, dirty;
    int64_t asked, stop_at; /* -1: never */
} tally;

static void one_part(void *job, const lopk_part *part) {
    tally *t = job;
    unsigned char *room = part->room;
    if (((uintptr_t)room & 63) != 0) t->misplaced++;
    memset(room, (int)(part->index % 251), ROOM);
    if (lopk_stopped(part)) return;
    t->times[part->index]++;
    if (part->first) t->first++;
    for (int i = 0; i < ROOM; i++)
        if (room[i] != part->index % 251) t->dirty++;
    const int place = (int)(part->index % PLACES);
    if (!lopk_turn_wait(part, &t->turn[place], (int)(part->index / PLACES))) return;
    t->sum[place] = (t->sum[place] + (double)part->index) / 3;
    lopk_turn_pass(part, &t->turn[place]);
}

static bool stop(void *user) {
    tally *t = user;
    return t->stop_at >= 0 && ++t->asked > t->stop_at;
}

static void test_parts(void) {
    static _Alignas(64) unsigned char own[ROOM];
    double want[PLACES] = {0};
    for (int i = 0; i < COUNT; i++) want[i % PLACES] = (want[i % PLACES] + i) / 3;
    for (int threads = 0; threads < 10; threads++)
        for (int most = 1; most < 12; most += 5) {
            tally t = {.stop_at = -1};
            const lopk_team team = {threads, threads & 1 ? stop : NULL, &t};
            const bool alone = threads < 2 || most < 2;
            t_check(lopk_parts(threads ? &team : NULL, most, COUNT, ROOM, own, one_part, &t),
                    "%d threads end", threads);
            bool once = true;
            for (int i = 0; i < COUNT; i++) once = once && t.times[i] == 1;
            t_check(once, "%d threads, most %d: each part once", threads, most);
            t_check(t.misplaced == 0 && t.dirty == 0, "%d threads: own room", threads);
            t_check(!alone || t.first == COUNT, "one thread is the caller's");
            t_check(memcmp(t.sum, want, sizeof want) == 0, "%d threads: in turns", threads);
        }
    tally none = {.stop_at = -1};
    t_check(lopk_parts(NULL, 4, 0, 0, own, one_part, &none) && none.times[0] == 0, "no parts");
    t_group("parts");
}

/* Ends only where the word reaches it: at work, or in a turn that never comes. */
static void endless(void *job, const lopk_part *part) {
    tally *t = job;
    t->times[part->index]++;
    if (part->index % 2 && !lopk_turn_wait(part, &t->turn[0], 1)) return;
    while (!lopk_stopped(part)) {}
}

static void test_stopped(void) {
    static _Alignas(64) unsigned char own[ROOM];
    for (int threads = 1; threads < 6; threads++)
        for (int64_t at = 0; at < 40; at += 13) {
            tally t = {.stop_at = at};
            const lopk_team team = {threads, stop, &t};
            int ran = 0;
            t_check(!lopk_parts(&team, 100, COUNT, ROOM, own, endless, &t), "stopped");
            for (int i = 0; i < COUNT; i++) ran += (int)t.times[i];
            t_check(t.asked == at + 1, "asked %d times, not %d", (int)t.asked, (int)at + 1);
            t_check(ran <= threads, "%d threads: %d parts ran", threads, ran);
        }
    t_group("stopped parts");
}

/* No threads to be had: the caller's does it all. First, while no stack lies ready. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void test_refused(void) {} /* they end the process for want of memory */
#else
static void test_refused(void) {
    static _Alignas(64) unsigned char own[ROOM];
    struct rlimit before, none;
    if (getrlimit(RLIMIT_AS, &before)) return;
    none = before;
    none.rlim_cur = 1;
    tally t = {.stop_at = -1};
    const lopk_team team = {4, NULL, NULL};
    setrlimit(RLIMIT_AS, &none); /* nothing more can be mapped, no stack either */
    const bool ended = lopk_parts(&team, 4, COUNT, ROOM, own, one_part, &t);
    setrlimit(RLIMIT_AS, &before);
    t_check(ended && t.first == COUNT, "%d parts without helpers", (int)t.first);
    t_group("helpers refused");
}
#endif

/* -- kernels */

static void fill(lop_rng *r, double *p, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = (double)lop_rng_range(r, -1000, 1000) / 700;
}

typedef struct problem {
    lop_rng rng;
    double x[3000 * 2], y[3000 * 2], v[3000 * 3], out[2][3000 * 3], numbers[LOPK_WEIGHTS + 4];
} problem;

static bool run_kernel(problem *p, int which, int64_t m, int64_t n, int64_t columns, bool same,
                       const lopk_team *team, void *scratch) {
    const lop_mat x = {p->x, m, 2, 2, 1, LOP_f64}, y = {p->y, n, 2, 2, 1, LOP_f64},
                  v = {p->v, n, columns, columns, 1, LOP_f64},
                  out = {p->out[which], m, columns, columns, 1, LOP_f64};
    const lopk_kernel k = {LOPK_MATERN32, 0, false, x, same ? x : y, p->numbers};
    return lopk_kernel_apply(&out, &k, 1, same, &v, team, scratch);
}

static void test_kernels_bits(void) {
    static const int64_t sizes[][2] = {{1, 3000}, {3000, 1}, {900, 700}, {2999, 2001}};
    static const int64_t own[] = {1, 255, 256, 257, 700, 1024, 2999};
    problem *p = malloc(sizeof *p);
    const double length = 0.7;
    const lop_mat one = {(void *)(uintptr_t)&length, 1, 1, 1, 1, LOP_f64};
    const size_t bytes = lopk_kernel_scratch(2, LOP_f64, 3000, 3000, 3);
    void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p || !scratch) exit(2);
    p->rng = (lop_rng){7};
    fill(&p->rng, p->x, 6000), fill(&p->rng, p->y, 6000), fill(&p->rng, p->v, 9000);
    lopk_kernel_numbers(LOPK_MATERN32, 1.5, 1, &one, 2, p->numbers);
    for (int i = 0; i < 11; i++)
        for (int64_t columns = 1; columns < 4; columns += 2) {
            const bool same = i >= 4;
            const int64_t m = same ? own[i - 4] : sizes[i][0], n = same ? m : sizes[i][1];
            bool ended = run_kernel(p, 0, m, n, columns, same, NULL, scratch);
            for (int threads = 2; threads < 8; threads += 1 + threads / 3) {
                const lopk_team team = {threads, NULL, NULL};
                memset(p->out[1], 0xff, sizeof p->out[1]);
                ended = run_kernel(p, 1, m, n, columns, same, &team, scratch) && ended;
                t_check(ended && memcmp(p->out[0], p->out[1],
                                        (size_t)(m * columns) * sizeof(double)) == 0,
                        "kernel %d x %d, %d columns, %d threads: the bits of one", (int)m, (int)n,
                        (int)columns, threads);
            }
        }
    tally t = {.stop_at = 3};
    const lopk_team team = {2, stop, &t};
    t_check(!run_kernel(p, 1, 2999, 2999, 1, true, &team, scratch), "a kernel is stopped");
    t_check(!run_kernel(p, 1, 2999, 2001, 1, false, &team, scratch), "a kernel is stopped");
    free(p), free(scratch);
    t_group("kernel matrices");
}

int main(void) {
    test_refused();
    test_parts();
    test_stopped();
    test_kernels_bits();
    return t_end();
}
