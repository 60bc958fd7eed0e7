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

// Ends connections that a listening socket accepts from now on, when a message of theirs has come with more than so many
// bytes and is not complete; 0: no limit. A frame counts 16 KiB beside its own bytes: so much libzmq may keep for it.
//
// libzmq bounds the bytes of a frame, but neither the frames of a message nor their sum, and gives a message out only as
// a whole: an endless one fills the memory, and nobody behind libzmq sees it. So this library also brings a recv() of its
// own, and a close(), which follow the frames of accepted connections (ZMTP 3; libzmq refuses earlier ones where it asks who may connect,
// and CURVE hides where a message ends, so for CURVE this bounds nothing but a single frame).
// To be deleted when libzmq bounds messages.
void czeromq_limit_messages(int listener, long long bytes);

// Connections that were ended for that.
unsigned long czeromq_connections_cut_off(void);
