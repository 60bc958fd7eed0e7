/* SPDX-License-Identifier: Apache-2.0
 *
 * camerabus_ring.h - read a camera's frames, or a microphone's sound, from shared memory. C99 or C++11, Linux, GCC or Clang, one header, no library.
 *
 *     #include "camerabus_ring.h"                     // before all others, or with _GNU_SOURCE defined
 *
 *     struct camerabus_ring_reader reader;
 *     struct camerabus_ring_frame frame;
 *     int result = camerabus_ring_reader_open(&reader, "/run/camerabus/media/cam0.ring", "native");
 *     while (result >= 0) {
 *         result = camerabus_ring_reader_next(&reader, CAMERABUS_RING_NEWEST, 10000, &frame);
 *         if (result != CAMERABUS_RING_FRAME) break;
 *         use(camerabus_ring_pixels(&reader.ring, &frame), frame.bytes);
 *         if (!camerabus_ring_reader_is_intact(&reader, &frame)) forget();      // it was overwritten meanwhile
 *     }
 *     fprintf(stderr, "%s %s\n", camerabus_ring_reason(result), reader.ring.message);
 *     camerabus_ring_reader_close(&reader);
 *
 * A reader follows the connection: it goes from ring to ring as the format changes, and says GONE when the worker is: open it again
 * then. example.c is a whole program. Who has a loop of their own takes the parts: connect, receive, wait, look, detach.
 *
 * Nothing here trusts what the memory says: RING.md tells what is checked. One thread at a time uses a ring.
 */
#ifndef CAMERABUS_RING_H
#define CAMERABUS_RING_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#if defined(__GLIBC__) && !defined(__USE_MISC)
#error "include camerabus_ring.h before all others, or compile with -D_GNU_SOURCE or -std=gnu99"
#endif
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "camerabus_ring.h reads rings on little-endian machines only"
#endif

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#endif

#define CAMERABUS_RING_HEAD_BYTES 512
#define CAMERABUS_RING_MAXIMUM_PLANES 8

/* What a call says. Errors are negative: -errno, or what is wrong with the memory. */
enum camerabus_ring_result {
    CAMERABUS_RING_OK = 0,
    CAMERABUS_RING_FRAME = 1,
    CAMERABUS_RING_TIMED_OUT = 2,
    /* No frame is left in the ring and none will come: see closed. The connection may bring another ring. */
    CAMERABUS_RING_CLOSED = 3,
    /* The worker answered with an error; camerabus_ring.message has its JSON. */
    CAMERABUS_RING_REFUSED = 4,
    /* The connection has ended. */
    CAMERABUS_RING_GONE = 5,
    /* What is wrong with the head, from here downwards. */
    CAMERABUS_RING_TOO_SHORT = -10001,
    CAMERABUS_RING_MAGIC = -10002,
    CAMERABUS_RING_VERSION = -10003,
    CAMERABUS_RING_SLOTS = -10004,
    CAMERABUS_RING_KEEP = -10005,
    CAMERABUS_RING_RECORD_BYTES = -10006,
    CAMERABUS_RING_TABLE_OFFSET = -10007,
    CAMERABUS_RING_PIXELS_OFFSET = -10008,
    CAMERABUS_RING_SLOT_BYTES = -10009,
    CAMERABUS_RING_SIZE = -10010,
    CAMERABUS_RING_TEXT = -10011,
    CAMERABUS_RING_DIMENSIONS = -10012,
    CAMERABUS_RING_PLANES = -10013,
    /* The memory could become shorter, which would end whoever reads it. */
    CAMERABUS_RING_NOT_SEALED = -10014,
    CAMERABUS_RING_KIND = -10015,
    CAMERABUS_RING_SOUND = -10016
};

