/* chain_search.c: which of the equivalent states is cheapest.
 *
 * From the state as read (and, where a sum is applied to an array, the one with the array in every
 * term) the best of all moves is taken as long as it pays: a span that occurs twice, transposed or
 * not, becomes one shared array; a factor common to terms of a sum is taken out, of a Hermitian sum
 * from its half; a sum that occurs twice is computed once. At most LOP_CH_STATES states are priced.
 * Like terms are always merged. Then the same with the sums that are inverted opened, where that
 * shares a part with what stands outside: P H' in P H' (H P H' + R)^-1. */
#include "chain.h"
#include "rewrite/guards.h"

#include <string.h>

/* -- tidying */

static void drop(lop_chgroup *g, int i) {
    memmove(&g->term[i], &g->term[i + 1], (size_t)(g->n - i - 1) * sizeof *g->term);
    g->n--;
}

static bool same_factors(const lop_chterm *a, const lop_chterm *b) {
    return a->n == b->n && memcmp(a->f, b->f, (size_t)a->n * sizeof *a->f) == 0;
}

static bool merge(const lop_chain *ch, lop_chstate *st, lop_chgroup *g) {
    bool changed = false;
    for (int i = 0; i < g->n; i++)
        for (int j = i + 1; j < g->n; j++) {
            lop_chterm *a = &st->term[g->term[i]], *b = &st->term[g->term[j]];
            if (!same_factors(a, b)) continue;
            a->c = lop_coef_plus(ch->ctx, a->c, b->c);
            drop(g, j--);
            changed = true;
        }
    for (int i = 0; i < g->n; i++) {
        lop_chterm *t = &st->term[g->term[i]];
        bool zero = lop_coef_test(ch->ctx, t->c, LOP_COEF_ZERO);
        for (int j = 0; j < t->n && !zero; j++)
            zero = lop_sym_is_group(t->f[j]) && !lop_sym_inverse(t->f[j]) &&
                   st->group[lop_sym_group(t->f[j])].n == 0;
        if (!zero || ch->batched) continue; /* a batch may be what makes the shape */
        drop(g, i--);
        changed = true;
    }
    return changed;
}

/* Term `out` with its factor j replaced by a term of the sum it stands for. False: too long. */
static bool put_in(const lop_chain *ch, const lop_chstate *st, lop_chterm *out, int j,
                   const lop_chterm *in) {
    const lop_chterm t = *out;
    int mode = lop_sym_mode(t.f[j]);
    if (t.n + in->n - 1 > LOP_CH_FACTORS) return false;
    out->c = lop_coef_times(ch->ctx, t.c, (mode & LOP_C) ? lop_coef_conj(ch->ctx, in->c) : in->c);
    out->n = t.n + in->n - 1;
    for (int i = 0; i < in->n; i++)
        out->f[j + i] = lop_chain_seen(ch, st, in->f[(mode & LOP_T) ? in->n - 1 - i : i], mode);
    memcpy(out->f + j + in->n, t.f + j + 1, (size_t)(t.n - j - 1) * sizeof *t.f);
    return true;
}

/* A group of one term goes into the chains it stands in. */
static bool inline_single(const lop_chain *ch, lop_chstate *st, lop_chterm *t) {
    for (int j = 0; j < t->n; j++) {
        if (!lop_sym_is_group(t->f[j])) continue;
        const lop_chgroup *g = &st->group[lop_sym_group(t->f[j])];
        if (g->n != 1 || g->shared) continue;
        const lop_chterm *one = &st->term[g->term[0]];
        if (one == t || one->n == 0) continue;
        if (!put_in(ch, st, t, j, one)) continue;
        return true;
    }
    return false;
}

void lop_chain_tidy(const lop_chain *ch, lop_chstate *st) {
    bool changed = true;
    for (int round = 0; changed && round < 16; round++) {
        changed = false;
        for (int g = st->ngroup - 1; g >= 0; g--) {
            changed |= merge(ch, st, &st->group[g]);
            for (int i = 0; i < st->group[g].n; i++)
                changed |= inline_single(ch, st, &st->term[st->group[g].term[i]]);
        }
    }
}

