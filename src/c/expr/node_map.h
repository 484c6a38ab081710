/* node_map.h: node -> int, open addressing by address. Serves one plan or one rewrite, then goes.
 */
#ifndef LOP_MAP_H
#define LOP_MAP_H

#include "node.h"

/* Keys are borrowed. A zeroed map may be cleared. */
typedef struct lop_map {
    struct lop_mapping *at; /* key and value side by side: one look, one block */
    int64_t room, count;
    lop_ctx *ctx;
} lop_map;
lop_status lop_map_init(lop_map *map, lop_ctx *ctx);
void lop_map_clear(lop_map *map, lop_ctx *ctx);
bool lop_map_get(const lop_map *map, const lop_node *key, int *value);
lop_status lop_map_set(lop_map *map, const lop_node *key, int value);

#endif