/* What a result means, in a few words. */
static inline const char *camerabus_ring_reason(int result) {
    switch (result) {
    case CAMERABUS_RING_OK: return "done";
    case CAMERABUS_RING_FRAME: return "a frame";
    case CAMERABUS_RING_TIMED_OUT: return "nothing came in time";
    case CAMERABUS_RING_CLOSED: return "the ring is closed; the connection may bring another";
    case CAMERABUS_RING_REFUSED: return "the worker gives no frames:";
    case CAMERABUS_RING_GONE: return "the worker has gone; connect again";
    case CAMERABUS_RING_TOO_SHORT: return "the memory is too short for a ring";
    case CAMERABUS_RING_MAGIC: return "the memory holds no ring";
    case CAMERABUS_RING_VERSION: return "a ring of a version that this program can't read";
    case CAMERABUS_RING_SLOTS: return "a ring with a wrong number of slots";
    case CAMERABUS_RING_KEEP: return "a ring that keeps a wrong number of frames";
    case CAMERABUS_RING_RECORD_BYTES: return "a ring with records of a wrong size";
    case CAMERABUS_RING_TABLE_OFFSET: return "a ring with its table in a wrong place";
    case CAMERABUS_RING_PIXELS_OFFSET: return "a ring with its pixels in a wrong place";
    case CAMERABUS_RING_SLOT_BYTES: return "a ring with slots of a wrong size";
    case CAMERABUS_RING_SIZE: return "a ring of a wrong size";
    case CAMERABUS_RING_TEXT: return "a ring with a text that is none";
    case CAMERABUS_RING_DIMENSIONS: return "a ring with pictures of a wrong size";
    case CAMERABUS_RING_PLANES: return "a ring with wrong planes";
    case CAMERABUS_RING_NOT_SEALED: return "the memory is not sealed: reading what was cut off would end this program";
    case CAMERABUS_RING_KIND: return "a ring of something that this program can't read";
    case CAMERABUS_RING_SOUND: return "a ring with sound that can't be";
    default: return result < 0 ? strerror(-result) : "no result of this header";
    }
}

/* Which frame is wanted, of those that are newer than the last one. */
enum camerabus_ring_order { CAMERABUS_RING_NEWEST = 0, CAMERABUS_RING_NEXT = 1 };

struct camerabus_ring_plane { uint32_t offset, stride, bytes; };

/* What never changes while a ring lives. */
struct camerabus_ring_plan {
    uint32_t slots, keep, record_bytes, table, pixels;
    uint64_t slot_bytes, size;
    char ring[17], stream[17], device[33], rendition[129];
    uint32_t format; /* V4L2_PIX_FMT_*; 0 of sound, and so are width and height */
    uint32_t width, height, plane_count;
    struct camerabus_ring_plane planes[CAMERABUS_RING_MAXIMUM_PLANES];
    /* What the source states of its pictures (RING.md, section 2.2); all 0 of sound. Colours are numbers of ITU-T H.273; 2: not known. */
    uint8_t primaries, transfer_function, matrix, is_full_range;
    uint8_t chroma_location; /* one more than H.273 has; 0: not known */
    uint8_t bits_per_component, alignment; /* 0: not known; 0: samples fill their words, 1: low bits, 2: high bits */
    uint8_t mirrored; /* left and right have to be exchanged when the picture has been turned */
    uint32_t orientation; /* degrees clockwise that a picture has to be turned to be upright */
    uint32_t pixel_width, pixel_height; /* the shape of a pixel */
    uint32_t clean_x, clean_y, clean_width, clean_height; /* the part that is meant to be seen; no width: all */
    uint32_t duration_numerator, duration_denominator; /* seconds from frame to frame; 0 0: not known */
    double meters_per_step; /* of depth; else 0 */
    /* Of sound; 0 of pictures. A frame of sound is one sample of each channel, interleaved. */
    uint32_t rate, channels, frame_bytes;
    char sample_format[17]; /* s16, s24, s24in32, s32 or f32 */
};

/* Of a ring of sound each frame is a period of it: of bytes / frame_bytes frames, of which capture_sequence is the number of the first
 * within the stream, and dropped how often the microphone has lost some. Periods are best read with CAMERABUS_RING_NEXT. */