/* Drops terms and groups that nothing uses any more, so that no move is tried on them. */
static void sweep_dead(const lop_chain *ch, lop_chstate *st) {
    bool live[LOP_CH_GROUPS] = {false}, used[LOP_CH_TERMS] = {false}, more = true;
    for (int g = 0; g < ch->nroot; g++) live[g] = true;
    while (more) {
        more = false;
        for (int g = 0; g < st->ngroup; g++)
            for (int i = 0; live[g] && i < st->group[g].n; i++) {
                const lop_chterm *t = &st->term[st->group[g].term[i]];
                used[st->group[g].term[i]] = true;
                for (int j = 0; j < t->n; j++) {
                    int h = lop_sym_is_group(t->f[j]) ? lop_sym_group(t->f[j]) : 0;
                    more |= !live[h];
                    live[h] = true;
                }
            }
    }
    for (int g = 0; g < st->ngroup; g++)
        if (!live[g]) st->group[g] = (lop_chgroup){.rows = 1, .cols = 1};
    for (int t = 0; t < st->nterm; t++)
        if (!used[t]) st->term[t].n = 0;
}

/* -- moves */

typedef struct search {
    lop_chain *ch;
    lop_chstate now, trial, best;
    double cost, best_cost; /* of now; of the best trial */
    bool found,
        moved; /* a trial was better: the state is no longer the one that the search began with */
    lop_chdp *keep;
} search;

static void try_state(search *s, const char *move) {
    lop_chain *ch = s->ch;
    if (ch->states >= LOP_CH_STATES) return;
    ch->states++;
    lop_chain_tidy(ch, &s->trial);
    sweep_dead(ch, &s->trial);
    double cost = lop_chain_cost(ch, &s->trial, NULL);
    if (cost < s->best_cost * (1 - 1e-6)) {
        s->best = s->trial;
        s->best_cost = cost;
        s->found = true;
    } else if (ch->trail) {
        lop_trail_other(ch->trail, -1, move, cost);
    }
}

static lop_chgroup *new_group(const lop_chain *ch, lop_chstate *st, const lop_sym *f, int n,
                              int *number) {
    if (st->ngroup == LOP_CH_GROUPS || st->nterm == LOP_CH_TERMS) return NULL;
    *number = st->ngroup++;
    lop_chgroup *g = &st->group[*number];
    *g = (lop_chgroup){.rows = lop_chain_rows(ch, st, f[0]),
                       .cols = lop_chain_cols(ch, st, f[n - 1])};
    return g;
}

static bool all_real(const lop_chain *ch, const lop_chstate *st, const lop_sym *f, int n) {
    for (int i = 0; i < n; i++)
        if (lop_sym_is_group(f[i]) ? !st->group[lop_sym_group(f[i])].real
                                   : !ch->atom[lop_sym_number(f[i])].real)
            return false;
    return true;
}

/* Does the span occur at t[at], seen through `mode`? */
static bool occurs(const search *s, const lop_chterm *t, int at, const lop_sym *f, int n,
                   int mode) {
    if (at + n > t->n) return false;
    for (int i = 0; i < n; i++) {
        lop_sym want = f[(mode & LOP_T) ? n - 1 - i : i];
        if (lop_chain_seen(s->ch, &s->now, want, mode) != t->f[at + i]) return false;
    }
    return true;
}

static int replace(const search *s, lop_chterm *t, const lop_sym *f, int n, lop_sym by) {
    int count = 0;
    for (int at = 0; at + n <= t->n; at++)
        for (int mode = 0; mode < 4; mode++) {
            if (!occurs(s, t, at, f, n, mode)) continue;
            t->f[at] = lop_chain_seen(s->ch, &s->trial, by, mode);
            memmove(t->f + at + 1, t->f + at + n, (size_t)(t->n - at - n) * sizeof *t->f);
            t->n -= n - 1;
            count++;
            break;
        }
    return count;
}

