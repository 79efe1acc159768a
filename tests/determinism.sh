#!/usr/bin/env bash
# The same compile twice gives the same bytes: the text after the pipeline, and every kind of artefact. The second run has another
# folder, another environment and another time of day.
set -u
. "$(dirname "$0")/built.bash"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0 compared=0

complain() {
    echo "$*"
    failed=1
}

twice() { # NAME COMMAND...: the command writes into the folder $to
    name=$1
    shift
    for round in 1 2; do
        to=$out/$round-$(printf '%*s' $((round * 20)) '' | tr ' ' x)/$name
        mkdir -p "$to"
        if [ $round = 1 ]; then
            (cd "$src" && to=$to "$@") >"$to/said" 2>&1
        else
            (cd "$out" && to=$to LC_ALL=C TZ=Asia/Tokyo HOME=/ TMPDIR=$out PADDING=$(printf '%4096s' '') "$@") >"$to/said" 2>&1
        fi || {
            complain "$name: $(head -n 3 "$to/said")"
            return
        }
        rm "$to/said"
        first=${first:-$to}
    done
    diff -r "$first" "$to" >/dev/null || complain "$name: differs: $(diff -rq "$first" "$to" | head -n 3)"
    first=
    compared=$((compared + $(find "$to" -type f | wc -l)))
}
first=

optimise() { # FILE; a refusal is a result, too
    "$bin/kiln-opt" --pipeline "$1" >"$to/text" 2>&1
    code=$?
    echo "exit $code" >>"$to/text"
    [ $code -lt 5 ]
}
compile() { # FILE KIND
    "$bin/kiln" compile "$1" -o "$to/model.$2" -q
}

for file in "$src"/tests/passes/*.kir; do
    grep -q '^graph' "$file" && twice "opt $(basename "$file")" optimise "$file"
done
model=$src/examples/tinylm/tinylm.onnx
[ -f "$model" ] || model=$src/tests/passes/share_equal_kernels.kir
for kind in c kiln ll o; do
    case $kind in
    kiln | ll | o) "$bin/kiln" compile "$src/tests/passes/fuse_matmul_gelu.kir" -o "$out/try.$kind" -q 2>/dev/null || continue ;;
    esac
    twice "compile $kind" compile "$model" "$kind"
done
echo "$compared files compared"
exit $failed
