/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in place of a camera: a thread that writes a picture into the next of the publisher's slots at the time of each frame,
 * publishes it where that is all that is to be done, and wakes the publisher then. A virtual camera does the same, and a camera's driver all
 * but the publishing; what the picture costs is counted apart, with ready.c where the thread publishes. */
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
    /* Told of each frame before its slot is written to, and when it is ready, on the device's own thread; NULL: nothing is done there. */
    void (*give)(const struct device *device, uint64_t number);
    void (*publish)(const struct device *device, uint64_t number, int64_t stamp);
    struct made made;
    int ready;
};

static void wake(const struct device *device) {
    const uint64_t one = 1;
    /* Not eventfd_write(), which ready.c doesn't see. */
    if (write(device->ready, &one, sizeof one) < 0 && errno != EAGAIN) fail("write");
}

static void *run_device(void *argument) {
    struct device *device = argument;
    uint64_t number;
    int64_t time, stamp;
    /* The name by which a virtual camera's thread is told from the rest of its process. */
    prctl(PR_SET_NAME, "sensor-0");
    for (number = 1, time = device->first; !is_over; number++, time += device->interval) {
        unsigned char *slot = device->slots_at + number % device->slots * device->slot_bytes;
        if (device->give) device->give(device, number);
        sleep_until(time);
        device->made.woken = now();
        device->made.bytes = device->bytes;
        if (device->make) device->made.bytes = device->make(device, slot);
        else memcpy(slot, device->picture, device->bytes);
        if (device->publish) {
            struct timespec realtime;
            /* As a virtual camera does: ready.c notes this moment. */
            clock_gettime(CLOCK_REALTIME, &realtime);
        }
        stamp = now();
        if (device->publish) device->publish(device, number, stamp);
        __atomic_store_n(&device->made.stamp, stamp, __ATOMIC_RELEASE);
        wake(device);
    }
    /* The signal that ends this may have come to this thread alone. */
    wake(device);
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