/* Makes the product of n factors the one term of a new group. */
static void be_product(lop_chstate *st, lop_chgroup *g, const lop_sym *f, int n) {
    g->n = 1;
    g->term[0] = (int16_t)st->nterm;
    lop_chterm *t = &st->term[st->nterm++];
    *t = (lop_chterm){.c = {.re = 1}, .n = n};
    memcpy(t->f, f, (size_t)n * sizeof *f);
}

static void share(search *s, const lop_sym *span, int n) {
    lop_chstate *st = &s->trial;
    lop_sym f[LOP_CH_FACTORS];
    int number, count = 0, terms = s->now.nterm;
    memcpy(f, span, (size_t)n * sizeof *f);
    bool dense = false;
    for (int i = 0; i < n; i++) dense |= !lop_chain_lean(s->ch, &s->now, f[i]);
    if (!dense) return; /* a matrix that nobody asked for */
    *st = s->now;
    lop_chgroup *g = new_group(s->ch, st, f, n, &number);
    if (!g) return;
    g->shared = true;
    g->real = all_real(s->ch, st, f, n);
    for (int i = 0; i < terms; i++)
        count += replace(s, &st->term[i], f, n, lop_sym_make(LOP_CH_ATOMS + number, false, 0));
    if (count < 2) return;
    be_product(st, g, f, n);
    try_state(s, "with a shared product");
}

/* The longest span from a[i] that also stands at b[j], seen through mode; 0 below 2. */
static int common(const search *s, const lop_chterm *a, int i, const lop_chterm *b, int j,
                  int mode) {
    int n = 0, step = (mode & LOP_T) ? -1 : 1;
    while (i + n < a->n && j + n * step >= 0 && j + n * step < b->n &&
           lop_chain_seen(s->ch, &s->now, a->f[i + n], mode) == b->f[j + n * step])
        n++;
    if (a == b) { /* may not overlap */
        int gap = step > 0 ? j - i : (j - i + 1) / 2;
        if (n > gap) n = gap;
    }
    return n >= 2 ? n : 0;
}

static void try_shares(search *s) {
    const lop_chstate *st = &s->now;
    int modes = lop_is_complex(s->ch->dt) ? 4 : 2;
    for (int a = 0; a < st->nterm; a++)
        for (int i = 0; i + 1 < st->term[a].n; i++)
            for (int b = a; b < st->nterm; b++)
                for (int j = b == a ? i + 1 : 0; j < st->term[b].n; j++)
                    for (int mode = 0; mode < modes; mode++) {
                        const lop_chterm *t = &st->term[a];
                        int n = common(s, t, i, &st->term[b], j, mode);
                        if (n && s->ch->states < LOP_CH_STATES) share(s, t->f + i, n);
                    }
}

/* Is it a group that the trial alone has? */
static bool is_new(const search *s, lop_sym f) {
    return lop_sym_is_group(f) && lop_sym_group(f) >= s->now.ngroup;
}

/* Where two solutions or more stand in several terms, as in S^-1 U, S^-1 V and S^-1 V U^H S^-1 U of
 * a second derivative, all of them at once: one by one they would use the states up. A solution is
 * an inverse beside a dense factor. */
