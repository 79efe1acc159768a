/* Files. Reading is mapping. What is written goes to a temporary name in the same folder first, and
   takes its own name only when all of it is on its way to the disk; on failure the temporary file
   is removed. */
#define _XOPEN_SOURCE 700 /* nftw */

#include "support/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/arena.h"

static kn_loc loc_of(kn_ctx *ctx, const char *path)
{
    return (kn_loc){.file = kn_intern(ctx, path)};
}

/* The machine's fault, not the path's. */
static kn_status status_of(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE || error == EIO ? KN_ENVIRONMENT
                                                                                 : KN_INVALID;
}

/* ---- reading ---- */

static const unsigned char nothing[1];

typedef struct {
    kn_file file; /* first: it is what others see */
    dev_t device;
    ino_t inode;
} mapped;

static void close_file(void *p)
{
    kn_file *file = p;
    if (file->data && file->data != nothing)
        munmap((void *)(uintptr_t)file->data, file->size);
    free(file);
}

/* Maps the open file; NULL, with errno, when it cannot be. */
static const unsigned char *map(int fd, size_t size)
{
    if (size == 0)
        return nothing;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

/* What is wrong with what fstat() says, or NULL. */
static const char *fault(const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return "is a folder, expected a file";
    if (!S_ISREG(st->st_mode))
        return "is no regular file";
    if (st->st_size < 0 || (uintmax_t)st->st_size > SIZE_MAX)
        return "is too large for this machine's addresses";
    return NULL;
}

/* Fills in data and size, or returns what went wrong and the status for it. */
static const char *open_file(mapped *m, kn_status *status)
{
    kn_file *file = &m->file;
    /* O_NONBLOCK: a pipe without a writer must not hold us up. */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *status = status_of(errno);
        return strerror(errno);
    }
    struct stat st;
    *status = KN_INVALID;
    const char *wrong = fstat(fd, &st) == 0 ? fault(&st) : strerror(errno);
    if (!wrong) {
        m->device = st.st_dev;
        m->inode = st.st_ino;
        file->size = (size_t)st.st_size;
        file->data = map(fd, file->size);
        *status = status_of(errno);
        wrong = file->data ? NULL : strerror(errno);
    }
    close(fd);
    return wrong;
}

kn_file *kn_file_map(kn_ctx *ctx, const char *path)
{
    kn_loc loc = loc_of(ctx, path);
    mapped *m = calloc(1, sizeof *m);
    if (!m)
        kn_raise(ctx, KN_ENVIRONMENT, loc, "out of memory");
    kn_file *file = &m->file;
    kn_defer(ctx, close_file, file);
    file->path = loc.file;
    kn_status status;
    const char *wrong = open_file(m, &status);
    if (wrong)
        kn_raise(ctx, status, loc, "cannot read: %s", wrong);
    return file;
}

void kn_file_close(kn_ctx *ctx, kn_file *file)
{
    if (file)
        kn_release(ctx, file);
}

static bool is_file(const void *arg, void *env)
{
    const mapped *m = arg;
    const struct stat *st = env;
    return m->device == st->st_dev && m->inode == st->st_ino;
}

bool kn_file_is_mapped(const kn_ctx *ctx, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && kn_is_deferred(ctx, close_file, is_file, &st);
}

/* ---- writing ---- */

/* False, with errno, on failure. */
static bool write_all(int fd, const unsigned char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

/* Writes and closes. */
static bool write_and_close(int fd, const kn_piece *pieces, int n)
{
    bool ok = true;
    for (int i = 0; ok && i < n; i++)
        ok = write_all(fd, pieces[i].data, pieces[i].size);
    int error = errno;
    if (close(fd) != 0 && ok)
        return false;
    errno = error;
    return ok;
}

/* Opens a new file beside `path`; its name, of `size` bytes, goes to `name`. */
static int open_temporary(const char *path, char *name, size_t size)
{
    for (int i = 0; i < 1000; i++) {
        snprintf(name, size, i ? "%s.tmp-%ld-%d" : "%s.tmp-%ld", path, (long)getpid(), i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Devices and pipes are written in place: renaming over /dev/null would be a disaster. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool replace(const char *path, char *name, size_t size, const kn_piece *pieces, int n)
{
    int fd = open_temporary(path, name, size);
    if (fd < 0)
        return false;
    if (write_and_close(fd, pieces, n) && rename(name, path) == 0)
        return true;
    int error = errno;
    unlink(name);
    errno = error;
    return false;
}

static bool overwrite(const char *path, const kn_piece *pieces, int n)
{
    /* O_NONBLOCK: a pipe without a reader must not hold us up; a slow reader may. */
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return write_and_close(fd, pieces, n);
}

void kn_file_write_pieces(kn_ctx *ctx, const char *path, const kn_piece *pieces, int n)
{
    kn_loc loc = loc_of(ctx, path);
    size_t size = strlen(path) + 64;
    char *name = malloc(size);
    if (!name)
        kn_raise(ctx, KN_ENVIRONMENT, loc, "out of memory");
    bool ok = is_special(path) ? overwrite(path, pieces, n) : replace(path, name, size, pieces, n);
    int error = errno;
    free(name);
    if (!ok)
        kn_raise(ctx, KN_ENVIRONMENT, loc, "cannot write: %s",
                 error == ENXIO ? "no such device, or nobody reads this pipe" : strerror(error));
}

void kn_make_dir(kn_ctx *ctx, const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        int error = errno;
        kn_raise(ctx, KN_ENVIRONMENT, loc_of(ctx, path), "cannot make the folder: %s",
                 strerror(error));
    }
}

void kn_file_write(kn_ctx *ctx, const char *path, const void *data, size_t size)
{
    kn_file_write_pieces(ctx, path, &(kn_piece){data, size}, 1);
}

/* ---- temporary folders ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static void remove_tree(void *p)
{
    nftw(p, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
}

const char *kn_temp_dir(kn_ctx *ctx)
{
    static const char suffix[] = "/kiln-XXXXXX";
    const char *base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    char *dir = malloc(strlen(base) + sizeof suffix);
    if (!dir)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    strcpy(dir, base);
    strcat(dir, suffix);
    if (!mkdtemp(dir)) {
        int error = errno;
        free(dir);
        kn_raise(ctx, KN_ENVIRONMENT, loc_of(ctx, base), "cannot make a temporary folder: %s",
                 strerror(error));
    }
    kn_defer(ctx, remove_tree, dir);
    return dir;
}
