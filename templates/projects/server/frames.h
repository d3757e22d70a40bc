/* frames.h: messages on a serial line that may lose, change or invent bytes.
 *
 *   sync 0xA5 0x5A | sequence | type | length, 2 bytes | payload | CRC-16, 2 bytes
 *
 * Numbers are little-endian. The CRC (polynomial 0x1021, start 0xFFFF) covers everything between
 * sync and itself. What is no valid frame is dropped byte by byte, so that a frame behind garbage
 * is always found.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>

/* Bytes of a payload; two buffers of this size are kept. */
#ifndef FRAME_PAYLOAD
#define FRAME_PAYLOAD 256u
#endif

#define FRAME_HEADER 6u
#define FRAME_CRC 2u

struct frame {
    uint8_t bytes[FRAME_HEADER + FRAME_PAYLOAD + FRAME_CRC];
    uint16_t count; /* of bytes that have come */
};

/* Takes one byte; returns 1 when a whole frame lies at the start of the buffer. */
int16_t frame_receive(struct frame *frame, uint8_t byte);

/* Forgets the frame at the start of the buffer; what has come behind it stays. Returns as
 * frame_receive. */
int16_t frame_drop(struct frame *frame);

/* Completes the frame around a payload that is already in its place. */
void frame_finish(struct frame *frame, uint8_t sequence, uint8_t type, uint16_t length);

uint8_t frame_sequence(const struct frame *frame);
uint8_t frame_type(const struct frame *frame);
uint16_t frame_length(const struct frame *frame);
uint8_t *frame_payload(struct frame *frame);

void put_u16(uint8_t *to, uint16_t value);
void put_u32(uint8_t *to, uint32_t value);
uint16_t get_u16(const uint8_t *from);
uint32_t get_u32(const uint8_t *from);

#endif /* FRAMES_H */
