// libzmq, and the one thing that it must not do in a server.
#pragma once
#include <zmq.h>

// Keeps so many of the process's descriptors for other uses than libzmq's connections, from now on.
//
// libzmq 4.3 aborts the process when accept() finds no descriptor left (EMFILE), and it accepts faster than any loop could
// count. So this library brings an accept4() of its own, which the dynamic linker gives to libzmq: it takes the connection
// and closes it at once when its descriptor lies within the reserve, which libzmq sees as a connection that was aborted.
// To be deleted when libzmq survives EMFILE.
void czeromq_reserve_descriptors(int count);

// Connections that were closed because of the reserve.
unsigned long czeromq_connections_turned_away(void);

// What an application reads from a counted socket.
struct czeromq_reader {
    // 0: nothing is counted.
    unsigned socket;
    int is_router;
    // Of the message that is being read.
    int is_inside;
    int has_large;
};

// Counts what peers send to a listening socket, on each connection that it accepts from now on, until the application
// has read it with czeromq_receive(). A connection is shut down that exceeds what czeromq_excess lists. A message has at
// most so many bytes. Each frame counts 1 KiB in addition to its bytes, and 16 KiB if it is a message's second or later
// one of more than 33 bytes, because libzmq may keep a whole receive buffer for it.
//
// libzmq limits the bytes of a frame, but not the number of frames in a message, and it delivers only complete messages.
// So an endless message fills the memory before the process can see it. On XPUB sockets it takes everything that comes,
// and on others so many messages of each connection. The recv() of this library follows the frames of accepted
// connections (ZMTP 3). libzmq refuses earlier versions on sockets with a ZAP domain. CURVE hides where a message ends:
// there only single frames are limited. The close() of this library ends the counting.
// To be deleted when libzmq bounds messages.
//
// is_publisher: an XPUB socket; else a ROUTER.
void czeromq_limit_messages(int listener, long long bytes, int is_publisher, struct czeromq_reader *reader);

// zmq_msg_recv() with ZMQ_DONTWAIT, for any socket.
int czeromq_receive(void *socket, zmq_msg_t *message, struct czeromq_reader *reader);

// That user has no limit of its own; -1: each has.
void czeromq_set_unlimited(long long uid);

// Leaves the errors of accept4() on that listening socket unchanged: it does not belong to libzmq.
void czeromq_leave_errors(int listener);

enum czeromq_excess {
    CZEROMQ_NOTHING,
    // The bytes of a message.
    CZEROMQ_MESSAGE,
    // Frames that do not belong together, or not there.
    CZEROMQ_FRAMES,
    // 8192 messages of the connection that are not read yet.
    CZEROMQ_WAITING,
    // 64 MiB of the user's messages to the socket that are not complete or not read yet.
    CZEROMQ_USER,
};

// `excess` may be more than the above: what the application has found.
struct czeromq_cut {
    unsigned excess;
    unsigned uid;
    int pid;
};

// One more, which the application has ended itself.
void czeromq_count_cut(struct czeromq_cut cut);

// Connections that were ended for what they sent, and the last one.
unsigned long czeromq_connections_cut_off(void);
struct czeromq_cut czeromq_last_cut(void);
