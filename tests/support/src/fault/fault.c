/* Preloaded into owd by tests: fails, or kills, at a chosen write or sync of the store's files.
 *
 * OW_FAULT_FILE    only files whose path contains this text
 * OW_FAULT_CALL    `write` or `sync`
 * OW_FAULT_NUMBER  the first such call that is touched, counted from 1; 0: none
 * OW_FAULT_ACTION  `kill-before`, `kill-after`: that one call; `eio`, `enospc`: it and all later ones
 * OW_FAULT_UNTIL   failing ends once this file exists
 * OW_FAULT_COUNT   each such call appends one byte to this file
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long seen;

static int concerns(int fd, const char *call) {
    const char *file = getenv("OW_FAULT_FILE"), *wanted = getenv("OW_FAULT_CALL");
    char link[64], path[4096];
    if (!file || !wanted || strcmp(call, wanted) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, file) != NULL;
}

static void count(void) {
    const char *path = getenv("OW_FAULT_COUNT");
    if (!path) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, ".", 1);
    syscall(SYS_close, fd);
}

/* Returns the errno to fail with, or 0; sets *kill_after. Kills at once for `kill-before`. */
static int judge(int fd, const char *call, int *kill_after) {
    *kill_after = 0;
    if (!concerns(fd, call)) return 0;
    count();
    long number = atomic_fetch_add(&seen, 1) + 1;
    const char *at = getenv("OW_FAULT_NUMBER"), *action = getenv("OW_FAULT_ACTION"), *until = getenv("OW_FAULT_UNTIL");
    long from = at ? atol(at) : 0;
    if (from <= 0 || !action) return 0;
    if (number == from && strcmp(action, "kill-before") == 0) kill(getpid(), SIGKILL);
    if (number == from && strcmp(action, "kill-after") == 0) *kill_after = 1;
    if (number >= from && !(until && access(until, F_OK) == 0)) {
        if (strcmp(action, "eio") == 0) return EIO;
        if (strcmp(action, "enospc") == 0) return ENOSPC;
    }
    return 0;
}

#define AROUND(call, fd, real)                                        \
    int kill_after, fault = judge(fd, call, &kill_after);             \
    if (fault) { errno = fault; return -1; }                          \
    __typeof__(real) result = real;                                   \
    if (kill_after) kill(getpid(), SIGKILL);                          \
    return result;

ssize_t write(int fd, const void *bytes, size_t length) { AROUND("write", fd, (ssize_t)syscall(SYS_write, fd, bytes, length)) }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { AROUND("write", fd, (ssize_t)syscall(SYS_pwrite64, fd, bytes, length, at)) }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { AROUND("write", fd, (ssize_t)syscall(SYS_pwrite64, fd, bytes, length, at)) }
int fsync(int fd) { AROUND("sync", fd, (int)syscall(SYS_fsync, fd)) }
int fdatasync(int fd) { AROUND("sync", fd, (int)syscall(SYS_fdatasync, fd)) }
