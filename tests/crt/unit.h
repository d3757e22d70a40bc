/* unit.h: what the unit tests of the C runtime share. */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>
#include <string.h>

#include "microtir/runtime.h"

extern int unit_failures;

#define CHECK(actual, expected)                                                                \
    do {                                                                                       \
        const long check_actual = (long)(actual);                                              \
        const long check_expected = (long)(expected);                                          \
        if (check_actual != check_expected) {                                                  \
            printf("%s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #actual, check_actual,   \
                   check_expected);                                                            \
            unit_failures++;                                                                   \
        }                                                                                      \
    } while (0)

/* A test and its name; a table ends with a name that is NULL. */
struct unit_test {
    const char *name;
    void (*run)(void);
};

extern const struct unit_test packed_tests[];
extern const struct unit_test memory_tests[];
extern const struct unit_test tensor_tests[];
extern const struct unit_test platform_tests[];
extern const struct unit_test graph_tests[];

#endif /* UNIT_H */
