/* SPDX-License-Identifier: Apache-2.0
 *
 * example.c - a line for each frame of a camera, read from shared memory.
 *
 *     cc -O2 -o example example.c && ./example /run/camerabus/media/cam0.ring native 30
 *
 * Goes on when the format changes, when the camera is away for a while, and when its worker was killed. Ends with status 1, and says
 * why, when there is nobody at first, when this user may not see the camera, or nothing comes for ten seconds.
 */
#include "camerabus_ring.h"
#include <stdlib.h>

#define PATIENCE 10000 /* milliseconds */

/* No wait mends it: what was asked for makes no sense, or this user may not see the camera. */
static int is_final(const char *message) { return strstr(message, "\"invalidParams\"") || strstr(message, "\"unauthorized\""); }

/* Connects again to a worker that is being started anew. */
static int reopen(struct camerabus_ring_reader *reader, const char *path, const char *rendition) {
    int64_t until = camerabus_ring_now() + (int64_t)PATIENCE * 1000000;
    int result;
    camerabus_ring_reader_close(reader);
    do {
        poll(NULL, 0, 100); /* also before the first time: a worker that turns everybody away is not asked without pause */
        result = camerabus_ring_reader_open(reader, path, rendition);
    } while (result != CAMERABUS_RING_OK && camerabus_ring_now() < until);
    return result;
}

/* What is done with a picture: here, the sum of its bytes. */
static unsigned long sum(const unsigned char *bytes, uint32_t count) {
    unsigned long total = 0;
    uint32_t i;
    for (i = 0; i < count; i++) total += bytes[i];
    return total;
}

int main(int count, char **arguments) {
    struct camerabus_ring_reader reader;
    struct camerabus_ring_frame frame;
    const char *path, *rendition;
    long left;
    int result;
    if (count < 2 || count > 4) {
        fprintf(stderr, "usage: example RUNTIME_DIR/media/CAMERA.ring [RENDITION [COUNT]]\n");
        return 2;
    }
    path = arguments[1];
    rendition = count > 2 ? arguments[2] : "native";
    left = count > 3 ? atol(arguments[3]) : LONG_MAX;
    result = camerabus_ring_reader_open(&reader, path, rendition);
    if (result != CAMERABUS_RING_OK) {
        fprintf(stderr, "%s: %s\n", path, camerabus_ring_reason(result));
        return 1;
    }
    while (left > 0) {
        result = camerabus_ring_reader_next(&reader, CAMERABUS_RING_NEWEST, PATIENCE, &frame);
        if (result == CAMERABUS_RING_FRAME) {
            unsigned long total = sum((const unsigned char *)camerabus_ring_pixels(&reader.ring, &frame), frame.bytes);
            if (!camerabus_ring_reader_is_intact(&reader, &frame)) continue; /* it was overwritten meanwhile */
            printf("%s %llu: %ux%u, %u bytes, sum %lu, %llu lost so far\n", reader.ring.plan.stream,
                   (unsigned long long)frame.sequence, reader.ring.plan.width, reader.ring.plan.height, frame.bytes, total,
                   (unsigned long long)reader.lost);
            if (fflush(stdout) != 0) break;
            left--;
        } else if (result == CAMERABUS_RING_GONE) {
            fprintf(stderr, "%s\n", camerabus_ring_reason(result));
            if ((result = reopen(&reader, path, rendition)) != CAMERABUS_RING_OK) break;
        } else if (result == CAMERABUS_RING_REFUSED && !is_final(reader.ring.message)) {
            /* The camera is unplugged, or in use by another program, say: frames come when they can. */
            fprintf(stderr, "%s %s\n", camerabus_ring_reason(result), reader.ring.message);
        } else {
            break;
        }
    }
    if (left > 0) fprintf(stderr, "%s: %s %s\n", path, camerabus_ring_reason(result), reader.ring.message);
    camerabus_ring_reader_close(&reader);
    return left > 0;
}
