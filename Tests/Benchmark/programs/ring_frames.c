/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames by shared memory and a futex: the reader of any ring, and a publisher that does nothing else.
 *
 *     ring_frames publish SOCKET RATE PICTURE WIDTH HEIGHT copy|wake|device RECORDS
 *     ring_frames read SOCKET RENDITION RECORDS
 *
 * `copy` copies the picture into the ring for each frame, as a worker must whose driver can't write there; `wake` publishes
 * what lies there; with `device` another thread, in place of a device, writes the picture into its slot, publishes it and then wakes the
 * publisher, who keeps the account. The publisher's records: the time of a frame, when somebody woke for it, its number. */
#include "../../../Protocol/c/camerabus_ring.h"
#include "device.h"
#include <sys/file.h>

enum { SLOTS = 6, KEEP = 4, TABLE = 512, RECORD = 128, PIXELS = 4096 };

static void put32(unsigned char *at, uint32_t value) { memcpy(at, &value, 4); }
static void put64(unsigned char *at, uint64_t value) { memcpy(at, &value, 8); }

static uint32_t slot_bytes(size_t bytes) { return (uint32_t)((bytes + 4095) / 4096 * 4096); }

static unsigned char *make_ring(int *descriptor, size_t bytes, uint32_t width, uint32_t height) {
    const uint64_t size = PIXELS + (uint64_t)SLOTS * slot_bytes(bytes);
    unsigned char *head;
    *descriptor = memfd_create("benchmark-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*descriptor < 0 || ftruncate(*descriptor, (off_t)size) != 0) fail("memfd_create");
    head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *descriptor, 0);
    if (head == MAP_FAILED) fail("mmap");
    memcpy(head, "CAMBRING", 8);
    put32(head + 8, 2);
    put32(head + 12, SLOTS);
    put32(head + 16, KEEP);
    put32(head + 20, RECORD);
    put32(head + 24, TABLE);
    put32(head + 28, PIXELS);
    put64(head + 32, slot_bytes(bytes));
    put64(head + 40, size);
    memcpy(head + 48, "5be1c0a97d3f6e42", 16);
    memcpy(head + 64, "9f3ac2d071b84e65", 16);
    memcpy(head + 80, "cam0", 4);
    memcpy(head + 112, "native", 6);
    memcpy(head + 240, "YUYV", 4);
    put32(head + 244, width);
    put32(head + 248, height);
    put32(head + 252, 1);
    put32(head + 260, width * 2);
    put32(head + 264, (uint32_t)bytes);
    put32(head + 452, UINT32_MAX);
    /* 0x10: F_SEAL_FUTURE_WRITE */
    if (fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL) != 0) fail("F_ADD_SEALS");
    return head;
}

static int listen_at(const char *path) {
    struct sockaddr_un address;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) exit(2);
    strcpy(address.sun_path, path);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0) fail(path);
    return listener;
}

/* Gives the ring to whoever connects; the connections stay open as long as this program runs. */
static void give(int listener, int descriptor) {
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec part = { "{}", 2 };
    int client;
    while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct msghdr message;
        memset(&message, 0, sizeof message);
        memset(&control, 0, sizeof control);
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
        if (sendmsg(client, &message, MSG_NOSIGNAL) < 0) close(client);
    }
}