static void try_solutions(search *s) {
    lop_chstate *st = &s->trial;
    const int terms = s->now.nterm;
    int made = 0;
    *st = s->now;
    for (int a = 0; a < terms; a++)
        for (int i = 0; i + 1 < st->term[a].n; i++) {
            const lop_sym *t = st->term[a].f + i, f[2] = {t[0], t[1]};
            const bool left = f[0] != LOP_CH_PROXY && lop_sym_inverse(f[0]),
                       right = f[1] != LOP_CH_PROXY && lop_sym_inverse(f[1]);
            if (left == right || is_new(s, f[left]) || lop_chain_lean(s->ch, st, f[left])) continue;
            const lop_chstate before = *st;
            int number, count = 0;
            lop_chgroup *g = new_group(s->ch, st, f, 2, &number);
            if (!g) return;
            g->shared = true;
            g->real = all_real(s->ch, st, f, 2);
            for (int b = 0; b < terms; b++)
                count +=
                    replace(s, &st->term[b], f, 2, lop_sym_make(LOP_CH_ATOMS + number, false, 0));
            if (count < 2) {
                *st = before;
                continue;
            }
            be_product(st, g, f, 2);
            made++;
        }
    if (made > 1) try_state(s, "with all solutions that are shared");
}

/* Takes the first (or last) factor that term `from` of group g has in common with others out. */
static void factor_out(search *s, int g, int from, bool last) {
    lop_chstate *st = &s->trial;
    *st = s->now;
    const lop_chgroup was = s->now.group[g];
    lop_chterm *lead = &st->term[was.term[from]];
    lop_sym common_one = lead->f[last ? lead->n - 1 : 0], rest[LOP_CH_FACTORS];
    int count = 0, number, n = lead->n - 1;
    if (n < 1) return;
    memcpy(rest, lead->f + (last ? 0 : 1), (size_t)n * sizeof *rest);
    lop_chgroup *in = new_group(s->ch, st, rest, n, &number), *out = &st->group[g];
    if (!in) return;
    in->real = true;
    out->n = 0;
    for (int i = 0; i < was.n; i++) {
        lop_chterm *t = &st->term[was.term[i]];
        if (t->n < 2 || t->f[last ? t->n - 1 : 0] != common_one) {
            out->term[out->n++] = was.term[i];
            continue;
        }
        if (count++ == 0) out->term[out->n++] = (int16_t)st->nterm;
        if (!last) memmove(t->f, t->f + 1, (size_t)(t->n - 1) * sizeof *t->f);
        t->n--;
        in->term[in->n++] = was.term[i];
        in->real = in->real && t->c.im == 0 && all_real(s->ch, st, t->f, t->n);
    }
    if (count < 2 || st->nterm == LOP_CH_TERMS) return;
    lop_sym inner = lop_sym_make(LOP_CH_ATOMS + number, false, 0);
    lop_chterm *t = &st->term[st->nterm++];
    *t = (lop_chterm){.c = {.re = 1}, .n = 2, .f = {common_one, inner}};
    if (last) {
        t->f[0] = inner;
        t->f[1] = common_one;
    }
    try_state(s, "with a common factor taken out");
}

/* Did an earlier term with the same first (last) factor lead already? */
static bool led(const lop_chstate *st, const lop_chgroup *g, int i, bool last) {
    const lop_chterm *t = &st->term[g->term[i]];
    for (int k = 0; k < i; k++) {
        const lop_chterm *u = &st->term[g->term[k]];
        if (u->n > 1 && u->f[last ? u->n - 1 : 0] == t->f[last ? t->n - 1 : 0]) return true;
    }
    return false;
}

static void try_factors(search *s) {
    const lop_chstate *st = &s->now;
    for (int g = 0; g < st->ngroup; g++)
        for (int i = 0; i + 1 < st->group[g].n; i++)
            for (int last = 0; last < 2; last++)
                if (st->term[st->group[g].term[i]].n > 1 && !led(st, &st->group[g], i, last))
                    factor_out(s, g, i, last != 0);
}

/* Is b the adjoint of a? */
static bool is_adjoint(const search *s, const lop_chterm *a, const lop_chterm *b) {
    if (a->n != b->n || !lop_coef_same(s->ch->ctx, a->c, lop_coef_conj(s->ch->ctx, b->c)))
        return false;
    for (int i = 0; i < a->n; i++)
        if (lop_chain_seen(s->ch, &s->now, a->f[a->n - 1 - i], LOP_H) != b->f[i]) return false;
    return true;
}

