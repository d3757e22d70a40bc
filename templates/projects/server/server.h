/* server.h: runs models as a computer at the other end of a serial line asks for it. */
#ifndef SERVER_H
#define SERVER_H

#include <stdint.h>

#define SERVER_PROTOCOL 1u

/* Messages; the payload of the request, then that of the answer, which has the same type.
 * Tensors are numbered as in the table of the model, offsets count bytes.
 *
 *   HELLO    -                                      protocol u8, payload u16, models u8
 *   MODEL    model u8                               inputs u8, outputs u8, layers u16, name
 *   WRITE    model u8, input u8, offset u32, bytes  -
 *   RUN      model u8                               status i32, ticks u32
 *   READ     model u8, output u8, offset u32,       bytes
 *            count u16
 *   LAYERS   model u8, first u16, count u16         ticks u32 of each
 *   END      status u8                              -
 *   REFUSED  (only an answer)                       the type that was asked for
 */
enum message {
    MESSAGE_HELLO = 1,
    MESSAGE_MODEL = 2,
    MESSAGE_WRITE = 3,
    MESSAGE_RUN = 4,
    MESSAGE_READ = 5,
    MESSAGE_LAYERS = 6,
    MESSAGE_END = 7,
    MESSAGE_REFUSED = 127
};

/* Serves until it is asked to end; returns the status to end with. */
int16_t server_run(void);

#endif /* SERVER_H */