struct camerabus_ring_frame {
    uint32_t slot;
    uint64_t stamp;
    uint64_t number;  /* counts the ring's frames, from 1 */
    uint64_t skipped; /* frames between the one before and this one that were left out */
    uint64_t sequence, capture_sequence;
    int64_t monotonic, realtime; /* nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME */
    int64_t presentation; /* when the picture is shown, where frames come as they are decoded; else monotonic */
    uint64_t generation, dropped;
    uint32_t bytes;
    uint32_t source;      /* 0 startOfExposure, 1 endOfFrame, 2 dequeue; of sound 0 status, 2 read */
    int keyframe; /* -1: each frame stands for itself; else begin with a 1, and go on with one after a loss */
    int zoom; /* how many times the middle of the device's picture is enlarged, in thousandths; 1000: it is the whole picture */
};

struct camerabus_ring {
    struct camerabus_ring_plan plan;
    const unsigned char *memory;
    uint64_t memory_bytes;
    uint64_t last;
    uint32_t least_bytes;
    uint64_t frames, skipped, late, unusable;
    char message[1025]; /* the worker's last message */
};

static inline uint32_t camerabus_ring_u32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t camerabus_ring_u64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Bytes of a text that fills its room with 0; -1 for what is no such text. */
static inline int camerabus_ring_text(const unsigned char *from, int room, char *to) {
    int count = 0, i;
    while (count < room && from[count] != 0) count++;
    for (i = count; i < room; i++) if (from[i] != 0) return -1;
    for (i = 0; i < count;) {
        unsigned char c = from[i];
        int more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : -1;
        int j;
        if (more < 0 || i + more >= count) return -1;
        for (j = 1; j <= more; j++) if ((from[i + j] & 0xC0) != 0x80) return -1;
        if ((c == 0xE0 && from[i + 1] < 0xA0) || (c == 0xED && from[i + 1] > 0x9F) ||
            (c == 0xF0 && from[i + 1] < 0x90) || (c == 0xF4 && from[i + 1] > 0x8F))
            return -1;
        i += more + 1;
    }
    memcpy(to, from, (size_t)count);
    to[count] = 0;
    return count;
}

/* Reads what a source states of its pictures. */
static inline void camerabus_ring_describe(struct camerabus_ring_plan *plan, const unsigned char *head, int is_picture) {
    static const unsigned char none[52] = {0};
    const unsigned char *at = is_picture ? head + 356 : none;
    plan->primaries = at[0];
    plan->transfer_function = at[1];
    plan->matrix = at[2];
    plan->is_full_range = at[3] == 1;
    plan->chroma_location = at[4];
    plan->bits_per_component = at[5];
    plan->alignment = at[6];
    plan->mirrored = (at[7] >> 2) & 1;
    plan->orientation = (at[7] & 3) * 90;
    plan->pixel_width = camerabus_ring_u32(at + 8);
    plan->pixel_height = camerabus_ring_u32(at + 12);
    if (is_picture && (plan->pixel_width == 0 || plan->pixel_height == 0)) plan->pixel_width = plan->pixel_height = 1;
    plan->clean_x = camerabus_ring_u32(at + 16);
    plan->clean_y = camerabus_ring_u32(at + 20);
    plan->clean_width = camerabus_ring_u32(at + 24);
    plan->clean_height = camerabus_ring_u32(at + 28);
    plan->duration_numerator = camerabus_ring_u32(at + 32);
    plan->duration_denominator = camerabus_ring_u32(at + 36);
    memcpy(&plan->meters_per_step, at + 44, sizeof plan->meters_per_step);
}

