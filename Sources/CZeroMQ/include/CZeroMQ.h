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

// Limits the bytes of a message on each connection that a listening socket accepts from now on; 0: no limit. A connection
// that exceeds it is shut down before the message is complete. Each frame counts 16 KiB in addition to its bytes, because
// libzmq may keep a whole receive buffer for it.
//
// libzmq limits the bytes of a frame, but not the number of frames in a message, and it delivers only complete messages.
// So an endless message fills the memory before the process can see it. The recv() of this library follows the frames of
// accepted connections (ZMTP 3). libzmq refuses earlier versions on sockets with a ZAP domain. CURVE hides where a message
// ends: there only single frames are limited. The close() of this library ends the counting.
// To be deleted when libzmq bounds messages.
void czeromq_limit_messages(int listener, long long bytes);

// Leaves the errors of accept4() on that listening socket unchanged: it does not belong to libzmq.
void czeromq_leave_errors(int listener);

// Connections that were ended for that.
unsigned long czeromq_connections_cut_off(void);
