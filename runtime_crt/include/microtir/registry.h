/* registry.h: packed functions by name.
 *
 * A module is a constant table that microtir generates. A registry joins several of them; its
 * memory is the caller's.
 */
#ifndef MICROTIR_REGISTRY_H
#define MICROTIR_REGISTRY_H

#include <stdint.h>

#include "microtir/config.h"
#include "microtir/packed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A packed function under its name. */
struct microtir_function {
    const char *name;
    microtir_packed_function call;
};

/* The functions of one generated module, in the order in which they were generated. */
struct microtir_module {
    const char *name;
    const struct microtir_function *functions;
    int32_t function_count;
};

/* The modules of an application; zero-initialised, it is empty. */
struct microtir_registry {
    const struct microtir_module *modules[MICROTIR_MAX_MODULES];
    int32_t module_count;
};

/* Finds a function of a module by name. */
int32_t microtir_module_find(const struct microtir_module *module, const char *name,
                             microtir_packed_function *function);

/* Finds a function of a module by position, counted from 0. */
int32_t microtir_module_at(const struct microtir_module *module, int32_t index,
                           const struct microtir_function **function);

/* Adds a module; refuses one that would hide a function that is registered already. */
int32_t microtir_registry_add(struct microtir_registry *registry,
                              const struct microtir_module *module);

/* Finds a function of any registered module by name. */
int32_t microtir_registry_find(const struct microtir_registry *registry, const char *name,
                               microtir_packed_function *function);

/* The module that was compiled into the program. Generated in <name>_system_lib.c; a program with
 * several models leaves those files out and adds <name>_module() of each to a registry. */
const struct microtir_module *microtir_system_lib_entry_point(void);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_REGISTRY_H */
