#!/usr/bin/env bash
# Compile time of a BERT-base-sized ONNX model (110 M parameters, 12 layers) to C text, without the C compiler, and then the C
# compiler's. Goals: at most 3 s, at most 40 kernels. Python with onnx and numpy makes the model, once.
#   bench/compile_time.sh [KILN [FOLDER]]
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
kiln=${1:-$src/build/release/bin/kiln}
dir=${2:-${TMPDIR:-/tmp}/kiln-bench}
mkdir -p "$dir"
for style in plain fused; do
    if [ ! -d "$dir/$style" ]; then
        mkdir -p "$dir/$style.new"
        (cd "$src/tests/models" && python3 make_bert.py --out "$dir/$style.new/bert.onnx" --external $([ $style = fused ] && echo --fused))
        mv "$dir/$style.new" "$dir/$style"
    fi
done

failed=0
for style in plain fused; do
    model=$dir/$style/bert.onnx
    best=
    for round in 1 2 3; do
        report=$("$kiln" compile "$model" -o "$dir/bert.c" --json)
        seconds=$(sed -n 's/.*"seconds":[[:space:]]*\([0-9.e-]*\).*/\1/p' <<<"$report")
        kernels=$(sed -n 's/.*"kernels":[[:space:]]*\([0-9]*\).*/\1/p' <<<"$report")
        best=$(awk -v a="${best:-1e9}" -v b="$seconds" 'BEGIN {print a + 0 < b + 0 ? a : b}')
    done
    user=$( { TIMEFORMAT='%U'; time "$kiln" compile "$model" -o "$dir/bert.c" -q; } 2>&1)
    cc=$( { TIMEFORMAT='%R'; time "${CC:-cc}" -std=c11 -O2 -ffp-contract=off -I"$src/include" -I"$src/runtime" -c "$dir/bert.c" -o "$dir/bert.o"; } 2>&1)
    printf '%s: import and compile to C %.2f s (%s s of user time), %s kernels, %s bytes of C; cc -O2 %s s\n' \
        "$style" "$best" "$user" "$kernels" "$(wc -c <"$dir/bert.c")" "$cc"
    awk -v s="$best" -v k="$kernels" 'BEGIN {exit !(s <= 3 && k <= 40)}' || failed=1
done
exit $failed
