/* server.h: runs models as a computer at the other end of a serial line asks for it. */
#ifndef SERVER_H
#define SERVER_H

#include <stdint.h>

#define SERVER_PROTOCOL 2u

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
 *   STEP     model u8                               1 u8, layer u16, output u8, first i32,
 *                                                   last i32; or 0 u8, status i32
 *   PEEK     model u8, offset u32, count u16        bytes
 *   BEGIN    model u8                               status i32
 *   REFUSED  (only an answer)                       the type that was asked for
 *
 * STEP starts a run that waits behind every layer, or behind the rows [first, last) of it where
 * layers run row by row, and answers when it waits. The next STEP lets it go on; the last one is
 * answered with the status of the run. While it waits PEEK reads the output of the layer, from its
 * beginning, and WRITE, RUN and BEGIN are refused. HELLO and END let it run to its end.
 * BEGIN makes a model forget what it keeps from one run to the next; it is refused by one that keeps
 * nothing. All models begin so when the program starts.
 */
enum message {
    MESSAGE_HELLO = 1,
    MESSAGE_MODEL = 2,
    MESSAGE_WRITE = 3,
    MESSAGE_RUN = 4,
    MESSAGE_READ = 5,
    MESSAGE_LAYERS = 6,
    MESSAGE_END = 7,
    MESSAGE_STEP = 8,
    MESSAGE_PEEK = 9,
    MESSAGE_BEGIN = 10,
    MESSAGE_REFUSED = 127
};

/* Serves until it is asked to end; returns the status to end with. */
int16_t server_run(void);

#endif /* SERVER_H */
