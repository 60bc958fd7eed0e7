#define _GNU_SOURCE
#include "CZeroMQ.h"
#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    // Where the reserve itself is used up, the connection stays in the backlog until somebody closes something.
    if (connection < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS)) errno = EAGAIN;
    return connection;
}
