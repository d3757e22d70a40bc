/* harness.c: runs one generated function in a process of its own, so that a sanitizer can watch it.
 *
 * The compiler's command line defines
 *   HARNESS_HEADER  the header to include, with its quotes
 *   HARNESS_CALL    an expression: the call, with tensors b[0], b[1] ... and integers n[0], n[1] ...
 *   HARNESS_TEXT    the function that gives the text of a status
 *
 * Every argument of the program is a tensor, FILE:BYTES:ALIGNMENT, or an integer, =VALUE. Tensors
 * are read from their files and written back; the status is printed. Each tensor has memory of its
 * own that ends where the tensor ends: one byte further is an error that the sanitizer sees.
 * +OFFSET:BYTES behind a tensor says that nobody may touch these bytes of it while the call runs.
 */
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include HARNESS_HEADER

#define MAX_ARGUMENTS 256

struct tensor {
    const char *path;
    uint8_t *data;
    size_t bytes;
};

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "harness: %s: %s\n", what, which);
    exit(3);
}

/* A tensor is on purpose not more aligned than is demanded. */
static uint8_t *allocate(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (posix_memalign(&memory, alignment < 8 ? 16 : 2 * alignment, bytes + alignment) != 0) {
        fail("no memory", "");
    }
    return (uint8_t *)memory + alignment;
}

static struct tensor load(char *argument)
{
    char *const alignment = strrchr(argument, ':');
    *alignment = '\0';
    char *const bytes = strrchr(argument, ':');
    *bytes = '\0';
    struct tensor tensor = {argument, NULL, strtoul(bytes + 1, NULL, 10)};
    tensor.data = allocate(tensor.bytes, strtoul(alignment + 1, NULL, 10));
    FILE *const file = fopen(argument, "rb");
    if (file == NULL || fread(tensor.data, 1, tensor.bytes, file) != tensor.bytes) {
        fail("cannot read", argument);
    }
    fclose(file);
    return tensor;
}

/* A tensor that is handed over row by row. */
struct harness_rows {
    uint8_t *data;
    size_t row_bytes;
};

__attribute__((unused)) static void harness_read(void *context, int32_t row, void *data)
{
    const struct harness_rows *const rows = context;
    memcpy(data, rows->data + (size_t)row * rows->row_bytes, rows->row_bytes);
}

__attribute__((unused)) static void harness_write(void *context, int32_t row, void *data)
{
    const struct harness_rows *const rows = context;
    memcpy(rows->data + (size_t)row * rows->row_bytes, data, rows->row_bytes);
}

static const uint8_t *guard(const struct tensor *tensor, const char *argument, size_t *bytes)
{
    char *end = NULL;
    const size_t offset = strtoul(argument + 1, &end, 10);
    *bytes = strtoul(end + 1, NULL, 10);
    return tensor->data + offset;
}

static void store(const struct tensor *tensor)
{
    FILE *const file = fopen(tensor->path, "wb");
    if (file == NULL || fwrite(tensor->data, 1, tensor->bytes, file) != tensor->bytes
        || fclose(file) != 0) {
        fail("cannot write", tensor->path);
    }
}

int main(int argc, char **argv)
{
    static struct tensor tensors[MAX_ARGUMENTS];
    static void *b[MAX_ARGUMENTS];
    static long long n[MAX_ARGUMENTS];
    int tensor_count = 0;
    int integer_count = 0;
    if (argc > MAX_ARGUMENTS) {
        fail("too many arguments", argv[0]);
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '=') {
            n[integer_count++] = strtoll(argv[i] + 1, NULL, 10);
        } else if (argv[i][0] == '+') {
            size_t bytes = 0;
            const uint8_t *const start = guard(&tensors[tensor_count - 1], argv[i], &bytes);
            ASAN_POISON_MEMORY_REGION(start, bytes);
        } else {
            tensors[tensor_count] = load(argv[i]);
            b[tensor_count] = tensors[tensor_count].data;
            tensor_count++;
        }
    }
    (void)b;
    (void)n;
    const int32_t status = HARNESS_CALL;
    for (int i = 0; i < tensor_count; i++) {
        ASAN_UNPOISON_MEMORY_REGION(tensors[i].data, tensors[i].bytes);
        store(&tensors[i]);
    }
    printf("%ld %s\n", (long)status, HARNESS_TEXT(status));
    return 0;
}