/* Writes a Hermitian group g as half + half^H: of two terms that are each other's adjoints one goes
 * into `half`, of a term that is its own adjoint the half. False: a term stands alone, or nothing
 * is gained. */
static bool halves(const search *s, const lop_chgroup *g, lop_chterm *half, int *n) {
    bool taken[LOP_CH_GROUP] = {false};
    int pairs = 0;
    *n = 0;
    for (int i = 0; i < g->n; i++) {
        const lop_chterm *t = &s->now.term[g->term[i]];
        int j = i;
        if (taken[i]) continue;
        while (j < g->n && (taken[j] || !is_adjoint(s, t, &s->now.term[g->term[j]]))) j++;
        if (j == g->n || t->n < 2) return false;
        taken[j] = true;
        pairs += j != i;
        half[*n] = *t;
        if (j == i) half[*n].c = lop_coef_over(s->ch->ctx, half[*n].c, lop_coef_const(2, 0));
        (*n)++;
    }
    return pairs > 0 && *n > 1;
}

/* A B^H + B A^H + A A^H as T + T^H, T = A (B + A / 2)^H: where what is left of the halves has its
 * first (last) factor in common. */
static void halve(search *s, int g, bool last) {
    lop_chstate *st = &s->trial;
    lop_chterm half[LOP_CH_GROUP];
    int n, one, inner;
    *st = s->now;
    if (!halves(s, &s->now.group[g], half, &n) || st->nterm + n + 3 > LOP_CH_TERMS) return;
    const lop_sym common_one = half[0].f[last ? half[0].n - 1 : 0];
    lop_chgroup *whole = new_group(s->ch, st, half[0].f, half[0].n, &one), *in;
    if (!whole) return;
    for (int i = 0; i < n; i++) {
        if (half[i].f[last ? half[i].n - 1 : 0] != common_one) return;
        if (!last) memmove(half[i].f, half[i].f + 1, (size_t)(half[i].n - 1) * sizeof *half[i].f);
        half[i].n--;
    }
    if (!(in = new_group(s->ch, st, half[0].f, half[0].n, &inner))) return;
    in->real = true;
    for (int i = 0; i < n; i++) {
        in->real = in->real && half[i].c.im == 0 && all_real(s->ch, st, half[i].f, half[i].n);
        in->term[in->n++] = (int16_t)st->nterm;
        st->term[st->nterm++] = half[i];
    }
    const lop_sym sum = lop_sym_make(LOP_CH_ATOMS + inner, false, 0),
                  product = lop_sym_make(LOP_CH_ATOMS + one, false, 0);
    whole->shared = true;
    whole->real = in->real && all_real(s->ch, st, &common_one, 1);
    whole->n = 1;
    whole->term[0] = (int16_t)st->nterm;
    st->term[st->nterm++] = (lop_chterm){
        .c = {.re = 1}, .n = 2, .f = {last ? sum : common_one, last ? common_one : sum}};
    lop_chgroup *out = &st->group[g];
    out->n = 2;
    for (int i = 0; i < 2; i++) {
        out->term[i] = (int16_t)st->nterm;
        st->term[st->nterm++] = (lop_chterm){
            .c = {.re = 1}, .n = 1, .f = {lop_chain_seen(s->ch, st, product, i * LOP_H)}};
    }
    try_state(s, "with half of a Hermitian sum");
}
static void try_halves(search *s) {
    for (int g = 0; g < s->now.ngroup; g++)
        for (int last = 0; last < 2; last++)
            if (s->now.group[g].n > 1 && s->now.group[g].rows == s->now.group[g].cols)
                halve(s, g, last != 0);
}