/* Reads a head, of which a copy was made, of a memory of so many bytes: OK, or what is wrong. */
static inline int camerabus_ring_parse(
    struct camerabus_ring_plan *plan, const unsigned char *head, uint64_t head_bytes, uint64_t memory_bytes) {
    int ring, stream, device, rendition, sample_format, compressed = 0;
    uint32_t i, kind;
    if (head_bytes < CAMERABUS_RING_HEAD_BYTES || memory_bytes < CAMERABUS_RING_HEAD_BYTES) return CAMERABUS_RING_TOO_SHORT;
    if (memcmp(head, "CAMBRING", 8) != 0) return CAMERABUS_RING_MAGIC;
    if (camerabus_ring_u32(head + 8) != 2) return CAMERABUS_RING_VERSION;
    kind = camerabus_ring_u32(head + 352);
    if (kind > 1) return CAMERABUS_RING_KIND;
    plan->plane_count = camerabus_ring_u32(head + 252);
    if (plan->plane_count < 1 || plan->plane_count > CAMERABUS_RING_MAXIMUM_PLANES) return CAMERABUS_RING_PLANES;
    ring = camerabus_ring_text(head + 48, 16, plan->ring);
    stream = camerabus_ring_text(head + 64, 16, plan->stream);
    device = camerabus_ring_text(head + 80, 32, plan->device);
    rendition = camerabus_ring_text(head + 112, 128, plan->rendition);
    if (ring < 0 || stream < 0 || device < 0 || rendition < 0) return CAMERABUS_RING_TEXT;
    plan->rate = kind ? camerabus_ring_u32(head + 356) : 0;
    plan->channels = kind ? camerabus_ring_u32(head + 360) : 0;
    plan->frame_bytes = kind ? camerabus_ring_u32(head + 364) : 0;
    plan->sample_format[0] = 0;
    sample_format = kind ? camerabus_ring_text(head + 368, 16, plan->sample_format) : 0;
    if (sample_format < 0) return CAMERABUS_RING_TEXT;
    plan->slots = camerabus_ring_u32(head + 12);
    plan->keep = camerabus_ring_u32(head + 16);
    plan->record_bytes = camerabus_ring_u32(head + 20);
    plan->table = camerabus_ring_u32(head + 24);
    plan->pixels = camerabus_ring_u32(head + 28);
    plan->slot_bytes = camerabus_ring_u64(head + 32);
    plan->size = camerabus_ring_u64(head + 40);
    plan->format = camerabus_ring_u32(head + 240);
    plan->width = camerabus_ring_u32(head + 244);
    plan->height = camerabus_ring_u32(head + 248);
    camerabus_ring_describe(plan, head, kind == 0);
    if (plan->slot_bytes > INT64_MAX) return CAMERABUS_RING_SLOT_BYTES;
    if (plan->size > INT64_MAX) return CAMERABUS_RING_SIZE;
    if (plan->slots < 2 || plan->slots > 256) return CAMERABUS_RING_SLOTS;
    if (plan->keep < 1 || plan->keep >= plan->slots) return CAMERABUS_RING_KEEP;
    if (plan->record_bytes < 64 || plan->record_bytes > 4096 || plan->record_bytes % 64) return CAMERABUS_RING_RECORD_BYTES;
    if (plan->table < CAMERABUS_RING_HEAD_BYTES || plan->table > 1048576 || plan->table % 64)
        return CAMERABUS_RING_TABLE_OFFSET;
    if (plan->pixels % 4096 || plan->pixels < plan->table + plan->slots * plan->record_bytes)
        return CAMERABUS_RING_PIXELS_OFFSET;
    if (plan->slot_bytes == 0 || plan->slot_bytes % 4096 || plan->slot_bytes > UINT32_MAX) return CAMERABUS_RING_SLOT_BYTES;
    if (plan->size != plan->pixels + plan->slots * plan->slot_bytes) return CAMERABUS_RING_SIZE;
    if (ring != 16 || stream < 1 || device < 1 || rendition < 1) return CAMERABUS_RING_TEXT;
    if (kind) {
        if (sample_format < 1 || plan->rate - 1 >= INT32_MAX || plan->channels - 1 >= INT32_MAX || plan->frame_bytes - 1 >= INT32_MAX)
            return CAMERABUS_RING_SOUND;
        if (plan->format || plan->width || plan->height) return CAMERABUS_RING_SOUND;
        for (i = 0; i < plan->plane_count; i++) if (camerabus_ring_u32(head + 260 + i * 12)) return CAMERABUS_RING_SOUND;
    } else if (plan->width < 1 || plan->width > 65536 || plan->height < 1 || plan->height > 65536) {
        return CAMERABUS_RING_DIMENSIONS;
    }
    for (i = 0; i < plan->plane_count; i++) {
        struct camerabus_ring_plane *plane = &plan->planes[i];
        plane->offset = camerabus_ring_u32(head + 256 + i * 12);
        plane->stride = camerabus_ring_u32(head + 260 + i * 12);
        plane->bytes = camerabus_ring_u32(head + 264 + i * 12);
        if (plane->offset > plan->slot_bytes || plane->bytes > plan->slot_bytes - plane->offset) return CAMERABUS_RING_PLANES;
        if (plane->stride == 0) compressed = 1;
    }
    if (compressed && plan->plane_count > 1) return CAMERABUS_RING_PLANES;
    return plan->size <= memory_bytes ? CAMERABUS_RING_OK : CAMERABUS_RING_SIZE;
}

