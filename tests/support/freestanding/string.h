/* string.h: what the runtime needs of it, for compilers that come without a C library. */
#include <stddef.h>

int memcmp(const void *a, const void *b, size_t size);
int strcmp(const char *a, const char *b);
size_t strlen(const char *text);
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
