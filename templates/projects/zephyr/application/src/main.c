/* main.c: runs the models on their samples, prints the results and ends. */
#include "application.h"
#include "platform.h"

int main(void)
{
    platform_init();
    platform_exit(application_run());
    return 0;
}
