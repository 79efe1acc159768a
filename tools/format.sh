#!/bin/sh
# Formats all C files with clang-format 14 (`--check`: names those that would change, and fails).
# Tables in .def files keep their columns.
set -eu
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format || true)
case $([ -n "$format" ] && "$format" --version) in
*"version 14."*) ;;
*)
    echo "clang-format 14 is not installed" >&2
    exit 77
    ;;
esac
c_files() {
    find include support ir frontend passes codegen driver runtime tools tests examples \
        -name '*.[ch]' -print0
}

if [ "${1-}" != --check ]; then
    c_files | xargs -0 "$format" -i
    exit
fi
unformatted=$(c_files | xargs -0 "$format" --dry-run 2>&1 |
    sed -n 's/^\([^ :]*\):.*-Wclang-format-violations.$/\1/p' | sort -u)
[ -z "$unformatted" ] || {
    printf '%s\n' "$unformatted"
    echo "not formatted; run tools/format.sh"
    exit 1
}
