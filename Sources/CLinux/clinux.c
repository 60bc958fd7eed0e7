#define _GNU_SOURCE
#include <sys/epoll.h>
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int clinux_inotify(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }

int clinux_inotify_add(int fd, const char *folder) {
    return inotify_add_watch(fd, folder, IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

int clinux_is_procfs(const char *path) {
    struct statfs system;
    return statfs(path, &system) == 0 ? system.f_type == PROC_SUPER_MAGIC : -1;
}

int clinux_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int clinux_timerfd_settime(int fd, int64_t at, int64_t interval) {
    struct itimerspec spec = {
        .it_interval = {.tv_sec = interval / 1000000000, .tv_nsec = interval % 1000000000},
        .it_value = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000},
    };
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, 0);
}

int clinux_signalfd(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, 0) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int clinux_signalfd_read(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int clinux_pidfd_open(int32_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int clinux_pidfd_send_signal(int fd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, fd, signal, 0, 0);
}

int clinux_reap(int32_t pid, int *status) { return waitpid(pid, status, WNOHANG) == pid ? 0 : -1; }

int clinux_peer_credentials(int fd, uint32_t *uid, uint32_t *gid, int32_t *pid) {
    struct ucred cred;
    socklen_t length = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) != 0) return -1;
    *uid = cred.uid;
    *gid = cred.gid;
    *pid = cred.pid;
    return 0;
}

int clinux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

// Part by part, and not by openat2: where a service may make no file setuid (RestrictSUIDSGID=), it has none, as no filter can see its flags.
int clinux_open_folder_beneath(int root, const char *path) {
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int folder = openat(root, ".", flags);
    for (path += strspn(path, "/"); folder >= 0 && *path; path += strspn(path, "/")) {
        char name[NAME_MAX + 1] = "";
        size_t length = strcspn(path, "/");
        int next = -1, error = ENAMETOOLONG;
        if (length < sizeof name) {
            struct stat status;
            memcpy(name, path, length);
            next = strcmp(name, "..") ? openat(folder, name, flags) : -1;
            error = strcmp(name, "..") ? errno : EXDEV;
            if (next < 0 && error == ENOTDIR && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) error = ELOOP;
        }
        close(folder);
        errno = error;
        folder = next;
        path += length;
    }
    if (folder < 0) return -1;
    int opened = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = errno;
    close(folder);
    errno = error;
    return opened;
}

int clinux_flock_exclusive(int fd) { return flock(fd, LOCK_EX); }

int clinux_flock_exclusive_now(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }

int clinux_flock_shared_now(int fd) { return flock(fd, LOCK_SH | LOCK_NB); }

int clinux_lock_file_now(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

int clinux_file_is_locked(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return -1;
    return lock.l_type != F_UNLCK;
}

int64_t clinux_birth_time(int fd) {
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0 || !(status.stx_mask & STATX_BTIME)) return -1;
    return (int64_t)status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
}

int clinux_open_unnamed(const char *folder, uint32_t mode) {
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int clinux_name_file(int fd, const char *path) {
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int clinux_rename_new(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

char **clinux_environment(void) {
    extern char **environ;
    return environ;
}

int clinux_spawn_close_from(void *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int clinux_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) == -1) return -1;
    // The flag belongs to the open file: a child that got the writing end would have it too.
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) return 0;
    int code = errno;
    close(ends[0]);
    close(ends[1]);
    errno = code;
    return -1;
}

int clinux_mallopt_mmap_threshold(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }

int clinux_mallopt_trim_threshold(int bytes) { return mallopt(M_TRIM_THRESHOLD, bytes); }

int clinux_malloc_trim(void) { return malloc_trim(0); }

int clinux_memfd(const char *name) { return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int clinux_seal_for_readers(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

int clinux_seal_size(int fd) { return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); }

int clinux_seal_whole(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

int clinux_cannot_shrink(int fd) {
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

int clinux_reopen_read_only(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int clinux_is_shared(int fd) {
    // Who opens the file while this has the lease would be announced by SIGIO, whose default ends the process.
    signal(SIGIO, SIG_IGN);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN ? 1 : -1;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return 0;
}

int clinux_futex_wait(const void *word, uint32_t value, int64_t until) {
    struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &time, 0, FUTEX_BITSET_MATCH_ANY);
}

int clinux_futex_wake_all(const void *word) { return (int)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, 0, 0, 0); }

int clinux_send_with_descriptor(int socket, const void *bytes, int count, int descriptor) {
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = (size_t)count};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    return (int)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int clinux_receive_with_descriptor(int socket, void *bytes, int capacity, int *descriptor) {
    struct iovec part = {.iov_base = bytes, .iov_len = (size_t)capacity};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *descriptor = -1;
    int count = (int)recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) return -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t given = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < given; i++) {
            int one;
            memcpy(&one, CMSG_DATA(header) + i * sizeof(int), sizeof one);
            if (*descriptor < 0) *descriptor = one;
            else close(one);
        }
    }
    if ((message.msg_flags & MSG_TRUNC) == 0) return count;
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
    errno = EMSGSIZE;
    return -1;
}

int clinux_accept(int socket) { return accept4(socket, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK); }

int clinux_unread_bytes(int socket) {
    int count;
    return ioctl(socket, SIOCOUTQ, &count) == 0 ? count : -1;
}

int clinux_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_set(int epoll, int fd, int input, int urgent, uint64_t number) {
    struct epoll_event event = { (input ? EPOLLIN : 0u) | (urgent ? EPOLLPRI : 0u), { .u64 = number } };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
    return errno == EEXIST ? epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) : -1;
}

int clinux_epoll_remove(int epoll, int fd) { return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL); }

int clinux_epoll_wait(int epoll, uint64_t *numbers, uint32_t *bits, int count, int milliseconds) {
    struct epoll_event events[16];
    const int ready = epoll_wait(epoll, events, count < 16 ? count : 16, milliseconds);
    for (int index = 0; index < ready; index++) {
        const uint32_t found = events[index].events;
        numbers[index] = events[index].data.u64;
        bits[index] = (found & EPOLLIN ? clinux_epoll_input : 0u) | (found & EPOLLPRI ? clinux_epoll_urgent : 0u)
            | (found & (EPOLLERR | EPOLLHUP) ? clinux_epoll_broken : 0u);
    }
    return ready;
}

int32_t clinux_thread_id(void) { return gettid(); }

int clinux_set_thread_nice(int nice) { return setpriority(PRIO_PROCESS, (id_t)gettid(), nice); }

int clinux_semaphore_wait_until(void *semaphore, int64_t at) {
    struct timespec time = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, &time);
}

int clinux_clock_error(int64_t *error) {
    struct timex state = {.modes = 0};
    const int kept = adjtimex(&state);
    if (kept == -1) return -1;
    *error = (int64_t)state.maxerror * 1000;
    return kept != TIME_ERROR && !(state.status & STA_UNSYNC);
}
