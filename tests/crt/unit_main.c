/* unit_main.c: runs the unit tests of the C runtime; an argument names the one to run. */
#include "unit.h"

int unit_failures;

static const struct unit_test *const tables[] = {
    packed_tests, memory_tests, tensor_tests, platform_tests, graph_tests,
};

int main(int argc, char **argv)
{
    int runs = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct unit_test *test = tables[i]; test->name != NULL; test++) {
            if (argc < 2 || strcmp(argv[1], test->name) == 0) {
                test->run();
                runs++;
            }
        }
    }
    if (runs == 0) {
        printf("there is no test of this name\n");
    }
    return runs == 0 || unit_failures != 0;
}
