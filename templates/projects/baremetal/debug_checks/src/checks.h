/* checks.h: words around memory that nobody writes, to find out who does. */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdint.h>

/* On each side of a memory. */
#define CANARY_WORDS 8u

/* The exit status of a program whose model wrote outside of its memory. */
#define CANARY_STATUS 98

/* Words beside a memory; `where` says which, as in "before the workspace". */
struct canary {
    const char *where;
    uint32_t *words;
};

/* Runs a model. Ends the program with a message if it changed a canary. */
int32_t checked_run(const char *model, int32_t (*run)(void), const struct canary *canaries,
        uint32_t count);

#endif /* CHECKS_H */
