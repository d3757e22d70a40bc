/* main.c: runs the models as a computer at the other end of the serial line asks for it. */
#include "platform.h"
#include "server.h"

int main(void)
{
    platform_init();
    platform_exit(server_run());
    return 0;
}
