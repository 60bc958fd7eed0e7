#define _GNU_SOURCE
#include "CZeroMQ.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTED = 1 << 16 };

// Of listening sockets: the maximum bytes of a message, 0 for no limit; -1: libzmq has nothing to do with it.
static atomic_llong limits[COUNTED];

static void begin_counting(int listener, int connection);
static void end_counting(int fd);

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

// What a frame costs in addition to its bytes. Of frames of more than VSM bytes libzmq may keep the whole receive buffer:
// that is counted from the second of a message on, as the first ones are few (ZMQ_RCVHWM).
enum { GREETING = 64, FRAME_BYTES = 1 << 10, BUFFER_BYTES = 16 << 10, VSM = 33, MORE = 1, LONG = 2, COMMAND = 4 };

// Messages that may wait on one connection, and the cost of what all connections of a user to a socket may have waiting.
enum { MAXIMUM_WAITING = 8192 };
static const int64_t MAXIMUM_OF_USER = 64 << 20;

static int64_t frame_cost(uint64_t bytes, int *has_large) {
    if (bytes <= VSM) return FRAME_BYTES;
    int64_t cost = *has_large ? BUFFER_BYTES : FRAME_BYTES;
    *has_large = 1;
    return cost;
}

// The connections of a user to a socket. `cost` is that of everything received and not read: of the connections, and of
// those that have ended.
struct user {
    uint32_t uid;
    // 0: unused.
    unsigned socket;
    int connections;
    int64_t cost;
    int64_t cost_of_ended;
};

struct connection {
    struct user *user;
    pid_t pid;
    int is_publisher;
    // Of the message that is incomplete: its complete frames, and the received part of the present one.
    int64_t message;
    int64_t frame;
    int has_large;
    // Bytes of the present frame, or of the greeting, that are still to come.
    uint64_t left;
    int flags;
    // The received part of the next frame's head, and of a command's name.
    unsigned char head[9];
    int head_bytes;
    unsigned char name[10];
    int name_bytes;
    // Complete messages that are not read yet.
    int waiting;
    int64_t waiting_cost;
};

static struct connection connections[COUNTED];
// Maximum bytes of a message; 0: the connection is not counted.
static atomic_llong maximums[COUNTED];
// Of listening sockets.
static unsigned sockets[COUNTED];
static char are_publishers[COUNTED];

// The first one is for those for whom there is no other.
static struct user users[1024] = {{.uid = UINT32_MAX, .socket = UINT32_MAX}};
static unsigned last_socket;
static int64_t unlimited_uid = -1;
static atomic_llong all_of_ended;
static atomic_ulong endings;
static atomic_ulong cut_off;
static struct czeromq_cut last_cut;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void czeromq_limit_messages(int listener, long long bytes, int is_publisher, struct czeromq_reader *reader) {
    if (listener < 0 || listener >= COUNTED) return;
    pthread_mutex_lock(&mutex);
    if (++last_socket >= UINT32_MAX) last_socket = 1;
    sockets[listener] = last_socket;
    are_publishers[listener] = (char)is_publisher;
    *reader = (struct czeromq_reader){.socket = last_socket, .is_router = !is_publisher};
    atomic_store(&limits[listener], bytes);
    pthread_mutex_unlock(&mutex);
}

void czeromq_leave_errors(int listener) {
    if (listener >= 0 && listener < COUNTED) atomic_store(&limits[listener], -1);
}

void czeromq_set_unlimited(long long uid) {
    pthread_mutex_lock(&mutex);
    unlimited_uid = uid;
    pthread_mutex_unlock(&mutex);
}

unsigned long czeromq_connections_cut_off(void) { return atomic_load(&cut_off); }

void czeromq_count_cut(struct czeromq_cut cut) {
    pthread_mutex_lock(&mutex);
    last_cut = cut;
    atomic_fetch_add(&cut_off, 1);
    pthread_mutex_unlock(&mutex);
}

struct czeromq_cut czeromq_last_cut(void) {
    pthread_mutex_lock(&mutex);
    struct czeromq_cut result = last_cut;
    pthread_mutex_unlock(&mutex);
    return result;
}

static struct user *find_user(unsigned socket, uint32_t uid) {
    for (size_t i = 1; i < sizeof users / sizeof *users; i++)
        if (users[i].socket == socket && users[i].uid == uid) return &users[i];
    return NULL;
}

static struct user *make_user(unsigned socket, uint32_t uid) {
    struct user *known = find_user(socket, uid);
    for (size_t i = 1; !known && i < sizeof users / sizeof *users; i++) {
        if (users[i].socket != 0) continue;
        users[i] = (struct user){.uid = uid, .socket = socket};
        known = &users[i];
    }
    return known ? known : &users[0];
}

static void forget_if_unused(struct user *user) {
    if (user == &users[0] || user->connections > 0 || user->cost_of_ended > 0) return;
    *user = (struct user){0};
}

