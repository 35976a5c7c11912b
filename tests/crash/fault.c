/* Makes one writing call fail: a library for LD_PRELOAD, compiled by test_faults.py.
 *
 * Calls on paths and descriptors below FAULT_ROOT are counted, from the moment it is armed. The N-th one, or all from the
 * N-th on, fail with a given errno and do nothing. Armed by the environment (FAULT_ROOT, FAULT_AT, FAULT_ERRNO,
 * FAULT_STICKY=1, FAULT_LOG) or by calling fault_arm. FAULT_LOG takes a line for every call: its number, name and path.
 * Raw system calls (without the C library) are not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;
static long fail_at;
static int fail_with, sticky;
static int log_to = -1;
static atomic_long counted;

void fault_arm(const char *below, long at, int number, int from_then_on, const char *log)
{
    atomic_store(&counted, 0);
    fail_at = at;
    fail_with = number;
    sticky = from_then_on;
    if (log_to >= 0)
        syscall(SYS_close, log_to);
    log_to = log && *log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    root_length = 0;
    if (below && realpath(below, root))
        root_length = strlen(root);
}

long fault_count(void)
{
    return atomic_load(&counted);
}

__attribute__((constructor)) static void begin(void)
{
    const char *below = getenv("FAULT_ROOT");
    if (!below)
        return;
    const char *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO"), *from = getenv("FAULT_STICKY");
    fault_arm(below, at ? atol(at) : 0, number ? atoi(number) : EIO, from && *from == '1', getenv("FAULT_LOG"));
}

/* Does the call fail? `path` is absolute. */
static int judge(const char *name, const char *path)
{
    if (!root_length || strncmp(path, root, root_length) != 0 || (path[root_length] && path[root_length] != '/'))
        return 0;
    long number = atomic_fetch_add(&counted, 1) + 1;
    if (log_to >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%ld %s %s\n", number, name, path + root_length);
        syscall(SYS_write, log_to, line, length);
    }
    if (!fail_at || (sticky ? number < fail_at : number != fail_at))
        return 0;
    errno = fail_with;
    return 1;
}

static int descriptor_path(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    char *gone = strstr(path, " (deleted)");
    if (gone)
        *gone = 0;
    return 1;
}

static int on_descriptor(const char *name, int fd)
{
    char path[PATH_MAX];
    int before = errno, fails = root_length && descriptor_path(fd, path) && judge(name, path);
    if (!fails)
        errno = before;
    return fails;
}

static int on_path(const char *name, int folder, const char *path)
{
    char whole[2 * PATH_MAX];
    int before = errno;
    if (!root_length)
        return 0;
    if (path[0] == '/')
        snprintf(whole, sizeof whole, "%s", path);
    else {
        char base[PATH_MAX];
        int known = folder == AT_FDCWD ? getcwd(base, sizeof base) != NULL : descriptor_path(folder, base);
        if (!known)
            return 0;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    int fails = judge(name, whole);
    if (!fails)
        errno = before;
    return fails;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    return on_descriptor("write", fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    return on_descriptor("pwrite", fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    return on_descriptor("pwrite64", fd) ? -1 : real(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    return on_descriptor("writev", fd) ? -1 : real(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    REAL(pwritev);
    return on_descriptor("pwritev", fd) ? -1 : real(fd, parts, count, at);
}

int ftruncate(int fd, off_t size)
{
    REAL(ftruncate);
    return on_descriptor("ftruncate", fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    REAL(ftruncate64);
    return on_descriptor("ftruncate64", fd) ? -1 : real(fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
    REAL(fallocate);
    return on_descriptor("fallocate", fd) ? -1 : real(fd, mode, at, size);
}

int fchmod(int fd, mode_t mode)
{
    REAL(fchmod);
    return on_descriptor("fchmod", fd) ? -1 : real(fd, mode);
}

int fsync(int fd)
{
    REAL(fsync);
    return on_descriptor("fsync", fd) ? -1 : real(fd);
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    return on_descriptor("fdatasync", fd) ? -1 : real(fd);
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...)
{
    REAL(open);
    MODE(flags, mode)
    return (flags & O_CREAT) && on_path("open", AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    REAL(open64);
    MODE(flags, mode)
    return (flags & O_CREAT) && on_path("open64", AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    REAL(openat);
    MODE(flags, mode)
    return (flags & O_CREAT) && on_path("openat", folder, path) ? -1 : real(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    REAL(openat64);
    MODE(flags, mode)
    return (flags & O_CREAT) && on_path("openat64", folder, path) ? -1 : real(folder, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return on_path("rename", AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int folder, const char *to)
{
    REAL(renameat);
    return on_path("renameat", folder, to) ? -1 : real(from_folder, from, folder, to);
}

int renameat2(int from_folder, const char *from, int folder, const char *to, unsigned int flags)
{
    REAL(renameat2);
    return on_path("renameat2", folder, to) ? -1 : real(from_folder, from, folder, to, flags);
}

int unlink(const char *path)
{
    REAL(unlink);
    return on_path("unlink", AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    REAL(unlinkat);
    return on_path("unlinkat", folder, path) ? -1 : real(folder, path, flags);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    return on_path("mkdir", AT_FDCWD, path) ? -1 : real(path, mode);
}
