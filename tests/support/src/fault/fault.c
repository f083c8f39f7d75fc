/* Preloaded into owd by tests: fails, or kills, at a chosen write or sync of the store's files.
 *
 * OW_FAULT_FILE    only files whose path contains this text
 * OW_FAULT_CALL    `write` or `sync`
 * OW_FAULT_NUMBER  the first such call that is touched, counted from 1; 0: none
 * OW_FAULT_ACTION  `kill-before`, `kill-after`: that one call;
 *                  `tear`: killed when half of that write is done;
 *                  `lose-power`: what no sync has made durable is undone, then killed before that call;
 *                  `lie`: the same, when no sync has made anything durable: shows that this library bites;
 *                  `eio`, `enospc`: it and all later ones fail; a failed sync loses what it should have made durable
 * OW_FAULT_UNTIL   failing ends once this file exists
 * OW_FAULT_COUNT   each such call appends one byte to this file
 *
 * What cannot be undone is left alone: names of files (made, moved, removed) and files cut short.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* A write that no sync has followed: what stood there before, and how long the file was. */
struct unsynced {
    struct unsynced *older;
    dev_t device;
    ino_t inode;
    off_t at, length;
    ssize_t held;
    char path[512];
    char before[];
};

static atomic_long seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unsynced *newest;

static const char *text(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int concerns(int fd, char *path, size_t room) {
    const char *file = getenv("OW_FAULT_FILE");
    char link[64];
    if (!file) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, room - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, file) != NULL;
}

static int loses(void) {
    const char *action = text("OW_FAULT_ACTION");
    return strcmp(action, "lose-power") == 0 || strcmp(action, "lie") == 0 || strcmp(action, "eio") == 0 || strcmp(action, "enospc") == 0;
}

static void remember(int fd, const char *path, off_t at, size_t length) {
    struct stat file;
    size_t name = strlen(path);
    /* The shared index is not part of what is durable: it is made anew from the log. */
    if (!loses() || (name > 4 && strcmp(path + name - 4, "-shm") == 0)) return;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return;
    if (at < 0) at = fcntl(fd, F_GETFL) & O_APPEND ? file.st_size : lseek(fd, 0, SEEK_CUR);
    struct unsynced *write = malloc(sizeof *write + length);
    if (!write) return;
    write->device = file.st_dev;
    write->inode = file.st_ino;
    write->at = at;
    write->length = file.st_size;
    write->held = pread(fd, write->before, length, at);
    snprintf(write->path, sizeof write->path, "%s", path);
    pthread_mutex_lock(&lock);
    write->older = newest;
    newest = write;
    pthread_mutex_unlock(&lock);
}

/* Drops what is kept of a file; with `undo`, puts it back first. */
static void settle(int fd, int undo) {
    struct stat file;
    if (fstat(fd, &file) != 0) return;
    pthread_mutex_lock(&lock);
    for (struct unsynced **at = &newest; *at;) {
        struct unsynced *write = *at;
        if (write->device != file.st_dev || write->inode != file.st_ino) {
            at = &write->older;
            continue;
        }
        if (undo) {
            if (write->held > 0) syscall(SYS_pwrite64, fd, write->before, write->held, write->at);
            syscall(SYS_ftruncate, fd, write->length);
        }
        *at = write->older;
        free(write);
    }
    pthread_mutex_unlock(&lock);
}

static void lose_power(void) {
    while (newest) {
        char path[sizeof newest->path];
        memcpy(path, newest->path, sizeof path);
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        struct stat file;
        if (fd < 0 || fstat(fd, &file) != 0 || file.st_ino != newest->inode) {
            newest = newest->older;
            continue;
        }
        settle(fd, 1);
        syscall(SYS_close, fd);
    }
    kill(getpid(), SIGKILL);
}

static void count(void) {
    const char *path = getenv("OW_FAULT_COUNT");
    if (!path) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, ".", 1);
    syscall(SYS_close, fd);
}

enum fate { PASS, FAIL_EIO, FAIL_ENOSPC, TEAR, KILL_AFTER };

/* What becomes of a call. Kills at once for what comes before it. */
static enum fate judge(int fd, const char *call, off_t at, size_t length) {
    char path[4096];
    if (!concerns(fd, path, sizeof path)) return PASS;
    enum fate fate = PASS;
    if (strcmp(call, text("OW_FAULT_CALL")) == 0) {
        count();
        long number = atomic_fetch_add(&seen, 1) + 1, from = atol(text("OW_FAULT_NUMBER"));
        const char *action = text("OW_FAULT_ACTION"), *until = getenv("OW_FAULT_UNTIL");
        if (from > 0 && number == from) {
            if (strcmp(action, "kill-before") == 0) kill(getpid(), SIGKILL);
            if (strcmp(action, "lose-power") == 0 || strcmp(action, "lie") == 0) lose_power();
            if (strcmp(action, "kill-after") == 0) fate = KILL_AFTER;
            if (strcmp(action, "tear") == 0) fate = TEAR;
        }
        if (from > 0 && number >= from && !(until && access(until, F_OK) == 0)) {
            if (strcmp(action, "eio") == 0) fate = FAIL_EIO;
            if (strcmp(action, "enospc") == 0) fate = FAIL_ENOSPC;
        }
    }
    int fails = fate == FAIL_EIO || fate == FAIL_ENOSPC;
    if (strcmp(call, "sync") == 0) {
        /* Before the call: a write that comes during it may or may not be durable. */
        if (strcmp(text("OW_FAULT_ACTION"), "lie") != 0) settle(fd, fails);
    } else if (!fails) {
        remember(fd, path, at, length);
    }
    return fate;
}

#define AROUND(call, fd, at, length, real, half)                      \
    enum fate fate = judge(fd, call, at, length);                     \
    if (fate == FAIL_EIO) { errno = EIO; return -1; }                 \
    if (fate == FAIL_ENOSPC) { errno = ENOSPC; return -1; }           \
    __typeof__(real) result = fate == TEAR ? half : real;             \
    if (fate == TEAR || fate == KILL_AFTER) kill(getpid(), SIGKILL);  \
    return result;

ssize_t write(int fd, const void *bytes, size_t length) {
    AROUND("write", fd, -1, length, (ssize_t)syscall(SYS_write, fd, bytes, length),
           (ssize_t)syscall(SYS_write, fd, bytes, length / 2))
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    AROUND("write", fd, at, length, (ssize_t)syscall(SYS_pwrite64, fd, bytes, length, at),
           (ssize_t)syscall(SYS_pwrite64, fd, bytes, length / 2, at))
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    AROUND("write", fd, at, length, (ssize_t)syscall(SYS_pwrite64, fd, bytes, length, at),
           (ssize_t)syscall(SYS_pwrite64, fd, bytes, length / 2, at))
}

int fsync(int fd) {
    AROUND("sync", fd, 0, 0, (int)syscall(SYS_fsync, fd), 0)
}

int fdatasync(int fd) {
    AROUND("sync", fd, 0, 0, (int)syscall(SYS_fdatasync, fd), 0)
}

/* A file cut short is settled: what stood there is not to come back. */
static int cut(int fd, off_t length) {
    char path[4096];
    if (concerns(fd, path, sizeof path)) settle(fd, 0);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) {
    return cut(fd, length);
}

int ftruncate64(int fd, off64_t length) {
    return cut(fd, length);
}
