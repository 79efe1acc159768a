#!/usr/bin/env bash
# KWT-1 on speech and against onnxruntime, where these are: tests/models/check_kwt1.py. KILN_DATA is the folder of kwt1.tar.xz.
set -u
. "$(dirname "$0")/built.bash"
archive=${KILN_DATA:-$src/../shared/data}/kwt1.tar.xz
if [ ! -f "$archive" ] || ! python3 -c 'import numpy' 2>/dev/null; then
    echo "skipped: needs $archive and Python with numpy"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
tar -xJf "$archive" -C "$out" && python3 "$src/tests/models/check_kwt1.py" "$bin/kiln" "$out/kwt1"
