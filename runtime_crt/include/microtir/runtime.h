/* runtime.h: everything of the runtime. */
#ifndef MICROTIR_RUNTIME_H
#define MICROTIR_RUNTIME_H

/* Rises when code that was generated for the last version would no longer work; generated code
 * refuses to be compiled with another version. */
#define MICROTIR_RUNTIME_VERSION 6

#include "microtir/checksum.h"
#include "microtir/config.h"
#include "microtir/device.h"
#include "microtir/graph.h"
#include "microtir/memory.h"
#include "microtir/packed.h"
#include "microtir/parameters.h"
#include "microtir/platform.h"
#include "microtir/registry.h"
#include "microtir/status.h"
#include "microtir/tensor.h"

#endif /* MICROTIR_RUNTIME_H */
