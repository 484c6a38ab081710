/* map.c: see map.h. Cost: amortised O(1) a look-up; memory doubles at half full. */
#include "map.h"

static uint64_t spread(const void *p) {
    uint64_t h = (uint64_t)(uintptr_t)p;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 29);
}

lop_status lop_map_init(lop_map *map, lop_ctx *ctx) {
    map->ctx = ctx;
    map->room = 32;
    map->count = 0;
    map->key = lop_calloc(ctx, 32, sizeof *map->key);
    map->value = lop_calloc(ctx, 32, sizeof *map->value);
    return map->key && map->value ? LOP_OK : LOP_NOMEM;
}

void lop_map_clear(lop_map *map, lop_ctx *ctx) {
    lop_free(ctx, (void *)map->key);
    lop_free(ctx, map->value);
    map->key = NULL;
    map->value = NULL;
}

static int64_t find(const lop_map *map, const lop_node *key) {
    uint64_t at = spread(key) & (uint64_t)(map->room - 1);
    while (map->key[at] && map->key[at] != key) at = (at + 1) & (uint64_t)(map->room - 1);
    return (int64_t)at;
}

bool lop_map_get(const lop_map *map, const lop_node *key, int *value) {
    int64_t at = find(map, key);
    if (!map->key[at]) return false;
    *value = map->value[at];
    return true;
}

lop_status lop_map_set(lop_map *map, const lop_node *key, int value) {
    if (2 * (map->count + 1) > map->room) {
        lop_map more = {.ctx = map->ctx, .room = 2 * map->room, .count = map->count};
        more.key = lop_calloc(map->ctx, (size_t)more.room, sizeof *more.key);
        more.value = lop_calloc(map->ctx, (size_t)more.room, sizeof *more.value);
        if (!more.key || !more.value) {
            lop_map_clear(&more, map->ctx);
            return LOP_NOMEM;
        }
        for (int64_t i = 0; i < map->room; i++) {
            if (!map->key[i]) continue;
            int64_t at = find(&more, map->key[i]);
            more.key[at] = map->key[i];
            more.value[at] = map->value[i];
        }
        lop_map_clear(map, map->ctx);
        *map = more;
    }
    int64_t at = find(map, key);
    if (!map->key[at]) map->count++;
    map->key[at] = key;
    map->value[at] = value;
    return LOP_OK;
}
