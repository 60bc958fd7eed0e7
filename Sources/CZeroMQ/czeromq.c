#define _GNU_SOURCE
#include "CZeroMQ.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTED = 1 << 16 };

// Of listening sockets: the maximum bytes of a message, 0 for no limit; -1: libzmq has nothing to do with it.
static atomic_llong limits[COUNTED];

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
    if (connection < 0 && fd >= 0 && fd < COUNTED && atomic_load_explicit(&limits[fd], memory_order_relaxed) < 0) return -1;
    // Where the reserve itself is used up, the connection stays in the backlog until somebody closes something.
    if (connection < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS)) errno = EAGAIN;
    return connection;
}

// The received part of a connection's incomplete message. Only the thread that reads the connection changes it.
struct unfinished {
    // Maximum bytes of a message; 0: the connection is not counted.
    int64_t limit;
    int64_t bytes;
    // Bytes of the present frame, or of the greeting, that are still to come.
    uint64_t left;
    // MORE of the last frame that is no command: commands may come between two frames of a message.
    int has_more;
    // The received part of the next frame's head.
    unsigned char head[9];
    int head_bytes;
};

// libzmq keeps a whole buffer of what it received for as long as one frame in it.
enum { GREETING = 64, FRAME_BYTES = 16 << 10, MORE = 1, LONG = 2, COMMAND = 4 };

static struct unfinished connections[COUNTED];
static atomic_llong all_unfinished;
static atomic_ulong cut_off;

// More than the largest valid request.
static const int64_t SMALL = 2 << 20;
// If all connections together hold more than this, those that hold more than SMALL are cut off.
static const int64_t TOTAL = 64 << 20;

void czeromq_limit_messages(int listener, long long bytes) {
    if (listener >= 0 && listener < COUNTED) atomic_store(&limits[listener], bytes);
}

void czeromq_leave_errors(int listener) {
    if (listener >= 0 && listener < COUNTED) atomic_store(&limits[listener], -1);
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
    int64_t limit = atomic_load(&limits[listener]);
    *message = (struct unfinished){.limit = limit > 0 ? limit : 0, .left = GREETING};
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
    // The number will belong to another descriptor.
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
