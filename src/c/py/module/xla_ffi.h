/* xla_ffi.h: what a handler of XLA's foreign function interface sees of its call, in our own words:
 * the part of XLA's C interface, version 0.3, that py_xla.c reads. The interface only grows at the
 * end of its structs, which say their size. tests/frameworks/jax/test_jax_handler.py compares
 * sizes and places with the header that jaxlib comes with; the build needs no jaxlib.
 * Source: openxla.org/xla/custom_call, and xla/ffi/api/c_api.h for the order of the fields. */
#ifndef LOP_XLA_FFI_H
#define LOP_XLA_FFI_H
#include <stddef.h>
#include <stdint.h>

enum { XLA_VERSION_MAJOR = 0, XLA_VERSION_MINOR = 3 };
enum { XLA_EXTENSION_METADATA = 1, XLA_STAGE_EXECUTE = 3, XLA_ARGUMENT_BUFFER = 1 };
enum { XLA_ERROR_INVALID_ARGUMENT = 3, XLA_ERROR_INTERNAL = 13 };

/* Numbers of dtypes. */
enum {
    XLA_PRED = 1,
    XLA_S8 = 2,
    XLA_S16 = 3,
    XLA_S32 = 4,
    XLA_S64 = 5,
    XLA_U8 = 6,
    XLA_U16 = 7,
    XLA_U32 = 8,
    XLA_U64 = 9,
    XLA_F32 = 11,
    XLA_F64 = 12,
    XLA_C64 = 15,
    XLA_C128 = 18
};

typedef struct xla_extension {
    size_t struct_size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int major, minor;
} xla_version;

typedef struct {
    size_t struct_size;
    xla_version version; /* ours to write */
} xla_metadata;

typedef struct {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    const char *message; /* copied */
    int code;
} xla_error_args;

typedef struct xla_error xla_error;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_args *args); /* the first of many functions */
} xla_api;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} xla_buffer;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    int *types;
    void **items; /* of arguments and results: xla_buffer */
} xla_list;

typedef struct {
    const char *text;
    size_t length;
} xla_span;

typedef struct {
    int dtype;
    void *value;
} xla_scalar;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    int *types;
    xla_span **names; /* sorted */
    void **items;     /* of a scalar: xla_scalar */
} xla_attributes;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    const xla_api *api;
    void *context;
    int stage;
    xla_list arguments, results;
    xla_attributes attributes;
} xla_call;

#endif
