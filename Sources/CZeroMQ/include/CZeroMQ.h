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
