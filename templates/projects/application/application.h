/* application.h: runs every model on its samples and prints the results. */
#ifndef APPLICATION_H
#define APPLICATION_H

#include <stdint.h>

enum application_status {
    APPLICATION_OK = 0,
    APPLICATION_DIFFERS = 1, /* an output is not the expected one */
    APPLICATION_FAILED = 2   /* a model returned an error status */
};

#ifdef __cplusplus
extern "C" {
#endif

int16_t application_run(void);

#ifdef __cplusplus
}
#endif

#endif /* APPLICATION_H */
