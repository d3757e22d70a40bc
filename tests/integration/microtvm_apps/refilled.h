/* What applications that keep one buffer have in common: an image of 4 x 5, numbers to print, and
 * tensors of which only those members are set that microTVM read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/packed_func.h>

#include "memory.c"

static void expect(int holds, int line)
{
    if (!holds) {
        printf("line %d: %s\n", line, TVMGetLastError());
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, __LINE__)

static int64_t extents[4] = {1, 4, 5, 1};

static DLTensor tensor_at(void *data)
{
    DLTensor tensor;
    memset(&tensor, 0x5a, sizeof tensor); /* strides, byte_offset, device, the kind of elements */
    tensor.data = data;
    tensor.ndim = 4;
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 0;
    tensor.shape = extents;
    return tensor;
}

static void fill(void *place, int factor)
{
    for (int i = 0; i < 20; i++) {
        const float value = (float)(i * factor % 17 - 5);
        memcpy((char *)place + i * 4, &value, 4);
    }
}

static void print(const void *place)
{
    for (int i = 0; i < 20; i++) {
        float value;
        memcpy(&value, (const char *)place + i * 4, 4);
        printf("%d\n", (int)value);
    }
}