/* Reads a ring in memory that is mapped already. */
static inline int camerabus_ring_open(struct camerabus_ring *ring, const void *memory, uint64_t bytes) {
    unsigned char head[CAMERABUS_RING_HEAD_BYTES];
    uint32_t i;
    int result;
    memset(ring, 0, sizeof *ring);
    /* A copy, so that nothing can change between its check and its use. */
    memcpy(head, memory, bytes < sizeof head ? (size_t)bytes : sizeof head);
    result = camerabus_ring_parse(&ring->plan, head, bytes < sizeof head ? bytes : sizeof head, bytes);
    if (result != CAMERABUS_RING_OK) return result;
    ring->memory = (const unsigned char *)memory;
    ring->memory_bytes = bytes;
    ring->least_bytes = ring->plan.frame_bytes ? ring->plan.frame_bytes : 1;
    for (i = 0; i < ring->plan.plane_count; i++) {
        struct camerabus_ring_plane *plane = &ring->plan.planes[i];
        if (plane->stride != 0 && plane->offset + plane->bytes > ring->least_bytes)
            ring->least_bytes = plane->offset + plane->bytes;
    }
    return CAMERABUS_RING_OK;
}

/* Maps the ring behind a descriptor, which may be closed afterwards. */
static inline int camerabus_ring_attach(struct camerabus_ring *ring, int descriptor) {
    struct stat status;
    void *memory;
    int result, seals = fcntl(descriptor, F_GET_SEALS);
    memset(ring, 0, sizeof *ring);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return CAMERABUS_RING_NOT_SEALED;
    if (fstat(descriptor, &status) != 0) return -errno;
    if (status.st_size <= 0) return CAMERABUS_RING_TOO_SHORT;
    memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return -errno;
    result = camerabus_ring_open(ring, memory, (uint64_t)status.st_size);
    if (result != CAMERABUS_RING_OK) munmap(memory, (size_t)status.st_size);
    return result;
}

/* Lets go of the memory; pixels are not to be touched any more. */
static inline void camerabus_ring_detach(struct camerabus_ring *ring) {
    if (ring->memory) munmap((void *)ring->memory, (size_t)ring->memory_bytes);
    ring->memory = NULL;
}

static inline const unsigned char *camerabus_ring_record(const struct camerabus_ring *ring, uint32_t slot) {
    return ring->memory + ring->plan.table + (uint64_t)slot * ring->plan.record_bytes;
}

static inline uint64_t camerabus_ring_stamp(const struct camerabus_ring *ring, uint32_t slot) {
    return __atomic_load_n((const uint64_t *)(const void *)camerabus_ring_record(ring, slot), __ATOMIC_ACQUIRE);
}

static inline uint32_t camerabus_ring_word(const struct camerabus_ring *ring, int offset) {
    return __atomic_load_n((const uint32_t *)(const void *)(ring->memory + offset), __ATOMIC_ACQUIRE);
}

/* 0, or why no more frames come: 1 replaced, 2 ended. */
static inline uint32_t camerabus_ring_closed(const struct camerabus_ring *ring) { return camerabus_ring_word(ring, 456); }

static inline int camerabus_ring_is_unchanged(const struct camerabus_ring *ring, uint32_t slot, uint64_t stamp) {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)(const void *)camerabus_ring_record(ring, slot), __ATOMIC_RELAXED) == stamp;
}

