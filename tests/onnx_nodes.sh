#!/usr/bin/env bash
# ONNX's own node tests (Debian's libonnx-testdata), through the interpreter, generated C and the JIT. Nothing may be wrong, fail or
# crash; what is not supported says so by name. `invalid` is right only for the tests that onnx_nodes.faults lists, whose data do not
# fit their own model. Through C, one call of cc a test, every eighth of them runs unless asked for by name; so do all where the build
# is a sanitized one, which takes ten times as long. KILN_FAST_BIN: another build to test instead. KILN_ONNX_LEAST: so many must be right.
#   tests/onnx_nodes.sh [VIA...]
set -u
. "$(dirname "$0")/built.bash"
data=${KILN_ONNX_NODES:-/usr/share/libonnx-testdata/data/node}
least=${KILN_ONNX_LEAST:-650}
kiln=${KILN_FAST_BIN:-$bin}/kiln
if [ ! -d "$data" ]; then
    echo "skipped: no ONNX node tests at $data (Debian package libonnx-testdata)"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export kiln data

verify() { # VIA TEST
    line=$(timeout 60 "$kiln" verify "$data/$2/model.onnx" --data "$data/$2/test_data_set_0" --via "$1" 2>&1 | head -n 1)
    echo "$2 $line" | cut -c1-300
}
export -f verify

failed=0
for via in "${@:-interpret jit c}"; do
    for via in $via; do
        every=1
        if [ "$via" = c ] || grep -q __asan_init "$kiln"; then
            every=8
        fi
        [ $# -eq 0 ] || every=1
        find "$data" -mindepth 1 -maxdepth 1 -type d -name 'test_*' -printf '%f\n' | sort | sed -n "1~${every}p" |
            xargs -P "$(nproc)" -I{} bash -c "verify $via {}" >"$out/$via"
        ok=$(grep -c '^[^ ]* ok' "$out/$via")
        unsupported=$(grep -c '^[^ ]* unsupported: ' "$out/$via")
        bad=$(grep -v '^[^ ]* ok' "$out/$via" | grep -v '^[^ ]* unsupported: ' |
            grep -v -w -F -f <(sed '/^#/d;s/ .*//' "$src/tests/onnx_nodes.faults") || true)
        echo "$via: $(wc -l <"$out/$via") tests, $ok right, $unsupported unsupported"
        if [ -n "$bad" ] || [ "$ok" -lt $((least / every)) ]; then
            echo "$bad"
            failed=1
        fi
    done
done
exit $failed
