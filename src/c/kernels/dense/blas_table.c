/* blas_table.c: the table of blas_table.h filled from one library, in whatever way its symbols are
 * written. */
#include "blas_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lop_blas_table lop_blas;

/* What stands around the names that C knows, and what that is called. The first that has OpenBLAS's
 * own functions is taken: NumPy's and PyPI's builds, distributions' of 64-bit integers, others. */
static const struct {
    const char *before, *after, *shown;
} spelling[] = {{"scipy_", "64_", "scipy_*64_"},
                {"", "64_", "*64_"},
                {"", "_64", "*_64"},
                {"scipy_", "", "scipy_*"},
                {"", "", "*"}};
enum { SPELLINGS = sizeof spelling / sizeof *spelling };
static int spelled = -1; /* < 0: nothing is bound */
static int integers;

/* The library's own functions stand first, then those that have integers. */
static const struct {
    const char *name;
    size_t at;
} entry[] = {
#define LOP_BLAS(how, name, arguments, T) {#name, offsetof(lop_blas_table, name)},
#define LOP_BLAS_OWN(ret, name, arguments) {#name, offsetof(lop_blas_table, name)},
#include "blas_table.def"
#undef LOP_BLAS
#undef LOP_BLAS_OWN
};
enum { ENTRIES = sizeof entry / sizeof *entry };

/* Versions with faults that we go around, both ends among them, as number_of gives them. */
static const struct {
    int from, to;
    unsigned fault;
    const char *what;
} known[] = {
    /* dpotrf of the lower triangle, core SkylakeX, one thread: crashes from 11,000 rows on. */
    {334, 334, LOP_BLAS_FAULT_POTRF, "Cholesky factors of large matrices are made by blocks"},
};

/* "OpenBLAS 0.3.34.481.3 ...": 334. */
static int number_of(const char *config) {
    int major = 0, minor = 0, patch = 0;
    if (sscanf(config, "OpenBLAS %d.%d.%d", &major, &minor, &patch) < 2) return 0;
    return 10000 * major + 100 * minor + patch;
}

static void *symbol(lop_blas_find find, void *user, int how, const char *name) {
    char text[80];
    const int n =
        snprintf(text, sizeof text, "%s%s%s", spelling[how].before, name, spelling[how].after);
    return n > 0 && n < (int)sizeof text ? find(user, text) : NULL;
}

/* Object pointers of functions, as POSIX has them. */
static void put(lop_blas_table *table, size_t at, void *function) {
    memcpy((char *)table + at, &function, sizeof function);
}

static int spelling_of(lop_blas_find find, void *user) {
    for (int how = 0; how < SPELLINGS; how++)
        if (symbol(find, user, how, "openblas_get_config")) return how;
    return -1;
}

enum { NAMED = 6 }; /* of those that are missing */

/* Fills the table; the text names what is missing, of much the first. */
static int fill(lop_blas_table *table, lop_blas_find find, void *user, int how, char *text,
                size_t room) {
    int missing = 0;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < ENTRIES; i++) {
        void *function = symbol(find, user, how, entry[i].name);
        put(table, entry[i].at, function);
        if (function) continue;
        missing++;
        if (missing > NAMED || used + 80 >= room) continue;
        const int n = snprintf(text + used, room - used, "%s%s%s%s", used ? ", " : "",
                               spelling[how].before, entry[i].name, spelling[how].after);
        if (n > 0) used += (size_t)n;
    }
    return missing;
}

lop_status lop_blas_bind(lop_blas_find find, void *user, bool wide, lop_err *err) {
    lop_blas_table table;
    char missing[80 * (NAMED + 1)];
    const int how = spelling_of(find, user);
    if (how < 0) {
        for (int i = 0; i < SPELLINGS; i++)
            if (symbol(find, user, i, "cblas_dgemm"))
                return lop_fail(err, LOP_MISSING, "it is a BLAS, but not OpenBLAS");
        return lop_fail(err, LOP_MISSING, "it has no OpenBLAS");
    }
    memset(&table, 0, sizeof table);
    const int lacks = fill(&table, find, user, how, missing, sizeof missing);
    if (lacks)
        return lop_fail(err, LOP_MISSING, "it lacks %d of %d functions: %s%s", lacks, ENTRIES,
                        missing, lacks > NAMED ? ", ..." : "");
    const char *config = table.openblas_get_config();
    const bool has_wide = strstr(config, "USE64BITINT") != NULL;
    if (wide && !has_wide)
        return lop_fail(err, LOP_MISSING, "its integers have 32 bits (%.200s)", config);
    const int number = number_of(config);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (number >= known[i].from && number <= known[i].to) table.fault |= known[i].fault;
    table.most = has_wide ? INT64_MAX : INT32_MAX;
    if (!has_wide) lop_blas_narrow(&table);
    lop_blas = table;
    spelled = how;
    integers = has_wide ? 64 : 32;
    return LOP_OK;
}

bool lop_blas_bound(void) { return spelled >= 0; }
int lop_blas_integers(void) { return integers; }
const char *lop_blas_spelling(void) { return spelled < 0 ? "" : spelling[spelled].shown; }

const char *lop_blas_remedy(int i) {
    for (size_t j = 0; j < sizeof known / sizeof *known; j++)
        if ((lop_blas.fault & known[j].fault) && i-- == 0) return known[j].what;
    return NULL;
}

void *lop_blas_symbol(lop_blas_find find, void *user, const char *name) {
    for (int how = 0; how < SPELLINGS; how++) {
        void *found = symbol(find, user, how, name);
        if (found) return found;
    }
    return NULL;
}
