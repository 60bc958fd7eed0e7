// mutex.c - lets ThreadSanitizer see every lock of Swift's Mutex; preloaded into the tested programs.
//
// Taking a Mutex that nobody holds is atomic operations in the program itself, which ThreadSanitizer sees. Waiting for
// one that is held happens in libswiftSynchronization, which is built without ThreadSanitizer, so what the lock protects
// looks like a race then. The two functions of that library are called through these.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

void __tsan_acquire(void *) __attribute__((weak));
void __tsan_release(void *) __attribute__((weak));

// _MutexHandle._lockSlow(_: UInt32) and _MutexHandle._unlockSlow() of the module Synchronization
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

static SWIFT void (*lock)(uint32_t thread, SELF void *mutex);
static SWIFT void (*unlock)(SELF void *mutex);

__attribute__((constructor)) static void find(void) {
    lock = dlsym(RTLD_NEXT, LOCK);
    unlock = dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT void lock_visibly(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT void lock_visibly(uint32_t thread, SELF void *mutex) {
    lock(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT void unlock_visibly(SELF void *mutex) __asm__(UNLOCK);
SWIFT void unlock_visibly(SELF void *mutex) {
    if (__tsan_release) __tsan_release(mutex);
    unlock(mutex);
}