static void try_groups(search *s) {
    for (int g = s->ch->nroot; g < s->now.ngroup; g++) {
        int count = 0;
        for (int t = 0; t < s->now.nterm; t++)
            for (int j = 0; j < s->now.term[t].n; j++)
                count += lop_sym_is_group(s->now.term[t].f[j]) &&
                         lop_sym_group(s->now.term[t].f[j]) == g;
        lop_sym sym = lop_sym_make(LOP_CH_ATOMS + g, false, 0);
        if (count < 2 || s->now.group[g].shared || s->now.group[g].n == 0 ||
            lop_chain_lean(s->ch, &s->now, sym))
            continue;
        s->trial = s->now;
        s->trial.group[g].shared = true;
        try_state(s, "with a sum computed once");
    }
}

static void climb(search *s) {
    do {
        s->found = false;
        s->best_cost = s->cost;
        try_solutions(s);
        try_shares(s);
        try_factors(s);
        try_halves(s);
        try_groups(s);
        if (!s->found) return;
        s->now = s->best;
        s->moved = true;
        s->cost = s->best_cost;
    } while (s->ch->states < LOP_CH_STATES);
}

/* Multiplies out a sum within term `at` of a root. */
static bool spread_term(const lop_chain *ch, lop_chstate *st, lop_chgroup *root, int at) {
    const lop_chterm t = st->term[root->term[at]];
    int j = 0;
    while (j < t.n && (!lop_sym_is_group(t.f[j]) || lop_sym_inverse(t.f[j]))) j++;
    if (j == t.n) return false;
    const lop_chgroup *g = &st->group[lop_sym_group(t.f[j])];
    if (g->n < 2 || g->shared || st->nterm + g->n > LOP_CH_TERMS ||
        root->n + g->n - 1 > LOP_CH_GROUP)
        return false;
    for (int i = 0; i < g->n; i++) {
        lop_chterm one = t;
        if (!put_in(ch, st, &one, j, &st->term[g->term[i]])) return false;
        int16_t place = i == 0 ? (int16_t)at : root->n++;
        st->term[st->nterm] = one;
        root->term[place] = (int16_t)st->nterm++;
    }
    return true;
}

/* Sums within the terms multiplied out: (A + B) x as A x + B x, X + (I - S T) X as 2 X - S (T X),
 * so that parts are seen to be shared. Of a single product only where it is a sum and one factor.
 */
static bool spread(const lop_chain *ch, lop_chstate *st) {
    lop_chgroup *root = st->group;
    const lop_chterm *t = &st->term[root->term[0]];
    if (ch->nroot == 1 && root->n == 1 &&
        (t->n != 2 || !(lop_sym_is_group(t->f[0]) || lop_sym_is_group(t->f[1]))))
        return false;
    bool any = false;
    for (; root < st->group + ch->nroot; root++)
        for (int i = 0, n = root->n; i < n; i++) any |= spread_term(ch, st, root, i);
    return any;
}

static void settle(search *s) {
    lop_chain_tidy(s->ch, &s->now);
    sweep_dead(s->ch, &s->now);
    s->ch->states++;
    s->moved = false;
    s->cost = lop_chain_cost(s->ch, &s->now, s->keep);
    climb(s);
}

/* -- inverses opened */

/* Is a term of the sum of less rank than the sum has rows, by how it is written? */
static bool has_thin(const lop_chain *ch, const lop_chstate *st, const lop_chgroup *g) {
    for (int i = 0; i < g->n; i++) {
        const lop_chterm *t = &st->term[g->term[i]];
        for (int j = 0; j + 1 < t->n; j++)
            if (lop_chain_cols(ch, st, t->f[j]) < g->rows) return true;
    }
    return false;
}

/* Is it b B + (something thin), with a B that is solved at once or is an inverse? Such a sum is
 * better left whole (solve_woodbury.c). */
static bool has_base(const lop_chain *ch, const lop_chstate *st, const lop_chgroup *g) {
    if (g->n > 0 && !has_thin(ch, st, g)) return false;
    for (int i = 0; i < g->n; i++) {
        const lop_chterm *t = &st->term[g->term[i]];
        if (t->n == 1 && (lop_sym_inverse(t->f[0]) ||
                          (!lop_sym_is_group(t->f[0]) &&
                           lop_cheap_to_solve(ch->atom[lop_sym_number(t->f[0])].node))))
            return true;
    }
    return g->n == 0;
}

