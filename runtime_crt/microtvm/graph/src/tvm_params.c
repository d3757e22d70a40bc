/* tvm_params.c: finds arrays by name in a file of parameters, and believes nothing of it. */
#include <string.h>

#include "tvm/runtime/crt/internal/common/ndarray.h"
#include "tvm/runtime/crt/internal/graph_executor/load_params.h"

/* What is left of a file; `bytes` is NULL once something was missing. */
struct cursor {
    const uint8_t *bytes;
    size_t left;
};

static const uint8_t *take(struct cursor *cursor, uint64_t count)
{
    const uint8_t *const start = cursor->bytes;
    if (start == NULL || count > cursor->left) {
        cursor->bytes = NULL;
        cursor->left = 0;
        return NULL;
    }
    cursor->bytes = start + (size_t)count;
    cursor->left -= (size_t)count;
    return start;
}

/* A number of `count` bytes; 0 where there are not as many. */
static uint64_t number(struct cursor *cursor, uint32_t count)
{
    const uint8_t *const bytes = take(cursor, count);
    uint64_t value = 0;
    for (uint32_t i = count; bytes != NULL && i > 0u; i--) {
        value = (value << 8) | bytes[i - 1u];
    }
    return value;
}

/* An array of the file. */
struct array {
    DLDataType dtype;
    const uint8_t *data;
    uint64_t bytes;
};

/* Takes the next array; one that is none ends the file. */
static struct array next_array(struct cursor *cursor)
{
    struct array array = {{0, 0, 0}, NULL, 0};
    const uint64_t magic = number(cursor, 8);
    (void)take(cursor, 8u + 8u); /* reserved, and a device */
    const uint64_t rank = number(cursor, 4);
    array.dtype.code = (uint8_t)number(cursor, 1);
    array.dtype.bits = (uint8_t)number(cursor, 1);
    array.dtype.lanes = (uint16_t)number(cursor, 2);
    (void)take(cursor, 8u * rank);
    array.bytes = number(cursor, 8);
    array.data = take(cursor, magic == kTVMNDArrayMagic ? array.bytes : UINT64_MAX);
    return array;
}

/* The names of a file that begins as a list does, and how many there are; `names` begins behind
 * their number, `arrays` behind the number of arrays. */
static uint64_t open_list(const struct tvm_params *list, struct cursor *names, struct cursor *arrays)
{
    struct cursor cursor = {list->bytes, list->size};
    (void)take(&cursor, 8u + 8u);
    const uint64_t count = number(&cursor, 8);
    *names = cursor;
    for (uint64_t i = 0; i < count && cursor.bytes != NULL; i++) {
        (void)take(&cursor, number(&cursor, 8));
    }
    if (number(&cursor, 8) != count) {
        cursor.bytes = NULL;
    }
    *arrays = cursor;
    return count;
}

int tvm_params_is_list(const struct tvm_params *list)
{
    struct cursor cursor = {list->bytes, list->size};
    return number(&cursor, 8) == kTVMNDArrayListMagic && cursor.bytes != NULL;
}

int64_t tvm_params_count(const struct tvm_params *list)
{
    struct cursor names, arrays;
    const uint64_t count = open_list(list, &names, &arrays);
    for (uint64_t i = 0; i < count && arrays.bytes != NULL; i++) {
        (void)next_array(&arrays);
    }
    return arrays.bytes != NULL && arrays.left == 0u ? (int64_t)count : -1;
}

/* Copies one parameter; the first array of its name counts. */
static tvm_crt_error_t take_one(const struct tvm_params *list,
                                const struct tvm_graph_parameter *wanted, uint8_t *place)
{
    struct cursor names, arrays;
    const uint64_t count = open_list(list, &names, &arrays);
    const size_t length = strlen(wanted->name);
    for (uint64_t i = 0; i < count && arrays.bytes != NULL; i++) {
        const uint64_t given = number(&names, 8);
        const uint8_t *const name = take(&names, given);
        const struct array array = next_array(&arrays);
        if (name == NULL || given != length || memcmp(name, wanted->name, length) != 0) {
            continue;
        }
        if (array.data == NULL || array.bytes != wanted->bytes
            || array.dtype.code != wanted->dtype.code || array.dtype.bits != wanted->dtype.bits
            || array.dtype.lanes != wanted->dtype.lanes) {
            break;
        }
        (void)memcpy(place + wanted->offset, array.data, (size_t)wanted->bytes);
        return kTvmErrorNoError;
    }
    return kTvmErrorFunctionCallInvalidArg;
}

tvm_crt_error_t tvm_params_take(const struct tvm_params *list, const struct tvm_graph_model *model,
                                uint8_t *place)
{
    if (tvm_params_count(list) < 0) {
        return kTvmErrorFunctionCallInvalidArg;
    }
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const tvm_crt_error_t code = take_one(list, &model->parameters[i], place);
        if (code != kTvmErrorNoError) {
            return code;
        }
    }
    return kTvmErrorNoError;
}