/* The slot to look at; -1: none. */
static inline int camerabus_ring_find(const struct camerabus_ring *ring, enum camerabus_ring_order order) {
    int best = -1, newest_wanted = order == CAMERABUS_RING_NEWEST || ring->last == 0;
    uint64_t best_number = 0, stamp;
    uint32_t slot, newest = camerabus_ring_word(ring, 452);
    if (newest >= ring->plan.slots) return -1;
    stamp = camerabus_ring_stamp(ring, newest);
    if ((stamp & 1) == 0 && stamp >> 1 > ring->last && (newest_wanted || stamp >> 1 == ring->last + 1)) return (int)newest;
    for (slot = 0; slot < ring->plan.slots; slot++) {
        stamp = camerabus_ring_stamp(ring, slot);
        if ((stamp & 1) != 0 || stamp >> 1 <= ring->last) continue;
        if (best >= 0 && (newest_wanted ? stamp >> 1 < best_number : stamp >> 1 > best_number)) continue;
        best = (int)slot;
        best_number = stamp >> 1;
    }
    return best;
}

/* A frame as wanted, if there is one now: 1, or 0. */
static inline int camerabus_ring_poll(
    struct camerabus_ring *ring, enum camerabus_ring_order order, struct camerabus_ring_frame *frame) {
    int attempt;
    for (attempt = 0; attempt < 4; attempt++) {
        const uint64_t *words;
        uint64_t copy[8];
        uint32_t flags;
        int i, slot = camerabus_ring_find(ring, order);
        if (slot < 0) return 0;
        words = (const uint64_t *)(const void *)camerabus_ring_record(ring, (uint32_t)slot);
        copy[0] = __atomic_load_n(words, __ATOMIC_ACQUIRE);
        if ((copy[0] & 1) != 0 || copy[0] >> 1 <= ring->last) continue;
        for (i = 1; i < 8; i++) copy[i] = __atomic_load_n(words + i, __ATOMIC_RELAXED);
        if (!camerabus_ring_is_unchanged(ring, (uint32_t)slot, copy[0])) continue;
        flags = (uint32_t)(copy[7] >> 32);
        frame->slot = (uint32_t)slot;
        frame->stamp = copy[0];
        frame->number = copy[0] >> 1;
        frame->skipped = ring->last == 0 ? 0 : frame->number - ring->last - 1;
        frame->sequence = copy[1];
        frame->capture_sequence = copy[2];
        memcpy(&frame->monotonic, &copy[3], 8);
        memcpy(&frame->realtime, &copy[4], 8);
        frame->generation = copy[5];
        frame->dropped = copy[6];
        frame->bytes = (uint32_t)copy[7];
        frame->source = flags & 3;
        frame->keyframe = flags & 32 ? (flags & 64) != 0 : -1;
        frame->presentation = frame->monotonic + (flags & 32 ? (int64_t)(flags >> 8) * 1000 : 0);
        frame->zoom = flags & 32 ? 1000 : (int)((flags >> 8) & 0x1FFFF);
        if (frame->zoom < 1000) frame->zoom = 1000;
        ring->last = frame->number;
        if (frame->source == 3 || frame->bytes < ring->least_bytes || frame->bytes > ring->plan.slot_bytes ||
            (ring->plan.frame_bytes && (frame->source == 1 || frame->bytes % ring->plan.frame_bytes))) {
            ring->unusable++;
            continue;
        }
        ring->frames++;
        ring->skipped += frame->skipped;
        return 1;
    }
    return 0;
}

static inline int64_t camerabus_ring_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Waits for a frame as wanted, at most so many milliseconds: FRAME, TIMED_OUT or CLOSED. */
static inline int camerabus_ring_wait(
    struct camerabus_ring *ring, enum camerabus_ring_order order, int milliseconds, struct camerabus_ring_frame *frame) {
    int64_t until = camerabus_ring_now() + (int64_t)(milliseconds < 0 ? 0 : milliseconds) * 1000000;
    struct timespec time;
    time.tv_sec = (time_t)(until / 1000000000);
    time.tv_nsec = (long)(until % 1000000000);
    for (;;) {
        uint32_t count = camerabus_ring_word(ring, 448), closed = camerabus_ring_closed(ring);
        if (camerabus_ring_poll(ring, order, frame)) return CAMERABUS_RING_FRAME;
        if (closed) return CAMERABUS_RING_CLOSED;
        if (camerabus_ring_now() >= until) return CAMERABUS_RING_TIMED_OUT;
        /* FUTEX_WAIT_BITSET: its time is absolute, on CLOCK_MONOTONIC. */
        syscall(SYS_futex, ring->memory + 448, 9, count, &time, NULL, -1);
    }
}

