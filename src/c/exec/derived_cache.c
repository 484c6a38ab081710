/* derived_cache.c: the table of derived values: found by key, bounded in bytes, the least recently
 * used dropped first; those of an owner (a factor object) last as long as it. Counts change under
 * the caller's lock only. */
#include "exec.h"

#include <string.h>

void lop_store_init(lop_store *store, lop_ctx *ctx, int64_t limit) {
    memset(store, 0, sizeof *store);
    store->ctx = ctx;
    store->limit = limit;
}

void lop_blob_unref(lop_ctx *ctx, lop_blob *b) {
    if (!b || --b->refs > 0) return;
    if (b->foreign) {
        const lop_foreign *f = b->data;
        if (f->object) f->release(f->object);
    }
    lop_free(ctx, b->data);
    lop_free(ctx, b);
}

void lop_store_clear(lop_store *store) {
    while (store->oldest) {
        lop_blob *next = store->oldest->newer;
        lop_blob_unref(store->ctx, store->oldest);
        store->oldest = next;
    }
    lop_free(store->ctx, (void *)store->bucket);
    store->bucket = NULL;
    store->newest = NULL;
    store->n = store->room = 0;
    store->bytes = store->held = 0;
}

/* The link that points to the blob of that key, or to the end of its bucket. The room is not 0. */
static lop_blob **link_of(const lop_store *store, uint64_t key) {
    lop_blob **at = &store->bucket[key & (uint64_t)(store->room - 1)];
    while (*at && (*at)->key != key) at = &(*at)->chain;
    return at;
}

static void unlink_age(lop_store *store, lop_blob *b) {
    *(b->newer ? &b->newer->older : &store->newest) = b->older;
    *(b->older ? &b->older->newer : &store->oldest) = b->newer;
}
static void link_newest(lop_store *store, lop_blob *b) {
    b->newer = NULL;
    b->older = store->newest;
    *(b->older ? &b->older->newer : &store->oldest) = b;
    store->newest = b;
}

lop_blob *lop_store_get(lop_store *store, uint64_t key) {
    lop_blob *b = store->room ? *link_of(store, key) : NULL;
    if (!b) return NULL;
    unlink_age(store, b);
    link_newest(store, b);
    b->refs++;
    return b;
}

static void drop(lop_store *store, lop_blob *b) {
    *link_of(store, b->key) = b->chain;
    unlink_age(store, b);
    *(b->owner ? &store->held : &store->bytes) -= b->bytes;
    store->n--;
    lop_blob_unref(store->ctx, b);
}

/* Drops the least recently used of what has no owner, until so many bytes more fit. */
static void make_room(lop_store *store, int64_t more) {
    for (lop_blob *b = store->oldest, *next; b && store->bytes > store->limit - more; b = next) {
        next = b->newer;
        if (!b->owner) drop(store, b);
    }
}

void lop_store_bound(lop_store *store, int64_t limit) {
    store->limit = limit;
    make_room(store, 0);
}

int64_t lop_store_owned(const lop_store *store, uint64_t owner) {
    int64_t bytes = 0;
    for (const lop_blob *b = store->oldest; b; b = b->newer)
        if (owner && b->owner == owner) bytes += b->bytes;
    return bytes;
}

void lop_store_release(lop_store *store, uint64_t owner) {
    for (lop_blob *b = store->oldest, *next; b && owner; b = next) {
        next = b->newer;
        if (b->owner == owner) drop(store, b);
    }
}

void lop_store_drop(lop_store *store, uint64_t mask) {
    for (lop_blob *b = store->oldest, *next; b; b = next) {
        next = b->newer;
        if (b->mask & mask) drop(store, b);
    }
}

/* Twice the buckets. Out of memory: chains grow instead, but nothing is kept without any bucket. */
static bool store_grow(lop_store *store) {
    int room = store->room ? 2 * store->room : 16;
    lop_blob **bucket = lop_calloc(store->ctx, (size_t)room, sizeof *bucket);
    if (!bucket) return store->room > 0;
    lop_free(store->ctx, (void *)store->bucket);
    store->bucket = bucket;
    store->room = room;
    for (lop_blob *b = store->oldest; b; b = b->newer) {
        b->chain = NULL;
        *link_of(store, b->key) = b;
    }
    return true;
}

void lop_store_put(lop_store *store, lop_blob *b) {
    lop_blob *old = store->room ? *link_of(store, b->key) : NULL;
    if (old) drop(store, old);
    if (!b->owner && b->bytes > store->limit) return;
    if (!b->owner) make_room(store, b->bytes);
    if (store->n >= store->room && !store_grow(store)) return;
    b->published = true;
    b->refs++;
    b->chain = NULL;
    *link_of(store, b->key) = b;
    link_newest(store, b);
    *(b->owner ? &store->held : &store->bytes) += b->bytes;
    store->n++;
}
