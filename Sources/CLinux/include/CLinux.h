// What Swift's Glibc module lacks: functions that glibc declares only under _GNU_SOURCE, or that the module map leaves
// out. One thin function each, no policy: they return what the call returns, and errno is the call's.
//
// The system's headers stay out of this one: with _GNU_SOURCE their types would differ from those of Swift's Glibc module.
#pragma once
#include <stdint.h>

int clinux_eventfd(void);

// Tells of files in the folders that are added to it, once they have been written, put there or taken away, and of the folders' end.
int clinux_inotify(void);
int clinux_inotify_add(int fd, const char *folder);

// Whether the file, or the folder, is on procfs: 1, 0, or -1 with errno.
int clinux_is_procfs(const char *path);

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

// The calling thread's number.
int32_t clinux_thread_id(void);

// Sets the nice value of the calling thread, and of those that it starts later (setpriority on Linux).
int clinux_set_thread_nice(int nice);

// sem_clockwait(sem_t *): absolute time in nanoseconds of CLOCK_MONOTONIC.
int clinux_semaphore_wait_until(void *semaphore, int64_t at);

// A folder below another one, which is open; ELOOP or EXDEV when a link, or "..", is on the way there.
int clinux_open_folder_beneath(int root, const char *path);
// A file, to read, to which no link leads that another user than root or this one made, and which is none itself: ELOOP.
int clinux_open_by_own_links(const char *path);

int clinux_flock_exclusive(int fd);
int clinux_flock_exclusive_now(int fd);
int clinux_flock_shared_now(int fd);

// The whole file, for as long as its open file description lives (F_OFD_SETLK). The descriptor must be open for writing.
int clinux_lock_file_now(int fd);
// 1: somebody else has the lock, 0: nobody, -1: can't be known (F_OFD_GETLK). Takes nothing.
int clinux_file_is_locked(int fd);

// When the file was made, nanoseconds since 1970, or -1 where the file system doesn't say (statx).
int64_t clinux_birth_time(int fd);

// A new plain file without a name, for reading and writing (O_TMPFILE). EOPNOTSUPP, EISDIR, ENOENT or EINVAL: the file system has none.
int clinux_open_unnamed(const char *folder, uint32_t mode);

// Gives a file that was opened without a name that one. EEXIST: there is one of that name.
int clinux_name_file(int fd, const char *path);

// As rename(2), but never over another (renameat2 with RENAME_NOREPLACE). EEXIST; EINVAL: the file system can't.
int clinux_rename_new(const char *from, const char *to);

char **clinux_environment(void);

/// Lets a process that is spawned close every descriptor from that one on (posix_spawn_file_actions_t *).
int clinux_spawn_close_from(void *actions, int first);

// Both ends close-on-exec. Reading does not block, writing does: the writing end is for a child, as its output.
int clinux_pipe(int ends[2]);

// mallopt(M_MMAP_THRESHOLD), mallopt(M_TRIM_THRESHOLD): 1 on success.
int clinux_mallopt_mmap_threshold(int bytes);
int clinux_mallopt_trim_threshold(int bytes);

// malloc_trim(0): 1 if memory went back to the kernel.
int clinux_malloc_trim(void);

// An anonymous file that can be sealed, close-on-exec (memfd_create with MFD_ALLOW_SEALING).
int clinux_memfd(const char *name);

// The seals of shared memory that others read: it can neither shrink nor grow, nobody can map it writable or write to it
// from now on (mappings that exist stay writable), and nobody can add another seal.
int clinux_seal_for_readers(int fd);

// The seals of shared memory that one other process fills: it can neither shrink nor grow, and nobody can add another seal.
int clinux_seal_size(int fd);

/// Nobody changes anything in a memfd any more.
int clinux_seal_whole(int fd);

// 1 if the file can never become shorter (F_SEAL_SHRINK), 0 if it can, or is none that can be sealed.
int clinux_cannot_shrink(int fd);

// The same file, opened once more for reading only.
int clinux_reopen_read_only(int fd);

// Whether the file behind a descriptor for reading only is open, or mapped, by another opening than this one: 1 or 0; -1
// where the kernel cannot say. (A write lease, fcntl(2), is given only to the one opening that a file has.)
int clinux_is_shared(int fd);

// Waits until the word is not that value any more, or somebody wakes it, or that time (CLOCK_MONOTONIC, nanoseconds) has
// come: FUTEX_WAIT_BITSET, between processes. -1 with EAGAIN, EINTR or ETIMEDOUT.
int clinux_futex_wait(const void *word, uint32_t value, int64_t until);

// Wakes all who wait on the word.
int clinux_futex_wake_all(const void *word);

// One message, with a descriptor where it isn't -1 (SCM_RIGHTS). Never waits and never raises SIGPIPE.
int clinux_send_with_descriptor(int socket, const void *bytes, int count, int descriptor);

// One message into the buffer: its bytes, 0 at the end. What came with it is one descriptor or -1; any more are closed.
// Never waits. EMSGSIZE: it was longer than the buffer.
int clinux_receive_with_descriptor(int socket, void *bytes, int capacity, int *descriptor);

int clinux_accept(int socket);

// The TCP socket of this network namespace with these two ends, or else one that listens there: its state (as in
// /proc/net/tcp), whose it is, and its inode, 0 when its process has closed it (sock_diag). Addresses are of 4 or of 16
// bytes, in the order of the network. -1 with ENOENT: there is none.
int clinux_tcp_socket(
    int family, const void *local, uint16_t local_port, const void *peer, uint16_t peer_port, int *state, uint32_t *uid,
    uint32_t *inode);

// Bytes that were sent on a Unix socket and not read at the other end (SIOCOUTQ); -1 on failure.
int clinux_unread_bytes(int socket);

// Words in memory that other processes write to or read: naturally aligned.
static inline uint32_t clinux_load_acquire_32(const void *word) {
    return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
}
static inline uint64_t clinux_load_acquire_64(const void *word) {
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}
static inline uint64_t clinux_load_relaxed_64(const void *word) {
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_RELAXED);
}
static inline void clinux_store_release_32(void *word, uint32_t value) {
    __atomic_store_n((uint32_t *)word, value, __ATOMIC_RELEASE);
}
static inline void clinux_store_release_64(void *word, uint64_t value) {
    __atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
}
static inline void clinux_store_relaxed_64(void *word, uint64_t value) {
    __atomic_store_n((uint64_t *)word, value, __ATOMIC_RELAXED);
}
static inline void clinux_fence_acquire(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
static inline void clinux_fence_full(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

int clinux_epoll(void);

// Waits on the descriptor from now on, for input or (urgent) for urgent data alone, whatever it was waited on for before; errors
// always count. EPERM: it is a file that can be read at any time.
int clinux_epoll_set(int epoll, int fd, int input, int urgent, uint64_t number);

// Waits on the descriptor no more.
int clinux_epoll_remove(int epoll, int fd);

// Which of them are ready: the numbers that they were set with and, for each, clinux_epoll_* bits. Milliseconds, -1: no limit.
int clinux_epoll_wait(int epoll, uint64_t *numbers, uint32_t *bits, int count, int milliseconds);

enum { clinux_epoll_input = 1, clinux_epoll_urgent = 2, clinux_epoll_broken = 4 };

// 1: somebody keeps the clock, and the most that it is wrong by, in nanoseconds (adjtimex); 0: nobody does; -1: that can't be read.
int clinux_clock_error(int64_t *error);
