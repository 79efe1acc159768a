/* What machines native code in a .kiln file is for. */
#include <string.h>

#include "runtime/kiln_file.h"

#if defined(__x86_64__)

const char *kn_kiln_machine(void)
{
    return "x86-64-v2";
}

bool kn_kiln_runs_here(const char *machine)
{
    return strcmp(machine, "x86-64") == 0 ||
           (strcmp(machine, "x86-64-v2") == 0 && __builtin_cpu_supports("x86-64-v2")) ||
           (strcmp(machine, "x86-64-v3") == 0 && __builtin_cpu_supports("x86-64-v3")) ||
           (strcmp(machine, "x86-64-v4") == 0 && __builtin_cpu_supports("x86-64-v4"));
}

#elif defined(__aarch64__) && !defined(__AARCH64EB__)

const char *kn_kiln_machine(void)
{
    return "aarch64";
}

bool kn_kiln_runs_here(const char *machine)
{
    return strcmp(machine, "aarch64") == 0;
}

#else

const char *kn_kiln_machine(void)
{
    return "unknown";
}

bool kn_kiln_runs_here(const char *machine)
{
    (void)machine;
    return false;
}

#endif
