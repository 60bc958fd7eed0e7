/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and replies by libzmq alone: the client of any bus, and a server that does nothing but answer.
 *
 *     zmq_requests serve ENDPOINT
 *     zmq_requests ask ENDPOINT SECONDS RECORDS
 *
 * The client asks `bus.ping` again as soon as the answer has come. Its records: asked, answered, the number. */
#include "common.h"
#include <zmq.h>

static void serve(void *context, char **arguments) {
    static const char reply[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
    void *socket = zmq_socket(context, ZMQ_ROUTER);
    int linger = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_bind(socket, arguments[0]) != 0) fail("zmq_bind");
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        zmq_msg_t identity, request;
        zmq_msg_init(&identity);
        zmq_msg_init(&request);
        if (zmq_msg_recv(&identity, socket, 0) >= 0 && zmq_msg_recv(&request, socket, 0) >= 0) {
            if (zmq_msg_send(&identity, socket, ZMQ_SNDMORE) >= 0) zmq_send(socket, reply, sizeof reply - 1, 0);
        }
        zmq_msg_close(&identity);
        zmq_msg_close(&request);
    }
    zmq_close(socket);
}

static int ask_once(void *socket, const char *request) {
    char reply[4096];
    return zmq_send(socket, request, strlen(request), 0) >= 0 && zmq_recv(socket, reply, sizeof reply, 0) >= 0;
}

static void ask(void *context, char **arguments) {
    static const char greeting[] = "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"bus.hello\",\"params\":{\"client\":\"benchmark\"}}";
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"bus.ping\",\"params\":{}}";
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int linger = 0, limit = 5000;
    uint64_t number;
    int64_t until;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &limit, sizeof limit);
    if (zmq_connect(socket, arguments[0]) != 0) fail("zmq_connect");
    if (!ask_once(socket, greeting)) fail("bus.hello");
    until = now() + (int64_t)(atof(arguments[1]) * SECOND);
    for (number = 0; !is_over && now() < until; number++) {
        int64_t asked = now();
        if (!ask_once(socket, request)) fail("bus.ping");
        note(asked, now(), number);
    }
    zmq_close(socket);
    save(arguments[2]);
}

int main(int count, char **arguments) {
    void *context = zmq_ctx_new();
    begin();
    if (count == 3 && strcmp(arguments[1], "serve") == 0) serve(context, arguments + 2);
    else if (count == 5 && strcmp(arguments[1], "ask") == 0) ask(context, arguments + 2);
    else return 2;
    zmq_ctx_term(context);
    return 0;
}
