
/* The driver: it writes down what it is asked, and fails where it is told to. */
int32_t TVMDeviceMyNpuActivate(void *context);
int32_t TVMDeviceMyNpuOpen(void *context);
int32_t TVMDeviceMyNpuClose(void *context);
int32_t TVMDeviceMyNpuDeactivate(void *context);

static char calls[16];
static int32_t fails_in;

static int32_t note(void *context, char call, int32_t number)
{
    int32_t *const state = context;
    size_t length = strlen(calls);
    calls[length] = call;
    calls[length + 1] = '\0';
    *state = 5;
    return fails_in == number ? -10 - number : 0;
}

int32_t TVMDeviceMyNpuActivate(void *context)
{
    return note(context, 'A', 1);
}

int32_t TVMDeviceMyNpuOpen(void *context)
{
    return note(context, 'O', 2);
}

int32_t TVMDeviceMyNpuClose(void *context)
{
    return note(context, 'C', 3);
}

int32_t TVMDeviceMyNpuDeactivate(void *context)
{
    return note(context, 'D', 4);
}

int main(void)
{
    int32_t state = 0;
    for (fails_in = 0; fails_in <= 4; fails_in++) {
        calls[0] = '\0';
        const int32_t status = run(&state);
        printf("%s %d\n", calls, (int)status);
    }
    printf("state %d, y %.2f\n", (int)state, (double)made[0]);
    return 0;
}
