/* A program that loads a model as a shared library at run time, as the dynamic bundle of microTVM's
 * examples was loaded: by the names of four functions. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void *(*create_function)(void);
typedef int (*set_function)(void *handle, const char *name, int8_t *data, int64_t count);
typedef int (*run_function)(void *handle);
typedef int (*get_function)(void *handle, int index, int8_t *data, int64_t count);
typedef int (*destroy_function)(void *handle);

/* A pointer of a function, which C does not convert from one of data. */
#define FIND(pointer, library, name)                       \
    do {                                                   \
        void *const symbol = dlsym(library, name);         \
        if (symbol == NULL) {                              \
            fprintf(stderr, "%s\n", dlerror());            \
            return 1;                                      \
        }                                                  \
        memcpy(&(pointer), &symbol, sizeof symbol);        \
    } while (0)

int main(void)
{
    static const int64_t counts[2] = {4, 6};
    int8_t left[6], right[6], out[6];
    create_function create;
    set_function set;
    run_function run;
    get_function get;
    destroy_function destroy;
    void *const library = dlopen("./bundle.so", RTLD_NOW | RTLD_LOCAL);
    void *handle;
    int i, turn;

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    FIND(create, library, "tvm_runtime_create");
    FIND(set, library, "tvm_runtime_set_input");
    FIND(run, library, "tvm_runtime_run");
    FIND(get, library, "tvm_runtime_get_output");
    FIND(destroy, library, "tvm_runtime_destroy");
    handle = create();
    if (handle == NULL || set(handle, "serving_default_left:0", left, 6) != 0
        || set(handle, "serving_default_right:0", right, 6) != 0) {
        return 2;
    }
    for (turn = 1; turn >= 0; turn--) { /* refilled: the addresses stay */
        for (i = 0; i < 6; i++) {
            left[i] = (int8_t)(13 * i - turn);
            right[i] = (int8_t)(100 - 17 * i + turn);
        }
        if (run(handle) != 0) {
            return 3;
        }
    }
    for (turn = 0; turn < 2; turn++) {
        if (get(handle, turn, out, counts[turn]) != 0) {
            return 4;
        }
        for (i = 0; i < (int)counts[turn]; i++) {
            printf("%d\n", out[i]);
        }
    }
    return destroy(handle) != 0 || dlclose(library) != 0;
}
