#!/bin/sh
# Every C file is formatted as .clang-format says. Skipped where clang-format 14 is not installed.
exec "$KILN_SRC/tools/format.sh" --check