static bool stands_inverted(const lop_chstate *st, int a) {
    for (int i = 0; i < st->nterm; i++)
        for (int j = 0; j < st->term[i].n; j++) {
            const lop_sym s = st->term[i].f[j];
            if (lop_sym_inverse(s) && !lop_sym_is_group(s) && lop_sym_number(s) == a) return true;
        }
    return false;
}

/* Opens atom `a` wherever it stands inverted. */
static bool open_one(lop_chain *ch, lop_chstate *st, int a) {
    int number = -1;
    for (int i = 0; i < st->nterm; i++)
        for (int j = 0; j < st->term[i].n; j++) {
            lop_sym s = st->term[i].f[j];
            if (lop_sym_is_group(s) || lop_sym_number(s) != a || !lop_sym_inverse(s)) continue;
            if (number < 0 && (number = lop_chain_open(ch, st, a)) < 0) return false;
            st->term[i].f[j] = lop_sym_make(LOP_CH_ATOMS + number, true, lop_sym_mode(s));
        }
    return number >= 0 && !has_base(ch, st, &st->group[number]);
}

/* Of which inverses (bit 0: of none) is a shared group a part? */
static void mark(const lop_chstate *st, int g, unsigned from, unsigned *reached) {
    if ((reached[g] & from) == from) return;
    reached[g] |= from;
    for (int i = 0; i < st->group[g].n; i++) {
        const lop_chterm *t = &st->term[st->group[g].term[i]];
        for (int j = 0; j < t->n; j++)
            if (lop_sym_is_group(t->f[j]) && !st->group[lop_sym_group(t->f[j])].opened)
                mark(st, lop_sym_group(t->f[j]), from, reached);
    }
}

/* Is something computed once for both sides of an inverse? */
static bool crosses(const lop_chain *ch, const lop_chstate *st) {
    unsigned reached[LOP_CH_GROUPS] = {0};
    for (int g = 0; g < ch->nroot; g++) mark(st, g, 1, reached);
    for (int g = ch->nroot; g < st->ngroup; g++)
        if (st->group[g].opened) mark(st, g, 1U << g, reached);
    for (int g = ch->nroot; g < st->ngroup; g++)
        if (st->group[g].shared && (reached[g] & (reached[g] - 1))) return true;
    return false;
}

/* From the best state so far. What is inverted is not priced while it is closed, so that the
 * gain counts from the opened state on. */
static void with_inverses_open(search *s) {
    lop_chain *ch = s->ch;
    bool any = false;
    s->now = ch->state;
    for (int a = 0, n = ch->natom; a < n; a++) {
        if (!stands_inverted(&s->now, a) || lop_cheap_to_solve(ch->atom[a].node)) continue;
        s->trial = s->now;
        if (!open_one(ch, &s->trial, a)) continue;
        s->now = s->trial;
        any = true;
    }
    if (!any || ch->states >= LOP_CH_STATES) return;
    settle(s);
    if (!s->moved || !crosses(ch, &s->now)) return;
    ch->state = s->now;
    ch->known = false;
}

void lop_chain_search(lop_chain *ch) {
    search s;
    s.ch = ch;
    s.keep = &ch->root;
    s.now = ch->state;
    settle(&s);
    lop_chstate *first = &ch->state, other = ch->state;
    double cost = s.cost;
    bool spreads = spread(ch, &other);
    *first = s.now;
    ch->known = !s.moved && ch->nroot == 1 && s.now.group[0].n == 1;
    s.keep = NULL;
    if (spreads) {
        s.now = other;
        settle(&s);
        if (s.cost < cost * (1 - 1e-6)) {
            ch->state = s.now;
            ch->known = false;
        }
    }
    with_inverses_open(&s);
}
