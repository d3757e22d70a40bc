/* server.c: runs models as a computer at the other end of a serial line asks for it.
 *
 * An answer is kept until the next request: a request with the sequence number of the last one is
 * not done again, its answer is sent again. So a lost answer never runs a model twice.
 */
#include "server.h"

#include <stddef.h>
#include <string.h>

#include "frames.h"
#include "layer_hooks.h"
#include "layers.h"
#include "models.h"
#include "platform.h"
#include "ticks.h"

static struct frame request;
static struct frame answer;
static uint32_t last_ticks;

void layer_done(uint16_t layer)
{
    uint32_t now = ticks_now();
    layer_ticks[layer] += now - last_ticks;
    last_ticks = now;
}

static uint32_t tensor_bytes(const struct tensor *tensor)
{
    return tensor->elements * element_bytes(tensor->element);
}

/* The part of a tensor that a request names at the start of its payload, or NULL. */
static uint8_t *part(const struct tensor *tensors, uint8_t tensor_count, uint32_t count)
{
    const uint8_t *payload = frame_payload(&request);
    uint32_t offset = get_u32(payload + 2);
    if (payload[1] >= tensor_count) {
        return NULL;
    }
    const struct tensor *tensor = &tensors[payload[1]];
    uint32_t size = tensor_bytes(tensor);
    return offset <= size && count <= size - offset ? (uint8_t *)tensor->data + offset : NULL;
}

/* The handlers return the length of the answer's payload, or -1 if they refuse. */

static int16_t say_hello(uint8_t *to)
{
    to[0] = SERVER_PROTOCOL;
    put_u16(to + 1, FRAME_PAYLOAD);
    to[3] = model_count;
    return 4;
}

static uint16_t layer_count(const struct model *model)
{
    return layer_counts[model - models];
}

static int16_t describe(const struct model *model, uint8_t *to)
{
    size_t length = strlen(model->name);
    length = length < FRAME_PAYLOAD - 4u ? length : FRAME_PAYLOAD - 4u;
    to[0] = model->input_count;
    to[1] = model->output_count;
    put_u16(to + 2, layer_count(model));
    memcpy(to + 4, model->name, length);
    return (int16_t)(4u + length);
}

static int16_t write_input(const struct model *model, uint16_t length)
{
    uint16_t count = (uint16_t)(length - 6u);
    uint8_t *to = length < 6u ? NULL : part(model->inputs, model->input_count, count);
    if (to == NULL) {
        return -1;
    }
    memcpy(to, frame_payload(&request) + 6, count);
    return 0;
}

static int16_t run(const struct model *model, uint8_t *to)
{
    memset(layer_ticks, 0, layer_ticks_bytes);
    uint32_t start = ticks_now();
    last_ticks = start;
    int32_t status = model->run();
    put_u32(to, (uint32_t)status);
    put_u32(to + 4, ticks_now() - start);
    return 8;
}

static int16_t read_output(const struct model *model, uint16_t length, uint8_t *to)
{
    if (length != 8u) {
        return -1;
    }
    uint16_t count = get_u16(frame_payload(&request) + 6);
    const uint8_t *from = part(model->outputs, model->output_count, count);
    if (from == NULL || count > FRAME_PAYLOAD) {
        return -1;
    }
    memcpy(to, from, count);
    return (int16_t)count;
}

static int16_t read_layers(const struct model *model, uint16_t length, uint8_t *to)
{
    if (length != 5u) {
        return -1;
    }
    uint16_t first = get_u16(frame_payload(&request) + 1);
    uint16_t count = get_u16(frame_payload(&request) + 3);
    uint16_t layers = layer_count(model);
    if (first > layers || count > layers - first || count > FRAME_PAYLOAD / 4u) {
        return -1;
    }
    for (uint16_t i = 0; i < count; i++) {
        put_u32(to + 4u * i, layer_ticks[first + i]);
    }
    return (int16_t)(4u * count);
}

static int16_t handle(uint8_t type, uint16_t length, uint8_t *to)
{
    if (type == MESSAGE_HELLO) {
        return say_hello(to);
    }
    if (type == MESSAGE_END) {
        return length == 1u ? 0 : -1;
    }
    if (length == 0 || frame_payload(&request)[0] >= model_count) {
        return -1;
    }
    const struct model *model = &models[frame_payload(&request)[0]];
    switch (type) {
    case MESSAGE_MODEL:
        return describe(model, to);
    case MESSAGE_WRITE:
        return write_input(model, length);
    case MESSAGE_RUN:
        return run(model, to);
    case MESSAGE_READ:
        return read_output(model, length, to);
    case MESSAGE_LAYERS:
        return read_layers(model, length, to);
    default:
        return -1;
    }
}

static void answer_request(void)
{
    uint8_t type = frame_type(&request);
    uint8_t sequence = frame_sequence(&request);
    /* A computer that starts anew says hello, with any sequence number. */
    int16_t is_repeated = answer.count != 0 && type != MESSAGE_HELLO &&
                          sequence == frame_sequence(&answer);
    if (!is_repeated) {
        int16_t length = handle(type, frame_length(&request), frame_payload(&answer));
        if (length < 0) {
            frame_payload(&answer)[0] = type;
            type = MESSAGE_REFUSED;
            length = 1;
        }
        frame_finish(&answer, sequence, type, (uint16_t)length);
    }
    platform_write(answer.bytes, answer.count);
}

int16_t server_run(void)
{
    ticks_start();
    for (;;) {
        int16_t byte = platform_read();
        int16_t has_frame = byte >= 0 ? frame_receive(&request, (uint8_t)byte) : 0;
        while (has_frame) {
            answer_request();
            if (frame_type(&answer) == MESSAGE_END) {
                return frame_payload(&request)[0];
            }
            has_frame = frame_drop(&request);
        }
    }
}