/* As a driver has it: the slot is given away before the time of its frame. */
static void give_slot(unsigned char *ring, uint64_t number) {
    unsigned char *record = ring + TABLE + (size_t)(number % SLOTS) * RECORD;
    __atomic_store_n((uint64_t *)(void *)record, number * 2 - 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void publish_slot(unsigned char *ring, uint64_t number, int64_t stamp, size_t bytes) {
    const uint32_t slot = (uint32_t)(number % SLOTS);
    unsigned char *record = ring + TABLE + (size_t)slot * RECORD;
    put64(record + 8, number - 1);
    put64(record + 16, number - 1);
    put64(record + 24, (uint64_t)stamp);
    put64(record + 32, (uint64_t)stamp);
    put64(record + 40, 3);
    put32(record + 56, (uint32_t)bytes);
    __atomic_store_n((uint64_t *)(void *)record, number * 2, __ATOMIC_RELEASE);
    __atomic_store_n((uint32_t *)(void *)(ring + 452), slot, __ATOMIC_RELEASE);
    __atomic_fetch_add((uint32_t *)(void *)(ring + 448), 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, ring + 448, 1 /* FUTEX_WAKE */, INT_MAX, NULL, NULL, 0);
}

static void device_gives(const struct device *device, uint64_t number) { give_slot(device->slots_at - PIXELS, number); }

static void device_publishes(const struct device *device, uint64_t number, int64_t stamp) {
    publish_slot(device->slots_at - PIXELS, number, stamp, device->bytes);
}

static void publish(char **arguments) {
    const int64_t interval = (int64_t)(SECOND / atof(arguments[1]));
    const int copies = strcmp(arguments[5], "copy") == 0, has_device = strcmp(arguments[5], "device") == 0;
    struct device device = { 0 };
    size_t bytes;
    unsigned char *picture = load(arguments[2], &bytes);
    int descriptor, listener = listen_at(arguments[0]);
    unsigned char *ring = make_ring(&descriptor, bytes, (uint32_t)atoi(arguments[3]), (uint32_t)atoi(arguments[4]));
    uint64_t number;
    uint32_t slot = 0;
    int64_t time = now() + interval;
    for (slot = 0; slot < SLOTS; slot++) memcpy(ring + PIXELS + (size_t)slot * slot_bytes(bytes), picture, bytes);
    device.first = time;
    device.interval = interval;
    device.picture = picture;
    device.bytes = bytes;
    device.slots_at = ring + PIXELS;
    device.slot_bytes = slot_bytes(bytes);
    device.slots = SLOTS;
    device.give = device_gives;
    device.publish = device_publishes;
    if (has_device) start(&device);
    for (number = 1; !is_over; number++, time += interval) {
        int64_t woken;
        give(listener, descriptor);
        if (has_device) {
            woken = wait_for(&device).stamp;
        } else {
            give_slot(ring, number);
            sleep_until(time);
            woken = now();
            if (copies) memcpy(ring + PIXELS + (size_t)(number % SLOTS) * slot_bytes(bytes), picture, bytes);
            publish_slot(ring, number, woken, bytes);
        }
        note(time, woken, number - 1);
    }
    unlink(arguments[0]);
    save(arguments[6]);
}

static void read_frames(char **arguments) {
    struct camerabus_ring ring;
    int connection = camerabus_ring_connect(arguments[0], arguments[1]);
    ready_after = STEADY;
    memset(&ring, 0, sizeof ring);
    if (connection < 0) {
        errno = -connection;
        fail(arguments[0]);
    }
    while (!is_over) {
        struct camerabus_ring_frame frame;
        int result = ring.memory ? camerabus_ring_wait(&ring, CAMERABUS_RING_NEWEST, 1000, &frame) : CAMERABUS_RING_CLOSED;
        if (result == CAMERABUS_RING_FRAME) {
            note(frame.monotonic, now(), frame.sequence);
        } else if (result == CAMERABUS_RING_CLOSED) {
            camerabus_ring_detach(&ring);
            result = camerabus_ring_receive(connection, &ring, 1000);
            if (result < 0 || result == CAMERABUS_RING_GONE) {
                fprintf(stderr, "%s: no ring (%d)\n", arguments[0], result);
                exit(1);
            }
        }
    }
    save(arguments[2]);
}

int main(int count, char **arguments) {
    begin();
    if (count == 9 && strcmp(arguments[1], "publish") == 0) publish(arguments + 2);
    else if (count == 5 && strcmp(arguments[1], "read") == 0) read_frames(arguments + 2);
    else return 2;
    return 0;
}
