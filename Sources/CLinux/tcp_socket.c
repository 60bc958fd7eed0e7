#define _GNU_SOURCE
#include "CLinux.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_tcp_socket(
    int family, const void *local, uint16_t local_port, const void *peer, uint16_t peer_port, int *state, uint32_t *uid,
    uint32_t *inode
) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {
            .nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1
        },
        .request = {
            .sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
            .id = {
                .idiag_sport = htons(local_port), .idiag_dport = htons(peer_port),
                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}
            }
        }
    };
    const size_t count = family == AF_INET6 ? 16 : 4;
    memcpy(question.request.id.idiag_src, local, count);
    memcpy(question.request.id.idiag_dst, peer, count);
    const int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0) return -1;
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } answer;
    // The kernel answers before the question's call returns.
    const ssize_t sent = send(netlink, &question, sizeof question, 0);
    const ssize_t length = sent < 0 ? -1 : recv(netlink, &answer, sizeof answer, MSG_DONTWAIT);
    const int error = errno;
    close(netlink);
    errno = error;
    if (length < 0) return -1;
    if (!NLMSG_OK(&answer.header, (size_t)length)) {
        errno = EPROTO;
        return -1;
    }
    if (answer.header.nlmsg_type == NLMSG_ERROR) {
        errno = -((const struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
        return -1;
    }
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.header.nlmsg_len < NLMSG_LENGTH(sizeof *found)) {
        errno = EPROTO;
        return -1;
    }
    *state = found->idiag_state;
    *uid = found->idiag_uid;
    *inode = found->idiag_inode;
    return 0;
}
