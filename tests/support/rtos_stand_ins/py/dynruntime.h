/* The part of MicroPython's interface of native modules that pages use, by its documentation. */
#ifndef MICROPY_INCLUDED_PY_DYNRUNTIME_H
#define MICROPY_INCLUDED_PY_DYNRUNTIME_H

#include <stddef.h>
#include <stdint.h>

typedef void *mp_obj_t;
typedef struct { void *module; } mp_obj_fun_bc_t;
typedef struct { void *buf; size_t len; } mp_buffer_info_t;
typedef struct { mp_obj_t (*call)(mp_obj_t, mp_obj_t); } mp_obj_fun_builtin_fixed_t;

#define MP_BUFFER_READ 1
#define MP_BUFFER_WRITE 2
#define MP_QSTR_run 3
#define MP_ERROR_TEXT(text) (text)
#define MP_OBJ_FROM_PTR(place) ((mp_obj_t)(uintptr_t)(place))
#define MP_DEFINE_CONST_FUN_OBJ_2(name, function) \
    const mp_obj_fun_builtin_fixed_t name = {function}
#define MP_DYNRUNTIME_INIT_ENTRY (void)n_args, (void)n_kw, (void)args;
#define MP_DYNRUNTIME_INIT_EXIT return self->module;

void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *info, unsigned int flags);
void mp_raise_ValueError(const char *text);
mp_obj_t mp_obj_new_int(intptr_t value);
void mp_store_global(int name, mp_obj_t object);
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args);

#endif
