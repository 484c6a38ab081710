/* blas_load.c: the library behind blas_table.h, found among those that the process has or loaded
 * from a file. The only file that knows the dynamic linker. */
#define _GNU_SOURCE
#include "blas_table.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 }; /* libraries in one path */

typedef struct handles {
    void *of[MOST];
    int n;
} handles;

static void *find(void *user, const char *symbol) {
    const handles *h = user;
    for (int i = 0; i < h->n; i++) {
        void *found = dlsym(h->of[i], symbol); /* what it was linked with as well */
        if (found) return found;
    }
    return NULL;
}

/* Binds; handles of what is bound stay open for good. */
static lop_status bind_or_close(handles *h, bool wide, lop_err *err) {
    const lop_status st = lop_blas_bind(find, h, wide, err);
    for (int i = 0; st != LOP_OK && i < h->n; i++) dlclose(h->of[i]);
    return st;
}

lop_status lop_blas_of_module(const char *path, bool wide, lop_err *err) {
    handles h = {{dlopen(path, RTLD_NOW | RTLD_LOCAL | (path ? RTLD_NOLOAD : 0))}, 1};
    if (!h.of[0]) return lop_fail(err, LOP_MISSING, "%.400s is not loaded", path ? path : "it");
    return bind_or_close(&h, wide, err);
}

/* Opens all of them; what failed in err. */
static bool open_all(const char *paths, handles *h, lop_err *err) {
    char path[4096];
    for (const char *at = paths, *end; *at; at = *end ? end + 1 : end) {
        end = strchr(at, ':');
        if (!end) end = at + strlen(at);
        const size_t length = (size_t)(end - at);
        if (length == 0) continue;
        if (length >= sizeof path || h->n == MOST) {
            (void)lop_fail(err, LOP_MISSING, "the path is too long");
            return false;
        }
        memcpy(path, at, length);
        path[length] = 0;
        h->of[h->n] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!h->of[h->n]) {
            const char *why = dlerror();
            (void)lop_fail(err, LOP_MISSING, "it cannot be loaded: %.400s", why ? why : path);
            return false;
        }
        h->n++;
    }
    return true;
}

lop_status lop_blas_load(const char *paths, bool wide, lop_err *err) {
    static const char variable[] = "OPENBLAS_THREAD_TIMEOUT"; /* of 2 the power: cycles */
    const bool said = getenv(variable) != NULL;
    handles h = {{NULL}, 0};
    if (!said && setenv(variable, "4", 0)) return lop_fail(err, LOP_NOMEM, NULL);
    const bool all = open_all(paths, &h, err);
    if (!said) (void)unsetenv(variable);
    if (all) return bind_or_close(&h, wide, err);
    for (int i = 0; i < h.n; i++) dlclose(h.of[i]);
    return LOP_MISSING;
}

/* The function's address, as an object pointer. */
static const void *here(void) {
    const void *at;
    memcpy(&at, &lop_blas.openblas_get_config, sizeof at);
    return at;
}

const char *lop_blas_file(void) {
    Dl_info info;
    return lop_blas_bound() && dladdr(here(), &info) && info.dli_fname ? info.dli_fname : "";
}

/* -- all that the process has */

typedef struct names {
    char **of;
    size_t n, room;
} names;

static int note(struct dl_phdr_info *info, size_t size, void *user) {
    names *all = user;
    (void)size;
    if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
    if (all->n == all->room) {
        const size_t room = all->room ? 2 * all->room : 64;
        char **more = realloc(all->of, room * sizeof *more);
        if (!more) return 1;
        all->of = more;
        all->room = room;
    }
    if ((all->of[all->n] = strdup(info->dlpi_name))) all->n++;
    return 0;
}

/* The symbol, if it lies in this very file and not in one that it was linked with. */
static void *own(handles *h, const char *file, const char *symbol) {
    Dl_info info;
    void *found = lop_blas_symbol(find, h, symbol);
    return found && dladdr(found, &info) && info.dli_fname && !strcmp(info.dli_fname, file) ? found
                                                                                            : NULL;
}

static void look(const char *file, lop_blas_each each, void *user) {
    handles h = {{dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)}, 1};
    const char *(*config)(void) = NULL;
    int (*threads)(void) = NULL;
    if (!h.of[0]) return;
    if (own(&h, file, "cblas_dgemm")) {
        void *found = own(&h, file, "openblas_get_config");
        if (found) memcpy(&config, &found, sizeof found);
        found = own(&h, file, "openblas_get_num_threads");
        if (found) memcpy(&threads, &found, sizeof found);
        each(user, file, config ? config() : "", threads ? threads() : 0);
    }
    dlclose(h.of[0]);
}

void lop_blas_all(lop_blas_each each, void *user) {
    names all = {NULL, 0, 0};
    dl_iterate_phdr(note, &all);
    for (size_t i = 0; i < all.n; i++) {
        look(all.of[i], each, user);
        free(all.of[i]);
    }
    free(all.of);
}
