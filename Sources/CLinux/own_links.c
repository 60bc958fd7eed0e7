#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { maximum_links = 16 };

// Opens what is called so in a folder, which is closed; a link that this user or root made stays before what is left of the path.
static int step(int folder, const char *name, char *rest, size_t size, int *links) {
    int next = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = errno;
    struct stat status;
    if (next >= 0 && fstat(next, &status) == 0 && S_ISLNK(status.st_mode)) {
        char target[PATH_MAX], whole[PATH_MAX];
        ssize_t length = readlinkat(next, "", target, sizeof target - 1);
        close(next);
        next = -1;
        error = ELOOP;
        if (length > 0 && (status.st_uid == 0 || status.st_uid == geteuid()) && ++*links <= maximum_links) {
            target[length] = 0;
            error = ENAMETOOLONG;
            if ((size_t)snprintf(whole, sizeof whole, "%s/%s", target, rest) < size) {
                strcpy(rest, whole);
                next = target[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : fcntl(folder, F_DUPFD_CLOEXEC, 0);
                error = errno;
            }
        }
    }
    close(folder);
    errno = error;
    return next;
}

int clinux_open_by_own_links(const char *path) {
    char rest[PATH_MAX];
    int folder, links = 0;
    if (path[0] != '/') return errno = EINVAL, -1;
    if (strlen(path) >= sizeof rest) return errno = ENAMETOOLONG, -1;
    strcpy(rest, path);
    folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0) {
        char name[NAME_MAX + 1] = "";
        size_t before = strspn(rest, "/"), length = strcspn(rest + before, "/");
        int isLast = rest[before + length + strspn(rest + before + length, "/")] == 0;
        if (length == 0 || length >= sizeof name) {
            close(folder);
            return errno = length == 0 ? EISDIR : ENAMETOOLONG, -1;
        }
        memcpy(name, rest + before, length);
        memmove(rest, rest + before + length, strlen(rest + before + length) + 1);
        if (isLast) {
            int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), error = errno;
            close(folder);
            errno = error;
            return file;
        }
        folder = step(folder, name, rest, sizeof rest, &links);
    }
    return -1;
}
