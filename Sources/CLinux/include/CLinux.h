// What Swift's Glibc module lacks: functions that glibc declares only under _GNU_SOURCE, or that the module map leaves
// out. One thin function each, no policy: they return what the call returns, and errno is the call's.
//
// The system's headers stay out of this one: with _GNU_SOURCE their types would differ from those of Swift's Glibc module.
#pragma once
#include <stdint.h>

int clinux_eventfd(void);

int clinux_timerfd(void);

// Absolute time in nanoseconds of CLOCK_MONOTONIC, 0 disarms; an interval of 0 fires once.
int clinux_timerfd_settime(int fd, int64_t at, int64_t interval);

// Blocks the signals for the calling thread (and those it starts later) and opens a descriptor that reads them.
int clinux_signalfd(const int *signals, int count);

// The number of the next signal, 0 when there is none.
int clinux_signalfd_read(int fd);

int clinux_pidfd_open(int32_t pid);

int clinux_pidfd_send_signal(int fd, int signal);

// Reaps our own child: 0 and its status (as waitpid tells it), or -1.
int clinux_reap(int32_t pid, int *status);

int clinux_peer_credentials(int fd, uint32_t *uid, uint32_t *gid, int32_t *pid);

int clinux_set_thread_name(const char *name);

int clinux_flock_exclusive_now(int fd);

char **clinux_environment(void);

/// Lets a process that is spawned close every descriptor from that one on (posix_spawn_file_actions_t *).
int clinux_spawn_close_from(void *actions, int first);

// Both ends close-on-exec, and never blocking.
int clinux_pipe(int ends[2]);

// mallopt(M_MMAP_THRESHOLD), mallopt(M_TRIM_THRESHOLD): 1 on success.
int clinux_mallopt_mmap_threshold(int bytes);
int clinux_mallopt_trim_threshold(int bytes);

// malloc_trim(0): 1 if memory went back to the kernel.
int clinux_malloc_trim(void);
