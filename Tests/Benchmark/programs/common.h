/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C programs of the benchmark share: times, the end, and the record of what was seen. */
#ifndef BENCHMARK_COMMON_H
#define BENCHMARK_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

/* One frame: when it was stamped, when it was in hand, and its number; nanoseconds of CLOCK_MONOTONIC. */
struct record { int64_t stamp, received; uint64_t sequence; };

/* Frames after which a reader has what it needs, and its publisher too: it is not the beginning any more. */
enum { STEADY = 10 };

static volatile sig_atomic_t is_over;
static struct record *records;
static size_t record_count;
static const size_t record_room = 1 << 17;
/* After how many records it is said that the program is ready. */
static size_t ready_after = 1;
/* When the end was asked for; 0: it was not. */
static volatile int64_t asked_to_end;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Who has frames ends with the first one from after that, when those from before have come; should there be none, two seconds later. */
static void end(int signal_number) {
    if (signal_number != SIGTERM || record_count == 0) {
        is_over = 1;
    } else if (!asked_to_end) {
        asked_to_end = now();
        alarm(2);
    }
}

/* SIGTERM ends the loop: without SA_RESTART, so that what waits is woken. */
static void begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    records = malloc(record_room * sizeof *records);
    if (!records) fail("malloc");
    memset(records, 0, record_room * sizeof *records);
}

static void note(int64_t stamp, int64_t received, uint64_t sequence) {
    if (asked_to_end && stamp >= asked_to_end) is_over = 1;
    if (record_count == record_room) return;
    records[record_count].stamp = stamp;
    records[record_count].received = received;
    records[record_count++].sequence = sequence;
    if (record_count == ready_after) {
        puts("ready");
        fflush(stdout);
    }
}

static void save(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(records, sizeof *records, record_count, file) != record_count || fclose(file) != 0) fail(path);
}

/* Sleeps until a time; returns at once when the program is to end. */
static inline void sleep_until(int64_t time) {
    struct timespec until;
    until.tv_sec = (time_t)(time / SECOND);
    until.tv_nsec = (long)(time % SECOND);
    while (!is_over && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
}

/* A whole file in memory. */
static inline unsigned char *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *memory;
    long count;
    if (!file || fseek(file, 0, SEEK_END) != 0 || (count = ftell(file)) <= 0) fail(path);
    rewind(file);
    memory = malloc((size_t)count);
    if (!memory || fread(memory, 1, (size_t)count, file) != (size_t)count) fail(path);
    fclose(file);
    *bytes = (size_t)count;
    return memory;
}

#endif
