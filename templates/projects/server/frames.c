/* frames.c: messages on a serial line that may lose, change or invent bytes. */
#include "frames.h"

#include <stddef.h>
#include <string.h>

#define SYNC_FIRST 0xA5u
#define SYNC_SECOND 0x5Au
#define SYNC_BYTES 2u

void put_u16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value & 0xFFu);
    to[1] = (uint8_t)(value >> 8);
}

void put_u32(uint8_t *to, uint32_t value)
{
    put_u16(to, (uint16_t)(value & 0xFFFFu));
    put_u16(to + 2, (uint16_t)(value >> 16));
}

uint16_t get_u16(const uint8_t *from)
{
    return (uint16_t)(from[0] | ((uint16_t)from[1] << 8));
}

uint32_t get_u32(const uint8_t *from)
{
    return get_u16(from) | ((uint32_t)get_u16(from + 2) << 16);
}

static uint16_t crc16(const uint8_t *bytes, uint16_t count)
{
    uint16_t crc = 0xFFFFu;
    for (uint16_t i = 0; i < count; i++) {
        crc = (uint16_t)(crc ^ (uint16_t)((uint16_t)bytes[i] << 8));
        for (uint8_t bit = 0; bit < 8; bit++) {
            uint16_t carry = (crc & 0x8000u) ? 0x1021u : 0u;
            crc = (uint16_t)((uint16_t)(crc << 1) ^ carry);
        }
    }
    return crc;
}

static uint16_t crc_of(const struct frame *frame, uint16_t length)
{
    return crc16(frame->bytes + SYNC_BYTES, (uint16_t)(FRAME_HEADER - SYNC_BYTES + length));
}

uint8_t frame_sequence(const struct frame *frame)
{
    return frame->bytes[2];
}

uint8_t frame_type(const struct frame *frame)
{
    return frame->bytes[3];
}

uint16_t frame_length(const struct frame *frame)
{
    return get_u16(frame->bytes + 4);
}

uint8_t *frame_payload(struct frame *frame)
{
    return frame->bytes + FRAME_HEADER;
}

static void forget(struct frame *frame, uint16_t count)
{
    frame->count = (uint16_t)(frame->count - count);
    memmove(frame->bytes, frame->bytes + count, frame->count);
}

static int16_t starts_like_a_frame(const struct frame *frame)
{
    if (frame->bytes[0] != SYNC_FIRST || (frame->count > 1 && frame->bytes[1] != SYNC_SECOND)) {
        return 0;
    }
    return frame->count < FRAME_HEADER || frame_length(frame) <= FRAME_PAYLOAD;
}

/* Drops bytes until a frame, or what may become one, lies at the start. */
static int16_t find_frame(struct frame *frame)
{
    while (frame->count != 0) {
        if (starts_like_a_frame(frame)) {
            if (frame->count < FRAME_HEADER) {
                return 0;
            }
            uint16_t length = frame_length(frame);
            if (frame->count < FRAME_HEADER + length + FRAME_CRC) {
                return 0;
            }
            if (get_u16(frame->bytes + FRAME_HEADER + length) == crc_of(frame, length)) {
                return 1;
            }
        }
        forget(frame, 1);
    }
    return 0;
}

int16_t frame_receive(struct frame *frame, uint8_t byte)
{
    frame->bytes[frame->count] = byte;
    frame->count++;
    return find_frame(frame);
}

int16_t frame_drop(struct frame *frame)
{
    forget(frame, (uint16_t)(FRAME_HEADER + frame_length(frame) + FRAME_CRC));
    return find_frame(frame);
}

void frame_finish(struct frame *frame, uint8_t sequence, uint8_t type, uint16_t length)
{
    frame->bytes[0] = SYNC_FIRST;
    frame->bytes[1] = SYNC_SECOND;
    frame->bytes[2] = sequence;
    frame->bytes[3] = type;
    put_u16(frame->bytes + 4, length);
    put_u16(frame->bytes + FRAME_HEADER + length, crc_of(frame, length));
    frame->count = (uint16_t)(FRAME_HEADER + length + FRAME_CRC);
}
