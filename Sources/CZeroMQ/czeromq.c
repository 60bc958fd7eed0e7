#define _GNU_SOURCE
#include "CZeroMQ.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void begin_counting(int listener, int connection);

static atomic_int highest = -1;
static atomic_ulong turned_away;

void czeromq_reserve_descriptors(int count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    long top = limit.rlim_cur > 1 << 30 ? 1 << 30 : (long)limit.rlim_cur;
    atomic_store(&highest, (int)(top > count ? top - count : top / 2));
}

unsigned long czeromq_connections_turned_away(void) { return atomic_load(&turned_away); }

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    int connection = (int)syscall(SYS_accept4, fd, address, length, flags);
    int limit = atomic_load_explicit(&highest, memory_order_relaxed);
    // The kernel gives the lowest free number, so a high one says that few are left.
    if (connection >= 0 && limit >= 0 && connection >= limit) {
        close(connection);
        atomic_fetch_add(&turned_away, 1);
        errno = ECONNABORTED;
        return -1;
    }
    if (connection >= 0) begin_counting(fd, connection);
    // Where the reserve itself is used up, the connection stays in the backlog until somebody closes something.
    if (connection < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS)) errno = EAGAIN;
    return connection;
}

// What has come of a message on a connection that is not complete. Only the thread that reads the connection touches it.
struct unfinished {
    // Most bytes of a message; 0: the connection is not counted.
    int64_t limit;
    int64_t bytes;
    // Bytes that belong to the frame, or to the greeting, still to come; flags of the frame.
    uint64_t left;
    // Whether the message goes on behind the last frame. A command may come between two frames of it.
    int has_more;
    // The head of the next frame, as far as it has come.
    unsigned char head[9];
    int head_bytes;
};

// libzmq keeps a whole buffer of what it received for as long as one frame in it.
enum { COUNTED = 1 << 16, GREETING = 64, FRAME_BYTES = 16 << 10, MORE = 1, LONG = 2, COMMAND = 4 };

static struct unfinished connections[COUNTED];
static atomic_llong limits[COUNTED];
static atomic_llong all_unfinished;
static atomic_ulong cut_off;

// More than any request has.
static const int64_t SMALL = 2 << 20;
// What all connections together may hold before those with more than that are cut off.
static const int64_t TOTAL = 64 << 20;

void czeromq_limit_messages(int listener, long long bytes) {
    if (listener >= 0 && listener < COUNTED) atomic_store(&limits[listener], bytes);
}

unsigned long czeromq_connections_cut_off(void) { return atomic_load(&cut_off); }

static void set_bytes(struct unfinished *message, int64_t bytes) {
    atomic_fetch_add_explicit(&all_unfinished, bytes - message->bytes, memory_order_relaxed);
    message->bytes = bytes;
}

static void begin_counting(int listener, int connection) {
    if (listener < 0 || listener >= COUNTED || connection >= COUNTED) return;
    struct unfinished *message = &connections[connection];
    set_bytes(message, 0);
    *message = (struct unfinished){.limit = atomic_load(&limits[listener]), .left = GREETING};
}

// Follows the frames of ZMTP 3 (RFC 23 and 37): flags, the size of one or eight bytes, and the body.
static void count(struct unfinished *message, const unsigned char *byte, size_t size) {
    while (size > 0) {
        if (message->left > 0) {
            size_t part = message->left < size ? message->left : size;
            message->left -= part;
            byte += part;
            size -= part;
            set_bytes(message, message->bytes + (int64_t)part);
        } else {
            message->head[message->head_bytes++] = *byte++;
            size--;
            if (message->head_bytes < (message->head[0] & LONG ? 9 : 2)) continue;
            for (int i = 1; i < message->head_bytes; i++) message->left = message->left << 8 | message->head[i];
            if (!(message->head[0] & COMMAND)) message->has_more = message->head[0] & MORE;
            message->head_bytes = 0;
            set_bytes(message, message->bytes + FRAME_BYTES);
        }
        if (message->left == 0 && message->head_bytes == 0 && !message->has_more) set_bytes(message, 0);
    }
}

int close(int fd) {
    // Its number may be another descriptor's soon.
    if (fd >= 0 && fd < COUNTED) {
        if (connections[fd].limit != 0) {
            set_bytes(&connections[fd], 0);
            connections[fd].limit = 0;
        }
        if (atomic_load_explicit(&limits[fd], memory_order_relaxed) != 0) atomic_store(&limits[fd], 0);
    }
    return (int)syscall(SYS_close, fd);
}

ssize_t recv(int fd, void *buffer, size_t size, int flags) {
    ssize_t result = syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
    if (result <= 0 || fd < 0 || fd >= COUNTED || connections[fd].limit == 0 || (flags & MSG_PEEK)) return result;
    struct unfinished *message = &connections[fd];
    count(message, buffer, (size_t)result);
    if (message->bytes > message->limit
        || (message->bytes > SMALL && atomic_load_explicit(&all_unfinished, memory_order_relaxed) > TOTAL)) {
        set_bytes(message, 0);
        atomic_fetch_add(&cut_off, 1);
        shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
        return -1;
    }
    return result;
}
