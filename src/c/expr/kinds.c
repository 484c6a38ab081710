/* kinds.c: the list of kinds as an array, look-up by name, the start-up self-check. */
#include "op.h"

#include <string.h>

static const lop_op *const kinds[] = {
#define LOP_KIND(name) &lop_op_##name,
#include "kinds.def"
#undef LOP_KIND
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

int lop_nops(void) { return NKINDS; }
const lop_op *lop_op_at(int id) { return kinds[id]; }

const lop_op *lop_op_find(const char *name, size_t length) {
    for (int i = 0; i < NKINDS; i++)
        if (strlen(kinds[i]->name) == length && !memcmp(kinds[i]->name, name, length))
            return kinds[i];
    return NULL;
}

const char *lop_flag_name(int i) {
    static const char *const names[] = {
#define LOP_KIND_FLAG(name, doc) #name,
#include "kind_flags.def"
#undef LOP_KIND_FLAG
    };
    return names[i];
}

lop_status lop_kinds_check(lop_err *err) {
    for (int i = 0; i < NKINDS; i++) {
        const lop_op *op = kinds[i];
        if (op->id != i)
            return lop_fail(err, LOP_INTERNAL, "kind %s does not name its own place in kinds.def",
                            op->name);
        if (lop_op_find(op->name, strlen(op->name)) != op)
            return lop_fail(err, LOP_INTERNAL, "two kinds are called %s", op->name);
        if (op->max != 0 && !op->infer)
            return lop_fail(err, LOP_INTERNAL, "kind %s has no infer", op->name);
        if (op->cls == LOP_OPERATOR && op->title && op->param[0].name && !op->doc.brief)
            return lop_fail(err, LOP_INTERNAL, "kind %s has no docstring", op->name);
    }
    return LOP_OK;
}
