/* node_map.c: see node_map.h. Cost: amortised O(1) a look-up; memory doubles at half full. */
#include "node_map.h"

enum { FIRST_ROOM = 64 };

struct lop_mapping {
    const lop_node *key;
    int value;
};

static uint64_t spread(const void *p) {
    uint64_t h = (uint64_t)(uintptr_t)p;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 29);
}

lop_status lop_map_init(lop_map *map, lop_ctx *ctx) {
    map->ctx = ctx;
    map->room = FIRST_ROOM;
    map->count = 0;
    map->at = lop_calloc(ctx, FIRST_ROOM, sizeof *map->at);
    return map->at ? LOP_OK : LOP_NOMEM;
}

void lop_map_clear(lop_map *map, lop_ctx *ctx) {
    lop_free(ctx, map->at);
    map->at = NULL;
}

static struct lop_mapping *find(const lop_map *map, const lop_node *key) {
    uint64_t mask = (uint64_t)(map->room - 1), i = spread(key) & mask;
    while (map->at[i].key && map->at[i].key != key) i = (i + 1) & mask;
    return &map->at[i];
}

bool lop_map_get(const lop_map *map, const lop_node *key, int *value) {
    const struct lop_mapping *at = find(map, key);
    if (!at->key) return false;
    *value = at->value;
    return true;
}

lop_status lop_map_set(lop_map *map, const lop_node *key, int value) {
    if (2 * (map->count + 1) > map->room) {
        lop_map more = {.ctx = map->ctx, .room = 2 * map->room, .count = map->count};
        more.at = lop_calloc(map->ctx, (size_t)more.room, sizeof *more.at);
        if (!more.at) return LOP_NOMEM;
        for (int64_t i = 0; i < map->room; i++)
            if (map->at[i].key) *find(&more, map->at[i].key) = map->at[i];
        lop_map_clear(map, map->ctx);
        *map = more;
    }
    struct lop_mapping *at = find(map, key);
    map->count += at->key == NULL;
    *at = (struct lop_mapping){key, value};
    return LOP_OK;
}
