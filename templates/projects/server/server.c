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

/* A run that waits behind its layers. */
static struct {
    const struct model *model; /* NULL if no run goes by steps */
    const uint8_t *data;       /* of the layer behind which it waits, else NULL */
    uint32_t bytes;
} steps;

static void wait_behind(
        uint16_t layer, uint8_t output, const void *data, int32_t first, int32_t last);

void layer_done(uint16_t layer, uint8_t output, const void *data, int32_t first, int32_t last)
{
    layer_ticks[layer] += ticks_now() - last_ticks;
    if (steps.model != NULL) {
        wait_behind(layer, output, data, first, last);
    }
    last_ticks = ticks_now();
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

static int16_t begin(const struct model *model, uint16_t length, uint8_t *to)
{
    if (length != 1u || model->begin == NULL) {
        return -1;
    }
    put_u32(to, (uint32_t)model->begin());
    return 4;
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

static int16_t peek(uint16_t length, uint8_t *to)
{
    if (length != 7u || steps.data == NULL) {
        return -1;
    }
    uint32_t offset = get_u32(frame_payload(&request) + 1);
    uint16_t count = get_u16(frame_payload(&request) + 5);
    if (offset > steps.bytes || count > steps.bytes - offset || count > FRAME_PAYLOAD) {
        return -1;
    }
    memcpy(to, steps.data + offset, count);
    return (int16_t)count;
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
    if (steps.data != NULL &&
        (type == MESSAGE_WRITE || type == MESSAGE_RUN || type == MESSAGE_BEGIN)) {
        return -1;
    }
    switch (type) {
    case MESSAGE_MODEL:
        return describe(model, to);
    case MESSAGE_WRITE:
        return write_input(model, length);
    case MESSAGE_RUN:
        return run(model, to);
    case MESSAGE_BEGIN:
        return begin(model, length, to);
    case MESSAGE_READ:
        return read_output(model, length, to);
    case MESSAGE_LAYERS:
        return read_layers(model, length, to);
    case MESSAGE_PEEK:
        return peek(length, to);
    default:
        return -1;
    }
}

static void send(int16_t length)
{
    uint8_t type = frame_type(&request);
    if (length < 0) {
        frame_payload(&answer)[0] = type;
        type = MESSAGE_REFUSED;
        length = 1;
    }
    frame_finish(&answer, frame_sequence(&request), type, (uint16_t)length);
    platform_write(answer.bytes, answer.count);
}

/* Sends the last answer again if the request is the last one; a computer that starts anew says
 * hello, with any sequence number. */
static int16_t is_answered(void)
{
    if (answer.count == 0 || frame_type(&request) == MESSAGE_HELLO ||
        frame_sequence(&request) != frame_sequence(&answer)) {
        return 0;
    }
    platform_write(answer.bytes, answer.count);
    return 1;
}

/* Drops the request and waits for the next one. */
static void next_request(void)
{
    int16_t has_frame = request.count != 0 ? frame_drop(&request) : 0;
    while (!has_frame) {
        int16_t byte = platform_read();
        has_frame = byte >= 0 ? frame_receive(&request, (uint8_t)byte) : 0;
    }
}

/* Answers the STEP that led here, and serves until the run may go on; then the request that said
 * so has no answer yet. */
static void wait_behind(
        uint16_t layer, uint8_t output, const void *data, int32_t first, int32_t last)
{
    uint8_t *to = frame_payload(&answer);
    to[0] = 1;
    put_u16(to + 1, layer);
    to[3] = output;
    put_u32(to + 4, (uint32_t)first);
    put_u32(to + 8, (uint32_t)last);
    send(12);
    steps.data = data;
    steps.bytes = layer_bytes[steps.model - models][layer];
    for (;;) {
        next_request();
        if (is_answered()) {
            continue;
        }
        uint8_t type = frame_type(&request);
        if (type == MESSAGE_STEP) {
            break;
        }
        if (type == MESSAGE_HELLO || type == MESSAGE_END) {
            steps.model = NULL;
            break;
        }
        send(handle(type, frame_length(&request), frame_payload(&answer)));
    }
    steps.data = NULL;
}

/* Runs a model that waits behind its layers; what is asked for at its end may be something else. */
static int16_t run_by_steps(void)
{
    uint8_t *to = frame_payload(&answer);
    uint8_t number = frame_payload(&request)[0];
    if (frame_length(&request) != 1u || number >= model_count) {
        return -1;
    }
    memset(layer_ticks, 0, layer_ticks_bytes);
    last_ticks = ticks_now();
    steps.model = &models[number];
    int32_t status = models[number].run();
    steps.model = NULL;
    if (frame_type(&request) != MESSAGE_STEP) {
        return handle(frame_type(&request), frame_length(&request), to);
    }
    to[0] = 0;
    put_u32(to + 1, (uint32_t)status);
    return 5;
}

int16_t server_run(void)
{
    ticks_start();
    for (uint8_t m = 0; m < model_count; m++) {
        if (models[m].begin != NULL) {
            (void)models[m].begin();
        }
    }
    for (;;) {
        next_request();
        if (!is_answered()) {
            uint8_t type = frame_type(&request);
            uint8_t *to = frame_payload(&answer);
            send(type == MESSAGE_STEP ? run_by_steps()
                                      : handle(type, frame_length(&request), to));
        }
        if (frame_type(&answer) == MESSAGE_END) {
            return frame_payload(&request)[0];
        }
    }
}
