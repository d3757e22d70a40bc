/* main.c: runs the models on their samples and prints the results. */
#include "application.h"
#include "platform.h"

void app_main(void);

void app_main(void)
{
    platform_init();
    platform_exit(application_run());
}
