/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in place of a camera: a thread that writes a picture into the next of the publisher's slots at the time of each frame, and
 * wakes him then. A camera's driver does the same, and so does a virtual camera; what it costs is counted apart. */
#ifndef BENCHMARK_DEVICE_H
#define BENCHMARK_DEVICE_H

#include "common.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

/* A picture that is ready: when it was, when the device had woken for it, and its size. */
struct made { int64_t stamp, woken; size_t bytes; };

struct device {
    int64_t first, interval;
    const unsigned char *picture;
    size_t bytes;
    /* Where the slots lie, one after the other; the frame with number n is in slot n % slots. */
    unsigned char *slots_at;
    size_t slot_bytes;
    unsigned slots;
    /* Makes a picture in a slot and returns its bytes; NULL: a copy of the one picture. */
    size_t (*make)(const struct device *device, unsigned char *slot);
    const void *maker;
    struct made made;
    int ready;
};

static void *run_device(void *argument) {
    struct device *device = argument;
    uint64_t number;
    int64_t time;
    /* The name by which a virtual camera's thread is told from the rest of its process. */
    prctl(PR_SET_NAME, "sensor-0");
    for (number = 1, time = device->first; !is_over; number++, time += device->interval) {
        unsigned char *slot = device->slots_at + number % device->slots * device->slot_bytes;
        sleep_until(time);
        device->made.woken = now();
        device->made.bytes = device->bytes;
        if (device->make) device->made.bytes = device->make(device, slot);
        else memcpy(slot, device->picture, device->bytes);
        __atomic_store_n(&device->made.stamp, now(), __ATOMIC_RELEASE);
        eventfd_write(device->ready, 1);
    }
    /* The signal that ends this may have come to this thread alone. */
    eventfd_write(device->ready, 1);
    return NULL;
}

static inline void start(struct device *device) {
    pthread_t thread;
    device->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (device->ready < 0) fail("eventfd");
    if ((errno = pthread_create(&thread, NULL, run_device, device)) != 0) fail("pthread_create");
    pthread_detach(thread);
}

static inline struct made wait_for(struct device *device) {
    struct made made;
    struct pollfd waits = { device->ready, POLLIN, 0 };
    eventfd_t count;
    while (!is_over && poll(&waits, 1, -1) < 0) {}
    eventfd_read(device->ready, &count);
    made.stamp = __atomic_load_n(&device->made.stamp, __ATOMIC_ACQUIRE);
    made.woken = device->made.woken;
    made.bytes = device->made.bytes;
    return made;
}

#endif
