/* k_threads.h: the parts of one long loop, side by side.
 *
 *   lopk_parts --helpers start--> every thread takes the next part until none is left --joined-->
 *
 * No pool: helpers live as long as the call, so nothing is shared between calls and a forked child
 * has nothing to miss. A helper that cannot be started is done without. Parts are cut by sizes,
 * never by the number of threads or by who is first, so that the bits are those of one thread:
 * either no two of them write to one place, or those that do take turns (lopk_turn_*), in the order
 * of their numbers. */
#ifndef LOPK_THREADS_H
#define LOPK_THREADS_H

#include "base/buf.h"

/* What a call has: how many threads, and who may stop it. */
typedef struct lopk_team {
    int threads;              /* side by side, the caller's with them; below 2: that one alone */
    bool (*stop)(void *user); /* asked by the caller's thread alone, now and then; NULL: no one */
    void *user;
} lopk_team;

enum { LOPK_MAXTHREADS = 128 };

/* One thread's view of a part. */
typedef struct lopk_part {
    int64_t index;
    void *room; /* this thread's own memory, on a cache line, as the last part left it */
    bool first; /* the caller's thread */
    struct lopk_crew *crew;
} lopk_part;
typedef void (*lopk_part_run)(void *job, const lopk_part *part);

/* run(job, part) for index 0 .. count, each once, by up to `most` threads of the team (NULL: the
 * caller's alone); parts are begun in order. Each has `room` bytes: the caller's are `own`, on a
 * cache line. Blocks until all have ended. False: stopped, and some parts did not run to their end.
 */
bool lopk_parts(const lopk_team *team, int64_t most, int64_t count, size_t room, void *own,
                lopk_part_run run, void *job) LOP_MUST_CHECK;

/* Within a part, between stretches of work (20 us or more): has the call been stopped? Then the
 * part returns at once. */
bool lopk_stopped(const lopk_part *part) LOP_MUST_CHECK;

/* A place that parts write to in turn; `turn` is 0 at first. `wait` blocks until it is number `at`
 * (false: stopped), `pass` hands it to number at + 1. Each number is one part's, a later part's
 * than the one before. */
bool lopk_turn_wait(const lopk_part *part, const int *turn, int at) LOP_MUST_CHECK;
void lopk_turn_pass(const lopk_part *part, int *turn);

#endif
