#define _GNU_SOURCE
#include "CLinux.h"
#include <malloc.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

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

int clinux_flock_exclusive_now(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }

char **clinux_environment(void) {
    extern char **environ;
    return environ;
}

int clinux_spawn_close_from(void *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

int clinux_mallopt_mmap_threshold(int bytes) { return mallopt(M_MMAP_THRESHOLD, bytes); }

int clinux_mallopt_trim_threshold(int bytes) { return mallopt(M_TRIM_THRESHOLD, bytes); }

int clinux_malloc_trim(void) { return malloc_trim(0); }