static void begin_counting(int listener, int connection) {
    if (listener < 0 || listener >= COUNTED || connection >= COUNTED) return;
    end_counting(connection);
    int64_t limit = atomic_load(&limits[listener]);
    if (limit <= 0) return;
    struct ucred peer = {.uid = UINT32_MAX};
    socklen_t length = sizeof peer;
    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    pthread_mutex_lock(&mutex);
    struct user *user = make_user(sockets[listener], peer.uid);
    user->connections++;
    connections[connection] = (struct connection){
        .user = user, .pid = peer.pid, .is_publisher = are_publishers[listener], .left = GREETING, .flags = COMMAND,
        .name_bytes = sizeof connections->name};
    atomic_store(&maximums[connection], limit);
    pthread_mutex_unlock(&mutex);
}

// Its messages that are complete can still be read.
static void end_counting(int fd) {
    if (atomic_load_explicit(&maximums[fd], memory_order_relaxed) == 0) return;
    pthread_mutex_lock(&mutex);
    struct connection *connection = &connections[fd];
    struct user *user = connection->user;
    atomic_store(&maximums[fd], 0);
    user->cost -= connection->message + connection->frame;
    user->cost_of_ended += connection->waiting_cost;
    atomic_fetch_add(&all_of_ended, connection->waiting_cost);
    user->connections--;
    forget_if_unused(user);
    *connection = (struct connection){0};
    atomic_fetch_add(&endings, 1);
    pthread_mutex_unlock(&mutex);
}

int close(int fd) {
    // The number will belong to another descriptor.
    if (fd >= 0 && fd < COUNTED) {
        end_counting(fd);
        if (atomic_load_explicit(&limits[fd], memory_order_relaxed) != 0) atomic_store(&limits[fd], 0);
    }
    return (int)syscall(SYS_close, fd);
}

// What one recv() has completed.
struct completed {
    int messages;
    int64_t cost;
};

// libzmq hands two commands on: a subscription, and its end (RFC 37). It gives them to the reader as messages of one
// byte and the topic.
static enum czeromq_excess end_command(struct connection *connection, struct completed *completed) {
    static const char *names[] = {"\x09SUBSCRIBE", "\x06" "CANCEL"};
    for (int i = 0; i < 2; i++) {
        int length = (int)strlen(names[i]);
        if (connection->name_bytes < length || memcmp(connection->name, names[i], (size_t)length) != 0) continue;
        if (!connection->is_publisher) return CZEROMQ_FRAMES;
        completed->messages++;
        completed->cost += connection->frame - length + 1;
    }
    connection->frame = 0;
    return CZEROMQ_NOTHING;
}

static enum czeromq_excess end_frame(struct connection *connection, int64_t limit, struct completed *completed) {
    if (connection->flags & COMMAND) return end_command(connection, completed);
    connection->message += connection->frame;
    connection->frame = 0;
    if (connection->message > limit) return CZEROMQ_MESSAGE;
    if (connection->flags & MORE) return CZEROMQ_NOTHING;
    completed->messages++;
    completed->cost += connection->message;
    connection->message = 0;
    connection->has_large = 0;
    return CZEROMQ_NOTHING;
}

// Follows the frames of ZMTP 3 (RFC 23 and 37): flags, the size of one or eight bytes, and the body.
static enum czeromq_excess count(
    struct connection *connection, int64_t limit, const unsigned char *byte, size_t size,
    struct completed *completed) {
    while (size > 0) {
        if (connection->left > 0) {
            size_t part = connection->left < size ? connection->left : size;
            if (connection->flags & COMMAND)
                for (size_t i = 0; i < part && connection->name_bytes < (int)sizeof connection->name; i++)
                    connection->name[connection->name_bytes++] = byte[i];
            connection->left -= part;
            connection->frame += (int64_t)part;
            byte += part;
            size -= part;
        } else {
            connection->head[connection->head_bytes++] = *byte++;
            size--;
            if (connection->head_bytes < (connection->head[0] & LONG ? 9 : 2)) continue;
            for (int i = 1; i < connection->head_bytes; i++)
                connection->left = connection->left << 8 | connection->head[i];
            connection->head_bytes = 0;
            connection->name_bytes = 0;
            connection->flags = connection->head[0];
            int is_command = (connection->flags & COMMAND) != 0, no = 0;
            // A command is one frame, and so is a subscription. libzmq would wait for the others.
            if ((connection->flags & MORE) && (is_command || connection->is_publisher)) return CZEROMQ_FRAMES;
            connection->frame = frame_cost(connection->left, is_command ? &no : &connection->has_large);
        }
        if (connection->left == 0 && connection->head_bytes == 0) {
            enum czeromq_excess excess = end_frame(connection, limit, completed);
            if (excess != CZEROMQ_NOTHING) return excess;
        }
    }
    return CZEROMQ_NOTHING;
}