/* The frame's pixels. They may change while they are read: see camerabus_ring_is_intact. */
static inline const void *camerabus_ring_pixels(const struct camerabus_ring *ring, const struct camerabus_ring_frame *frame) {
    return ring->memory + ring->plan.pixels + (uint64_t)frame->slot * ring->plan.slot_bytes;
}

/* 1 if what was read from the frame's pixels until now is good. 0: it was overwritten, and counts as late. */
static inline int camerabus_ring_is_intact(struct camerabus_ring *ring, const struct camerabus_ring_frame *frame) {
    if (camerabus_ring_is_unchanged(ring, frame->slot, frame->stamp)) return 1;
    ring->late++;
    return 0;
}

/* Connects to media/<device>.ring and asks for a rendition: a descriptor, to be closed by the caller, or -errno. */
static inline int camerabus_ring_connect(const char *path, const char *rendition) {
    struct sockaddr_un address;
    char request[192];
    int descriptor, count;
    const char *c;
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    for (c = rendition; *c; c++) if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\') return -EINVAL;
    count = snprintf(request, sizeof request, "{\"rendition\":\"%s\"}", rendition);
    if (count < 0 || count >= (int)sizeof request) return -EINVAL;
    descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(descriptor, request, (size_t)count, MSG_NOSIGNAL) != count) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    return descriptor;
}

/* Waits for a ring on the connection, at most so many milliseconds, and maps it: OK, TIMED_OUT, REFUSED (ring->message says
 * why; a ring may still come), GONE, or an error. The ring is not one before: detach that first. */
static inline int camerabus_ring_receive(int connection, struct camerabus_ring *ring, int milliseconds) {
    struct pollfd waiting;
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr message;
    struct iovec part;
    struct cmsghdr *header;
    char text[sizeof ring->message];
    int result, descriptor = -1;
    ssize_t count;
    int64_t until = camerabus_ring_now() + (int64_t)(milliseconds < 0 ? 0 : milliseconds) * 1000000;
    memset(ring, 0, sizeof *ring);
    waiting.fd = connection;
    waiting.events = POLLIN;
    for (;;) {
        int64_t left = (until - camerabus_ring_now() + 999999) / 1000000;
        result = poll(&waiting, 1, left > 0 ? (int)left : 0);
        if (result > 0) break;
        if (result < 0 && errno != EINTR) return -errno;
        if (camerabus_ring_now() >= until) return CAMERABUS_RING_TIMED_OUT;
    }
    memset(&message, 0, sizeof message);
    part.iov_base = text;
    part.iov_len = sizeof text - 1;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    count = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) return errno == ECONNRESET ? CAMERABUS_RING_GONE : -errno;
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    if (count == 0 && descriptor < 0) return CAMERABUS_RING_GONE;
    text[count] = 0;
    if (descriptor < 0) {
        strcpy(ring->message, text);
        return CAMERABUS_RING_REFUSED;
    }
    result = camerabus_ring_attach(ring, descriptor);
    close(descriptor);
    strcpy(ring->message, text);
    return result;
}

/* Whether something has come on the connection, without taking it: OK (camerabus_ring_receive takes it), TIMED_OUT (nothing: the
 * worker lives), GONE, or an error. A worker that was killed has closed no ring, so it shows here only. */
static inline int camerabus_ring_look(int connection) {
    char byte;
    ssize_t count;
    do count = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count > 0) return CAMERABUS_RING_OK;
    if (count == 0 || errno == ECONNRESET) return CAMERABUS_RING_GONE;
    return errno == EAGAIN || errno == EWOULDBLOCK ? CAMERABUS_RING_TIMED_OUT : -errno;
}

