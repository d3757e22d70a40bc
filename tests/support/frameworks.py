"""Stand-ins for frameworks that no package has: what generated files call, on this machine."""

from __future__ import annotations

# The part of Zephyr's Kconfig that the generated one refers to.
ZEPHYR_KCONFIG = """
config REQUIRES_FULL_LIBC
	bool
config CPU_HAS_FPU
	def_bool y
config FPU
	bool "FPU"
	depends on CPU_HAS_FPU
config MAIN_STACK_SIZE
	int "Size of the main stack"
	default 1024
config SERIAL
	bool "Serial"
config CONSOLE
	bool "Console"
config INIT_STACKS
	bool "Paint stacks"
config THREAD_STACK_INFO
	bool "Stack info"
config SEMIHOST
	bool "Semihosting"
"""

# A Zephyr that only knows what the generated files call, for compiling on this machine.
ZEPHYR_PACKAGE = """
set(CONFIG_DIGITS_MODELS ON)
file(WRITE ${CMAKE_BINARY_DIR}/empty.c "")
add_library(app ${CMAKE_BINARY_DIR}/empty.c)
set_target_properties(app PROPERTIES EXCLUDE_FROM_ALL ON)
function(zephyr_include_directories)
  foreach(folder ${ARGV})
    include_directories(${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endforeach()
endfunction()
macro(zephyr_library_named name)
  set(library ${name})
  file(WRITE ${CMAKE_BINARY_DIR}/none.c "")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/none.c)
endmacro()
macro(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGV})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${library} PRIVATE ${ARGV})
endmacro()
file(WRITE ${CMAKE_BINARY_DIR}/board "${BOARD}")
enable_language(C)
foreach(module ${EXTRA_ZEPHYR_MODULES})
  add_subdirectory(${module} module)
endforeach()
"""

# Components become static libraries, and a main() of this machine calls app_main().
ESP_IDF_PROJECT = """
function(idf_component_register)
  cmake_parse_arguments(arg "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SRCS)
    message(FATAL_ERROR "idf_component_register: ${ARGN}")
  endif()
  get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_library(${name} STATIC ${arg_SRCS})
  set(COMPONENT_LIB ${name} PARENT_SCOPE)
  target_include_directories(${name} PUBLIC ${arg_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC ${arg_REQUIRES})
endfunction()
macro(project name)
  _project(${name} C)
  add_compile_options(-Wall -Wextra -Werror)
  file(GLOB components ${CMAKE_SOURCE_DIR}/components/*)
  foreach(component ${components} ${EXTRA_COMPONENT_DIRS} ${CMAKE_SOURCE_DIR}/main)
    get_filename_component(folder ${component} NAME)
    add_subdirectory(${component} ${folder})
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/start.c
    "void app_main(void); int main(void) { app_main(); return 0; }")
  add_executable(${name}.elf ${CMAKE_BINARY_DIR}/start.c)
  target_link_libraries(${name}.elf main m)
endmacro()
"""

# A Pico SDK whose programs run here; the one that waits for a second has nothing left to do.
PICO_IMPORT = """
macro(pico_sdk_init)
  file(WRITE ${CMAKE_BINARY_DIR}/sdk/pico/stdlib.h
    "#include <stdio.h>\n#include <stdlib.h>\n#define stdio_init_all() ((void)0)\n"
    "#define getchar_timeout_us(us) getchar()\n"
    "#define putchar_raw putchar\n#define sleep_ms(ms) ((ms) == 1000 ? exit(0) : (void)0)\n")
  add_library(pico_stdlib INTERFACE)
  target_include_directories(pico_stdlib INTERFACE ${CMAKE_BINARY_DIR}/sdk)
endmacro()
macro(pico_enable_stdio_usb)
endmacro()
macro(pico_enable_stdio_uart)
endmacro()
macro(pico_add_extra_outputs)
endmacro()
"""

