/* packed.h: the packed calling convention.
 *
 * A packed function takes any number of arguments of any kind through one prototype, so that a
 * caller can find it by name without knowing its types. Arguments are checked before any is used.
 */
#ifndef MICROTIR_PACKED_H
#define MICROTIR_PACKED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of values: the type codes of arguments and results. */
enum microtir_kind {
    MICROTIR_KIND_NONE = 0,    /* no value */
    MICROTIR_KIND_INTEGER = 1, /* v_integer */
    MICROTIR_KIND_FLOAT = 2,   /* v_float */
    MICROTIR_KIND_HANDLE = 3,  /* v_handle: a pointer that only its owner understands */
    MICROTIR_KIND_TENSOR = 4   /* v_tensor */
};

/* Kinds of elements. */
enum microtir_element {
    MICROTIR_ELEMENT_SIGNED = 0,
    MICROTIR_ELEMENT_UNSIGNED = 1,
    MICROTIR_ELEMENT_FLOAT = 2,
    MICROTIR_ELEMENT_BOOL = 3 /* 8 bits, 0 or 1 */
};

/* Type of the elements of a tensor. */
struct microtir_dtype {
    uint8_t element; /* enum microtir_element */
    uint8_t bits;    /* of one element: 8, 16, 32 or 64 */
};

/* A view of memory that its owner keeps. */
struct microtir_tensor {
    void *data;                  /* of the first element, less byte_offset */
    int32_t rank;                /* number of dimensions, may be 0 */
    struct microtir_dtype dtype; /* of the elements */
    const int64_t *shape;        /* `rank` extents */
    const int64_t *strides;      /* in elements; NULL means row-major without gaps */
    uint64_t byte_offset;        /* of the first element behind `data` */
};

/* One argument or result; its kind says which member holds. */
union microtir_value {
    int64_t v_integer;
    double v_float;
    void *v_handle;
    const struct microtir_tensor *v_tensor;
};

/* A packed function.
 *
 *   args, kinds         `count` values and their kinds (enum microtir_kind)
 *   result, result_kind where to put a result, or NULL; functions of microtir have none
 *   resource            whatever the caller and the function agreed on, or NULL
 *
 * Returns MICROTIR_OK or a negative status. */
typedef int32_t (*microtir_packed_function)(const union microtir_value *args, const int32_t *kinds,
                                            int32_t count, union microtir_value *result,
                                            int32_t *result_kind, void *resource);

/* --- what generated wrappers call --- */

/* The tensor that an argument must be. */
struct microtir_tensor_type {
    struct microtir_dtype dtype;
    int32_t rank;
    const int32_t *shape; /* `rank` extents; NULL for rank 0 */
    uint32_t alignment;   /* of the data, in bytes, a power of two */
};

/* Checks that there are `expected` arguments. */
int32_t microtir_check_count(const union microtir_value *args, const int32_t *kinds, int32_t count,
                             int32_t expected);

/* Checks argument `index` against `type` and gives the address of its first element. */
int32_t microtir_tensor_argument(const union microtir_value *args, const int32_t *kinds,
                                 int32_t index, const struct microtir_tensor_type *type,
                                 void **data);

/* Checks that argument `index` is an integer of [low, high] and gives it. */
int32_t microtir_integer_argument(const union microtir_value *args, const int32_t *kinds,
                                  int32_t index, int64_t low, int64_t high, int64_t *value);

/* Checks that argument `index` is a uint8 tensor of one dimension with at least `bytes` elements.
 * Where `bytes` is 0 any argument will do and the address is NULL. */
int32_t microtir_workspace_argument(const union microtir_value *args, const int32_t *kinds,
                                    int32_t index, uint32_t bytes, uint32_t alignment, void **data);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_PACKED_H */
