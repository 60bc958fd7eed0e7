/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames by libzmq alone: what a program costs that does nothing else. The messages are those of a bus, so that one
 * reader reads both.
 *
 *     zmq_frames publish ENDPOINT TOPIC RATE PICTURE same|device RECORDS
 *     zmq_frames read ENDPOINT TOPIC RECORDS
 *     zmq_frames buffer ENDPOINT TOPIC RING RENDITION RECORDS
 *
 * `buffer` reads messages without pixels, and looks in the ring for the frame that each of them names.
 * The publisher sends the `same` memory again and again, or what a device has written into the next of its slots, as whoever shows
 * what is happening must; a device of JPEG makes each one. Its records: the time of a frame, when it woke for it, its number. */
#include "../../../Protocol/c/camerabus_ring.h"
#include "jpeg.h"
#include <zmq.h>

/* Enough that none is written to while libzmq has it. */
enum { SLOTS = 12 };

static void keep(void *data, void *hint) { (void)data; (void)hint; }

static void publish(void *context, char **arguments) {
    const char *topic = arguments[1];
    const int64_t interval = (int64_t)(SECOND / atof(arguments[2]));
    size_t bytes;
    unsigned char *picture = load(arguments[3], &bytes);
    void *socket = zmq_socket(context, ZMQ_PUB);
    int high_water_mark = 2, linger = 0;
    const int has_device = strcmp(arguments[4], "device") == 0;
    struct device device = { 0 };
    uint64_t sequence = 0;
    int64_t time = now() + interval;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &high_water_mark, sizeof high_water_mark);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_bind(socket, arguments[0]) != 0) fail("zmq_bind");
    device.first = time;
    device.interval = interval;
    device.picture = picture;
    device.bytes = device.slot_bytes = bytes;
    device.slots = SLOTS;
    if (has_device) {
        compress_each(&device);
        if (!(device.slots_at = calloc(SLOTS, device.slot_bytes))) fail("calloc");
        start(&device);
    }
    for (; !is_over; time += interval) {
        char header[512];
        struct made made;
        zmq_msg_t payload;
        int count;
        if (has_device) {
            made = wait_for(&device);
        } else {
            sleep_until(time);
            made.stamp = made.woken = now();
            made.bytes = bytes;
        }
        count = snprintf(
            header, sizeof header,
            "{\"v\":1,\"device\":\"cam0\",\"rendition\":\"native\",\"stream\":\"9f3ac2d071b84e65\",\"format\":\"YUYV\","
            "\"width\":1920,\"height\":1080,\"orientation\":0,\"mirrored\":false,\"planes\":[{\"offset\":0,\"stride\":3840,"
            "\"bytes\":%zu}],\"sequence\":%llu,\"captureSequence\":%llu,\"generation\":3,\"timestamp\":{\"monotonic\":%lld,"
            "\"realtime\":%lld,\"source\":\"startOfExposure\"},\"dropped\":0}",
            made.bytes, (unsigned long long)sequence, (unsigned long long)sequence, (long long)made.stamp,
            (long long)made.stamp);
        zmq_send(socket, topic, strlen(topic), ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_send(socket, header, (size_t)count, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_msg_init_data(
            &payload, has_device ? device.slots_at + (sequence + 1) % SLOTS * device.slot_bytes : picture, made.bytes, keep,
            NULL);
        if (zmq_msg_send(&payload, socket, ZMQ_DONTWAIT) < 0) zmq_msg_close(&payload);
        note(time, made.woken, sequence++);
    }
    zmq_close(socket);
    save(arguments[5]);
}

/* The number behind a member's name; -1: there is none. */
static long long member(const char *header, const char *name) {
    const char *found = strstr(header, name);
    return found ? strtoll(found + strlen(name), NULL, 10) : -1;
}

/* Whether the frame that a header names is in the ring, and whole; goes on with the newest ring if it is in another. */
static int is_there(struct camerabus_ring *ring, int connection, const char *header) {
    const char *id = strstr(header, "\"ring\":\"");
    const int64_t slot = member(header, "\"slot\":"), stamp = member(header, "\"stamp\":");
    if (!id || slot < 0 || stamp < 0) return 0;
    id += strlen("\"ring\":\"");
    while (!ring->memory || strncmp(id, ring->plan.ring, strlen(ring->plan.ring)) != 0) {
        camerabus_ring_detach(ring);
        if (camerabus_ring_receive(connection, ring, 0) != CAMERABUS_RING_OK) return 0;
    }
    return slot < ring->plan.slots && camerabus_ring_is_unchanged(ring, (uint32_t)slot, (uint64_t)stamp);
}

/* With a ring's socket also its rendition, else neither. */
static void read_frames(void *context, char **arguments, const char *ring_socket, const char *rendition, const char *records_path) {
    void *socket = zmq_socket(context, ZMQ_SUB);
    int high_water_mark = 2, connection = -1;
    struct camerabus_ring ring;
    zmq_msg_t part;
    ready_after = STEADY;
    memset(&ring, 0, sizeof ring);
    if (ring_socket && (connection = camerabus_ring_connect(ring_socket, rendition)) < 0) {
        errno = -connection;
        fail(ring_socket);
    }
    zmq_setsockopt(socket, ZMQ_RCVHWM, &high_water_mark, sizeof high_water_mark);
    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, arguments[1], strlen(arguments[1]));
    if (zmq_connect(socket, arguments[0]) != 0) fail("zmq_connect");
    zmq_msg_init(&part);
    while (!is_over) {
        char header[1024] = "";
        int64_t stamp, sequence;
        if (zmq_msg_recv(&part, socket, 0) < 0 || !zmq_msg_more(&part)) continue;
        if (zmq_msg_recv(&part, socket, 0) < 0) continue;
        if (zmq_msg_size(&part) < sizeof header) {
            memcpy(header, zmq_msg_data(&part), zmq_msg_size(&part));
            header[zmq_msg_size(&part)] = 0;
        }
        if (zmq_msg_more(&part) && zmq_msg_recv(&part, socket, 0) < 0) continue;
        stamp = member(header, "\"monotonic\":");
        sequence = member(header, "\"sequence\":");
        if (stamp < 0 || sequence < 0 || (ring_socket && !is_there(&ring, connection, header))) continue;
        note(stamp, now(), (uint64_t)sequence);
    }
    zmq_msg_close(&part);
    zmq_close(socket);
    save(records_path);
}

int main(int count, char **arguments) {
    void *context = zmq_ctx_new();
    begin();
    if (count == 8 && strcmp(arguments[1], "publish") == 0) publish(context, arguments + 2);
    else if (count == 5 && strcmp(arguments[1], "read") == 0)
        read_frames(context, arguments + 2, NULL, NULL, arguments[4]);
    else if (count == 7 && strcmp(arguments[1], "buffer") == 0)
        read_frames(context, arguments + 2, arguments[4], arguments[5], arguments[6]);
    else return 2;
    zmq_ctx_term(context);
    return 0;
}
