/* Functions of the device that an application has already: they say that they are called. */
#include <stdint.h>
#include <stdio.h>

int32_t TVMDeviceEthosUActivate(void *context);
int32_t TVMDeviceEthosUOpen(void *context);
int32_t TVMDeviceEthosUClose(void *context);
int32_t TVMDeviceEthosUDeactivate(void *context);

int32_t TVMDeviceEthosUActivate(void *context)
{
    return printf("activate%s\n", context ? "" : " nothing") < 0;
}

int32_t TVMDeviceEthosUOpen(void *context)
{
    return printf("open%s\n", context ? "" : " nothing") < 0;
}

int32_t TVMDeviceEthosUClose(void *context)
{
    return printf("close%s\n", context ? "" : " nothing") < 0;
}

int32_t TVMDeviceEthosUDeactivate(void *context)
{
    return printf("deactivate%s\n", context ? "" : " nothing") < 0;
}
