/* string.h: what the runtime needs of it, for compilers that come without a C library. */
int strcmp(const char *a, const char *b);
