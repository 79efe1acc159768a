/* Shared and static libraries from an object, by the machine's own ld and ar. They work in a
   temporary folder; only what is complete takes its name. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"

extern char **environ;

enum { MAX_SAID = 400 };

/* Both streams of the program go to the file `said`. Returns an errno; the exit status in *code. */
static int run(const char *const *argv, const char *said, int *code)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status, error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_addopen(&actions, 1, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error) /* argv is not written: its type is older than const */
        error =
            posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return error;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return errno;
    }
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return 0;
}

void kn_run_tool(kn_ctx *ctx, const char *const *argv, const char *dir, const char *package)
{
    const char *said = kn_intern_f(ctx, "%s/said", dir);
    int code = 0, error = run(argv, said, &code);
    if (error == ENOENT || code == 127)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "%s is not installed (on Debian: package %s)",
                 argv[0], package);
    if (error)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "cannot run %s: error %d", argv[0], error);
    if (code == 0)
        return;
    kn_file *text = kn_file_map(ctx, said);
    int n = text->size < MAX_SAID ? (int)text->size : MAX_SAID;
    while (n && text->data[n - 1] == '\n')
        n--;
    kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "%s failed: %.*s", argv[0], n,
             (const char *)text->data);
}

/* Writes the object to a temporary folder, runs the command there, keeps its result as `path`. The
   command's NULLs stand for the result and the object. */
static void make(kn_ctx *ctx, kn_piece object, const char *path, const char *const *command, int n)
{
    kn_arena *a = kn_arena_create(ctx);
    const char *dir = kn_temp_dir(ctx);
    const char *files[2] = {kn_format(a, "%s/result", dir), kn_format(a, "%s/kiln.o", dir)};
    const char **argv = KN_ARRAY(a, const char *, n + 1);
    for (int i = 0, file = 0; i < n; i++)
        argv[i] = command[i] ? command[i] : files[file++];
    kn_file_write(ctx, files[1], object.data, object.size);
    kn_run_tool(ctx, argv, dir, "binutils");
    kn_file *result = kn_file_map(ctx, files[0]);
    kn_file_write(ctx, path, result->data, result->size);
    kn_file_close(ctx, result);
    kn_release(ctx, dir);
    kn_arena_destroy(a);
}

void kn_link_shared(kn_ctx *ctx, kn_piece object, const char *path)
{
    static const char *const command[] = {
        "ld", "-shared", "-z", "noexecstack", "-z",           "text",        "--build-id=none",
        "-o", NULL,      NULL, "--as-needed", "-l:libm.so.6", "-l:libc.so.6"};
    make(ctx, object, path, command, (int)(sizeof command / sizeof *command));
}

/* Deterministic: no times, no owners. */
void kn_archive(kn_ctx *ctx, kn_piece object, const char *path)
{
    static const char *const command[] = {"ar", "rcsD", NULL, NULL};
    make(ctx, object, path, command, (int)(sizeof command / sizeof *command));
}
