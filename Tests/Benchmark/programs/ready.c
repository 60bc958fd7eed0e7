/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes when a virtual camera hands a picture over, as a driver's interrupt does, in the worker that it is preloaded into: the
 * time just before each write to an eventfd by a thread whose name begins with "sensor-", as device.h stamps its own. (A timer
 * that woke the worker itself would leave no such moment: how late the kernel's timers are, on a virtual machine by as much as all
 * the rest takes, could not be told from what the worker needs.) They go to a file of the worker's own,
 * $BENCHMARK_READY/PID: a count of 64 bits, and then as many times, nanoseconds of CLOCK_MONOTONIC, the latest ROOM of them in a ring. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 8191 };

struct table {
    _Atomic uint64_t count;
    _Atomic int64_t times[ROOM];
};

static struct table *table;
/* 0: not known yet. A thread has its name before it writes anything. */
static __thread int kind __attribute__((tls_model("initial-exec")));
enum { SENSOR = 1, OTHER = 2 };

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("BENCHMARK_READY");
    char path[256];
    struct table *memory;
    int descriptor;
    if (!directory || snprintf(path, sizeof path, "%s/%d", directory, (int)getpid()) >= (int)sizeof path) return;
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    if (ftruncate(descriptor, sizeof *memory) == 0) {
        memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (memory != MAP_FAILED) table = memory;
    }
    close(descriptor);
}

static void note(void) {
    struct timespec time;
    uint64_t number = atomic_load_explicit(&table->count, memory_order_relaxed);
    clock_gettime(CLOCK_MONOTONIC, &time);
    atomic_store_explicit(&table->times[number % ROOM], (int64_t)time.tv_sec * 1000000000 + time.tv_nsec, memory_order_relaxed);
    atomic_store_explicit(&table->count, number + 1, memory_order_release);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    if (table && kind == 0 && count == 8) {
        char name[16] = "";
        prctl(PR_GET_NAME, name);
        kind = strncmp(name, "sensor-", 7) == 0 ? SENSOR : OTHER;
    }
    if (kind == SENSOR && count == 8) note();
    return syscall(SYS_write, descriptor, bytes, count);
}
