#include "microtir/registry.h"

#include <stddef.h>
#include <string.h>

#include "microtir/status.h"

int32_t microtir_module_find(const struct microtir_module *module, const char *name,
                             microtir_packed_function *function)
{
    if (module == NULL || name == NULL || function == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    for (int32_t i = 0; i < module->function_count; i++) {
        if (strcmp(module->functions[i].name, name) == 0) {
            *function = module->functions[i].call;
            return MICROTIR_OK;
        }
    }
    return MICROTIR_ERROR_FUNCTION_NOT_FOUND;
}

int32_t microtir_module_at(const struct microtir_module *module, int32_t index,
                           const struct microtir_function **function)
{
    if (module == NULL || function == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (index < 0 || index >= module->function_count) {
        return MICROTIR_ERROR_FUNCTION_NOT_FOUND;
    }
    *function = &module->functions[index];
    return MICROTIR_OK;
}

int32_t microtir_registry_add(struct microtir_registry *registry,
                              const struct microtir_module *module)
{
    microtir_packed_function other = NULL;
    if (registry == NULL || module == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    for (int32_t i = 0; i < module->function_count; i++) {
        if (microtir_registry_find(registry, module->functions[i].name, &other) == MICROTIR_OK) {
            return MICROTIR_ERROR_NAME_TAKEN;
        }
    }
    if (registry->module_count >= MICROTIR_MAX_MODULES) {
        return MICROTIR_ERROR_REGISTRY_FULL;
    }
    registry->modules[registry->module_count] = module;
    registry->module_count++;
    return MICROTIR_OK;
}

int32_t microtir_registry_find(const struct microtir_registry *registry, const char *name,
                               microtir_packed_function *function)
{
    if (registry == NULL || name == NULL || function == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    for (int32_t i = 0; i < registry->module_count; i++) {
        const int32_t status = microtir_module_find(registry->modules[i], name, function);
        if (status != MICROTIR_ERROR_FUNCTION_NOT_FOUND) {
            return status;
        }
    }
    return MICROTIR_ERROR_FUNCTION_NOT_FOUND;
}