// Counts what has been received. What exceeds a limit is not counted, as libzmq never sees it.
static enum czeromq_excess account(int fd, const void *bytes, size_t size, int64_t limit) {
    struct connection *connection = &connections[fd];
    struct user *user = connection->user;
    struct completed completed = {0};
    int64_t before = connection->message + connection->frame;
    enum czeromq_excess excess = count(connection, limit, bytes, size, &completed);
    int64_t unfinished = connection->message + connection->frame;
    if (excess == CZEROMQ_NOTHING && unfinished > limit) excess = CZEROMQ_MESSAGE;
    if (excess == CZEROMQ_NOTHING && connection->waiting + completed.messages > MAXIMUM_WAITING)
        excess = CZEROMQ_WAITING;
    user->cost += unfinished - before + completed.cost;
    if (excess == CZEROMQ_NOTHING && user->cost > MAXIMUM_OF_USER && user->uid != unlimited_uid) excess = CZEROMQ_USER;
    if (excess == CZEROMQ_NOTHING) {
        connection->waiting += completed.messages;
        connection->waiting_cost += completed.cost;
    } else {
        user->cost -= unfinished + completed.cost;
        connection->message = 0;
        connection->frame = 0;
        last_cut = (struct czeromq_cut){.excess = excess, .uid = user->uid, .pid = connection->pid};
        atomic_fetch_add(&cut_off, 1);
    }
    return excess;
}

ssize_t recv(int fd, void *buffer, size_t size, int flags) {
    ssize_t result = syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
    if (result <= 0 || fd < 0 || fd >= COUNTED || (flags & MSG_PEEK)) return result;
    int64_t limit = atomic_load_explicit(&maximums[fd], memory_order_relaxed);
    if (limit == 0) return result;
    pthread_mutex_lock(&mutex);
    enum czeromq_excess excess = account(fd, buffer, (size_t)result, limit);
    pthread_mutex_unlock(&mutex);
    if (excess == CZEROMQ_NOTHING) return result;
    shutdown(fd, SHUT_RDWR);
    errno = ECONNRESET;
    return -1;
}

// The uid in host:uid:gid:pid.
static uint32_t peer_uid(const char *address) {
    const char *colon = address + strlen(address);
    for (int i = 0; i < 3 && colon > address; i++)
        do colon--;
        while (colon > address && *colon != ':');
    return *colon == ':' ? (uint32_t)strtoul(colon + 1, NULL, 10) : UINT32_MAX;
}

static void has_read(zmq_msg_t *message, struct czeromq_reader *reader) {
    int is_first = !reader->is_inside;
    reader->is_inside = zmq_msg_more(message);
    if (is_first) reader->has_large = 0;
    // A router's first frame names the connection, and libzmq makes the ends of subscriptions that it reports itself.
    if (is_first && reader->is_router) return;
    const char *address = zmq_msg_gets(message, "Peer-Address");
    if (!address) return;
    uint32_t uid = peer_uid(address);
    int fd = zmq_msg_get(message, ZMQ_SRCFD);
    int64_t cost = (int64_t)zmq_msg_size(message);
    cost += frame_cost((uint64_t)cost, &reader->has_large);
    pthread_mutex_lock(&mutex);
    struct connection *connection = NULL;
    struct user *user = NULL;
    if (fd >= 0 && fd < COUNTED) user = connections[fd].user;
    if (user && (user == &users[0] || (user->socket == reader->socket && user->uid == uid)))
        connection = &connections[fd];
    else
        user = find_user(reader->socket, uid);
    if (!user) user = &users[0];
    int64_t part = 0;
    if (connection) {
        part = cost < connection->waiting_cost ? cost : connection->waiting_cost;
        connection->waiting_cost -= part;
        if (connection->waiting > 0 && !reader->is_inside) connection->waiting--;
    }
    // Of a connection that has ended: its descriptor may belong to another one, which is then taken for it.
    int64_t rest = cost - part < user->cost_of_ended ? cost - part : user->cost_of_ended;
    user->cost_of_ended -= rest;
    user->cost -= part + rest;
    atomic_fetch_sub(&all_of_ended, rest);
    forget_if_unused(user);
    pthread_mutex_unlock(&mutex);
}

// Nothing was left: what is still counted of connections that had ended before has been lost, as libzmq drops what
// follows an error of the protocol.
static void has_read_all(const struct czeromq_reader *reader, unsigned long before) {
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; atomic_load(&endings) == before && i < sizeof users / sizeof *users; i++) {
        struct user *user = &users[i];
        if (user->cost_of_ended == 0 || (user->socket != reader->socket && user != &users[0])) continue;
        user->cost -= user->cost_of_ended;
        atomic_fetch_sub(&all_of_ended, user->cost_of_ended);
        user->cost_of_ended = 0;
        forget_if_unused(user);
    }
    pthread_mutex_unlock(&mutex);
}

int czeromq_receive(void *socket, zmq_msg_t *message, struct czeromq_reader *reader) {
    unsigned long before = atomic_load(&endings);
    int result = zmq_msg_recv(message, socket, ZMQ_DONTWAIT);
    int error = errno;
    if (reader->socket != 0) {
        if (result >= 0) has_read(message, reader);
        else if (error == EAGAIN && atomic_load(&all_of_ended) > 0) has_read_all(reader, before);
    }
    errno = error;
    return result;
}
