/* k_threads.c: fork and join by POSIX threads, see k_threads.h. Measured 2026-11: 20 us a helper.
 *
 * One lock and one condition a call. The next part and the word that it is over are atomic, so that
 * taking and asking need no lock; turns and ends are few. The caller never waits longer than PAUSE
 * without asking whether it is to stop, and holds no lock while it asks. */
#define _POSIX_C_SOURCE 200809L
#include "k_threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* ns; bytes of a helper's stack beside its room: libraries' thread-local data lie there too. */
enum { PAUSE = 50000000, STACK = 2 << 20, MOST_ROOM = 64 << 20 };

typedef struct lopk_crew {
    const lopk_team *team;
    lopk_part_run run;
    void *job;
    int64_t count;
    size_t room;
    _Atomic int64_t next;
    atomic_bool over;
    int busy; /* helpers that have not ended; under the lock, as are the turns */
    pthread_mutex_t lock;
    pthread_cond_t moved;
} lopk_crew;

static bool is_over(const lopk_crew *c) {
    return atomic_load_explicit(&c->over, memory_order_relaxed);
}

static bool ask(lopk_crew *c) {
    if (is_over(c)) return true;
    if (!c->team || !c->team->stop || !c->team->stop(c->team->user)) return false;
    pthread_mutex_lock(&c->lock);
    atomic_store_explicit(&c->over, true, memory_order_relaxed);
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    return true;
}

bool lopk_stopped(const lopk_part *part) {
    return part->first ? ask(part->crew) : is_over(part->crew);
}

/* Until something has moved, under the lock; the caller's thread also asks. */
static void wait_once(lopk_crew *c, bool first) {
    struct timespec until;
    if (!first || !c->team->stop || clock_gettime(CLOCK_REALTIME, &until)) {
        pthread_cond_wait(&c->moved, &c->lock);
        return;
    }
    until.tv_nsec += PAUSE;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&c->moved, &c->lock, &until) == 0) return;
    pthread_mutex_unlock(&c->lock);
    (void)ask(c);
    pthread_mutex_lock(&c->lock);
}

bool lopk_turn_wait(const lopk_part *part, const int *turn, int at) {
    lopk_crew *c = part->crew;
    pthread_mutex_lock(&c->lock);
    while (*turn != at && !is_over(c)) wait_once(c, part->first);
    pthread_mutex_unlock(&c->lock);
    return !is_over(c);
}

void lopk_turn_pass(const lopk_part *part, int *turn) {
    lopk_crew *c = part->crew;
    pthread_mutex_lock(&c->lock);
    ++*turn;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
}

static void work(lopk_crew *c, bool first, void *room) {
    lopk_part part = {.room = room, .first = first, .crew = c};
    while (!lopk_stopped(&part)) {
        part.index = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
        if (part.index >= c->count) return;
        c->run(c->job, &part);
    }
}

static void *help(void *crew) {
    lopk_crew *c = crew;
    unsigned char room[c->room + 64];
    work(c, false, (void *)(((uintptr_t)room + 63) & ~(uintptr_t)63));
    pthread_mutex_lock(&c->lock);
    c->busy--;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Starts up to n helpers, to whom no signal is sent but for faults of their own. */
static int start(lopk_crew *c, pthread_t *helper, int n) {
    pthread_attr_t attr;
    sigset_t all, before;
    int started = 0;
    if (pthread_attr_init(&attr)) return 0;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    c->busy = n; /* before they run: those that did not start are taken off */
    if (pthread_attr_setstacksize(&attr, (c->room + STACK + 0xffff) & ~(size_t)0xffff) == 0 &&
        pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        while (started < n && pthread_create(&helper[started], &attr, help, c) == 0) started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attr);
    pthread_mutex_lock(&c->lock);
    c->busy -= n - started;
    pthread_mutex_unlock(&c->lock);
    return started;
}

bool lopk_parts(const lopk_team *team, int64_t most, int64_t count, size_t room, void *own,
                lopk_part_run run, void *job) {
    lopk_crew c = {.team = team,
                   .run = run,
                   .job = job,
                   .count = count,
                   .room = room,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .moved = PTHREAD_COND_INITIALIZER};
    pthread_t helper[LOPK_MAXTHREADS];
    int64_t threads = team && room <= MOST_ROOM ? team->threads : 1;
    if (threads > most) threads = most;
    if (threads > count) threads = count;
    if (threads > LOPK_MAXTHREADS) threads = LOPK_MAXTHREADS;
    const int n = threads > 1 ? start(&c, helper, (int)threads - 1) : 0;
    work(&c, true, own);
    pthread_mutex_lock(&c.lock);
    while (c.busy > 0) wait_once(&c, true);
    pthread_mutex_unlock(&c.lock);
    for (int i = 0; i < n; i++) pthread_join(helper[i], NULL);
    pthread_cond_destroy(&c.moved);
    pthread_mutex_destroy(&c.lock);
    return !is_over(&c);
}