/* A connection and its newest ring. */
struct camerabus_ring_reader {
    int connection;
    struct camerabus_ring ring; /* memory is NULL while there is none */
    uint64_t lost;              /* frames that were skipped, overwritten while in use, or of no use without those */
    uint64_t late;              /* of them: overwritten while in use */
    /* Of a format whose frames build on one another (H.264). */
    int is_chained, has_begun, is_broken;
};

/* Connects, and asks for a rendition: OK, or -errno. */
static inline int camerabus_ring_reader_open(struct camerabus_ring_reader *reader, const char *path, const char *rendition) {
    memset(reader, 0, sizeof *reader);
    reader->connection = camerabus_ring_connect(path, rendition);
    return reader->connection < 0 ? reader->connection : CAMERABUS_RING_OK;
}

static inline void camerabus_ring_reader_close(struct camerabus_ring_reader *reader) {
    camerabus_ring_detach(&reader->ring);
    if (reader->connection >= 0) close(reader->connection);
    reader->connection = -1;
}

/* Takes what the connection brings, at most so many milliseconds: as camerabus_ring_receive, but the ring before stays unless another
 * takes its place. */
static inline int camerabus_ring_reader_receive(struct camerabus_ring_reader *reader, int milliseconds) {
    struct camerabus_ring fresh;
    int result = camerabus_ring_receive(reader->connection, &fresh, milliseconds);
    if (result == CAMERABUS_RING_TIMED_OUT) return result;
    memcpy(reader->ring.message, fresh.message, sizeof fresh.message);
    if (result != CAMERABUS_RING_OK) return result;
    camerabus_ring_detach(&reader->ring);
    reader->ring = fresh;
    reader->is_chained = reader->has_begun = 0;
    reader->is_broken = 1;
    return result;
}

/* The next frame, from ring to ring, at most so many milliseconds from now: FRAME, TIMED_OUT, REFUSED (ring.message says why; call again,
 * for frames come when they can), GONE (close it, and open it again), or an error.
 *
 * Sound comes period by period, whatever the order. Frames that build on one another (H.264) come one after the other likewise, from a
 * key frame on, and after a loss from the next one on. A call may unmap the ring of the frame before. */
static inline int camerabus_ring_reader_next(
    struct camerabus_ring_reader *reader, enum camerabus_ring_order order, int milliseconds, struct camerabus_ring_frame *frame) {
    int64_t until = camerabus_ring_now() + (int64_t)(milliseconds < 0 ? 0 : milliseconds) * 1000000;
    memset(frame, 0, sizeof *frame);
    for (;;) {
        int64_t left = (until - camerabus_ring_now() + 999999) / 1000000;
        int result = CAMERABUS_RING_CLOSED, wait = left < 0 ? 0 : left < 1000 ? (int)left : 1000;
        if (reader->ring.memory)
            result = camerabus_ring_wait(
                &reader->ring, reader->is_chained || reader->ring.plan.rate ? CAMERABUS_RING_NEXT : order, wait, frame);
        if (result == CAMERABUS_RING_FRAME) {
            reader->is_chained = frame->keyframe >= 0;
            if (reader->has_begun) reader->lost += frame->skipped;
            if (frame->skipped) reader->is_broken = 1;
            if (reader->is_broken && frame->keyframe == 0) {
                reader->lost += (uint64_t)reader->has_begun;
                continue;
            }
            reader->has_begun = 1;
            reader->is_broken = 0;
            return result;
        }
        /* Also while frames are missing: a worker that was killed has closed no ring. */
        result = camerabus_ring_reader_receive(reader, result == CAMERABUS_RING_CLOSED && left > 0 ? (int)left : 0);
        if (result == CAMERABUS_RING_OK) continue;
        if (result != CAMERABUS_RING_TIMED_OUT || camerabus_ring_now() >= until) return result;
    }
}

/* 1 if what was read from the frame's pixels until now is good. 0: it was overwritten; throw away what was made of it. */
static inline int camerabus_ring_reader_is_intact(
    struct camerabus_ring_reader *reader, const struct camerabus_ring_frame *frame) {
    if (camerabus_ring_is_intact(&reader->ring, frame)) return 1;
    reader->late++;
    reader->lost++;
    reader->is_broken = 1;
    return 0;
}

#endif
