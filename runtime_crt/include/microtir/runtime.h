/* runtime.h: everything of the runtime. */
#ifndef MICROTIR_RUNTIME_H
#define MICROTIR_RUNTIME_H

/* Rises when code that was generated for the last version would no longer work; generated code
 * refuses to be compiled with another version. */
#define MICROTIR_RUNTIME_VERSION 1

#include "microtir/config.h"
#include "microtir/packed.h"
#include "microtir/registry.h"
#include "microtir/status.h"

#endif /* MICROTIR_RUNTIME_H */