# What a user C module sees of MicroPython, by the types that its documentation gives.
MICROPYTHON_HEADERS = {
    "py/obj.h": """#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef void *mp_obj_t;
typedef const void *mp_rom_obj_t;
typedef uintptr_t mp_uint_t;
typedef struct { const void *type; } mp_obj_base_t;
typedef struct { int used; } mp_obj_dict_t;
typedef struct { mp_obj_base_t base; mp_obj_dict_t *globals; } mp_obj_module_t;
typedef struct { mp_rom_obj_t key, value; } mp_rom_map_elem_t;
typedef struct { void *buf; size_t len; } mp_buffer_info_t;
typedef struct { size_t least, most; mp_obj_t (*call)(size_t, const mp_obj_t *); } variadic_t;
typedef struct { mp_obj_t (*call)(void); } nullary_t;
typedef double mp_float_t;
#define MICROPY_PY_BUILTINS_FLOAT 1
extern const int mp_type_tuple;
mp_obj_t mp_obj_new_float(mp_float_t value);
#define MP_BUFFER_READ 1
#define MP_BUFFER_WRITE 2
#define MP_ROM_QSTR(name) (name)
#define MP_ROM_PTR(place) (place)
#define MP_ROM_INT(number) ((const void *)(uintptr_t)(number))
#define MP_DEFINE_CONST_DICT(name, table) const mp_obj_dict_t name = {sizeof(table)}
#define MP_DEFINE_CONST_FUN_OBJ_0(name, f) const nullary_t name = {f}
#define MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(name, a, b, f) const variadic_t name = {a, b, f}
#define mp_const_none ((mp_obj_t)0)
""",
    "py/objtuple.h": """#pragma once
#include "py/obj.h"
typedef struct { mp_obj_base_t base; size_t len; mp_rom_obj_t items[]; } mp_rom_obj_tuple_t;
extern const mp_rom_obj_tuple_t mp_const_empty_tuple_obj;
""",
    "py/objstr.h": """#pragma once
#include "py/obj.h"
typedef struct { mp_obj_base_t base; size_t hash, len; const unsigned char *data; } mp_obj_str_t;
extern const int mp_type_str;
#define MP_DEFINE_STR_OBJ(name, text) mp_obj_str_t name = \\
    {{&mp_type_str}, 0, sizeof(text) - 1, (const unsigned char *)text}
""",
    "py/runtime.h": """#pragma once
#include "py/obj.h"
extern const int mp_type_ValueError, mp_type_RuntimeError, mp_type_module;
#define MP_ERROR_TEXT(text) text
#define MP_REGISTER_MODULE(name, module)
void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *info, mp_uint_t flags);
void mp_raise_msg(const int *type, const char *text);
void mp_raise_msg_varg(const int *type, const char *text, ...);
void mp_raise_ValueError(const char *text);
""",
    "py/mphal.h": """
#define MICROPY_BEGIN_ATOMIC_SECTION() (0)
#define MICROPY_END_ATOMIC_SECTION(state) (void)(state)
""",
}

# What these functions do: an object is a buffer, and what is raised ends the call of a function.
MICROPYTHON_BUFFERS = """
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "py/runtime.h"
const int mp_type_tuple = 1, mp_type_ValueError = 2, mp_type_RuntimeError = 3, mp_type_module = 4;
static jmp_buf caller;
static char raised[200];
void mp_raise_msg_varg(const int *type, const char *text, ...)
{
    va_list values;
    (void)type;
    va_start(values, text);
    (void)vsnprintf(raised, sizeof(raised), text, values);
    va_end(values);
    longjmp(caller, 1);
}
void mp_raise_msg(const int *type, const char *text) { mp_raise_msg_varg(type, "%s", text); }
void mp_raise_ValueError(const char *text) { mp_raise_msg_varg(&mp_type_ValueError, "%s", text); }
void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *info, mp_uint_t flags)
{
    (void)flags;
    *info = *(const mp_buffer_info_t *)object;
}
mp_obj_t mp_obj_new_float(mp_float_t value) { (void)value; return NULL; }
/* Returns what a call raised, or a text without characters. */
static const char *raised_by(const variadic_t *function, size_t count, const mp_obj_t *given)
{
    raised[0] = 0;
    if (setjmp(caller) == 0) {
        (void)function->call(count, given);
    }
    return raised;
}
"""
