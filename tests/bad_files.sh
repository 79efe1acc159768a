#!/usr/bin/env bash
# Files that are wrong. Handmade ONNX models (tests/tools/bad_onnx.*): each gives one clear error that names the file and the node
# or tensor, the exit code for it, and leaves nothing behind. Mutants of every kind of file that Kiln reads, cut off or with bytes
# changed: right by chance, or an error that names the file. Neither takes long, much memory, or ends kiln by a signal.
# KILN_MUTANTS=N: so many of each seed. KILN_KEEP=DIR: keeps the mutants that fail.
set -u
. "$(dirname "$0")/built.bash"
kiln=$bin/kiln
tools=$bin/../tests
mutants=${KILN_MUTANTS:-4}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Processor seconds and KiB of memory for a file; a sanitized program needs several times as much and counts another way.
seconds=2 memory=102400
if grep -q __asan_init "$kiln"; then
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:allocator_may_return_null=1:hard_rss_limit_mb=1024
    seconds=20 memory=unlimited
fi

export kiln out seconds memory
run() { # NAME ARGUMENTS...
    name=$1
    shift
    ulimit -t "$seconds" -d "$memory"
    timeout 120 "$kiln" "$@" >"$out/$name.said" 2>&1
    echo $? >"$out/$name.code"
}
export -f run
run_all() { # lines of NAME ARGUMENTS... on stdin
    xargs -P "$(nproc)" -L 1 bash -c 'run "$@"' run
}

failed=0
complain() { # NAME WHAT
    echo "$1: $2"
    head -n 5 "$out/$1.said" | cut -c1-300
    failed=1
}

names() { # NAME FILE
    grep -qE "/$2:( ?[0-9]+:[0-9]+:)? (error|note): " "$out/$1.said"
}

# ---- handmade models ----

# A name alone must be a place or stand in backquotes.
says() { # NAME WORDS
    case $2 in
    *[!a-zA-Z0-9_]*) grep -qF -- "$2" "$out/$1.said" ;;
    *) grep -qE "(error|note): $2: |\`$2\`" "$out/$1.said" ;;
    esac
}

mkdir "$out/cases"
"$tools/bad_onnx" "$out/cases" || exit 1
cut -f1 "$out/cases/cases" | sed "s,.*,& compile $out/cases/&.onnx -o $out/&.c," | run_all
cases=0
while IFS=$'\t' read -r name expected words; do
    cases=$((cases + 1))
    code=$(cat "$out/$name.code")
    errors=$(grep -c 'error: ' "$out/$name.said")
    if [ "$code" != "$expected" ]; then
        complain "$name" "exit code $code, expected $expected"
    elif [ "$errors" != 1 ] && [ "$name" != unknown_operators ]; then
        complain "$name" "$errors errors, expected one"
    elif ! names "$name" "$name.onnx"; then
        complain "$name" "the message does not name the file"
    elif ! says "$name" "$words"; then
        complain "$name" "the message does not hold \`$words\`"
    elif [ -e "$out/$name.c" ] || [ -e "$out/$name.h" ]; then
        complain "$name" "something was written"
    fi
done <"$out/cases/cases"

# ---- mutants ----

seeds=0 number=0
try() { # SEED COUNT ARGUMENTS..., in which @ is the file: the seed itself and so many mutants
    seed=$1 count=$2
    shift 2
    seeds=$((seeds + 1))
    mkdir "$out/mutants"
    "$tools/mutate" "$seed" "$count" $seeds "$out/mutants" || exit 1
    cp "$seed" "$out/mutants/mutant$count"
    for i in $(seq 0 "$count"); do
        echo "mutant$i ${*//@/$out/mutants/mutant$i}"
    done | run_all
    for i in $(seq 0 "$count"); do
        check "mutant$i"
    done
    rm -rf "$out/mutants" "$out"/mutant*
}

check() { # NAME
    number=$((number + 1))
    code=$(cat "$out/$1.code")
    case $code in
    0) return ;;
    3 | 4)
        if names "$1" "$1"; then
            return
        fi
        what="no error that names the file"
        ;;
    *) what="exit code $code" ;;
    esac
    complain "$1" "$what, of $seed"
    [ -z "${KILN_KEEP:-}" ] || cp "$out/mutants/$1" "$KILN_KEEP/$seeds.$1"
}

corpus=$src/tests/fuzz/corpus
ffn=$corpus/graph/ffn.kir
for model in "$corpus"/onnx/test_* "$corpus"/graph/*.kir; do
    try "$model" "$mutants" compile @ -o "$out/mutant.c"
done
for model in "$corpus"/onnx/[!t]*; do # what fuzzers found
    try "$model" 0 compile @ -o "$out/mutant.c"
done
try "$src/examples/tinylm/tinylm.onnx" $((mutants / 2)) compile @ -o "$out/mutant.c"
try "$src/targets/npu-edge.json" "$mutants" run "$ffn" --target @ --dim seq=3
for tensor in "$corpus"/tensor/*.npy "$corpus"/safetensors/*; do
    try "$tensor" "$mutants" inspect @
done
if "$kiln" compile "$ffn" -o "$out/ffn.kiln" -q 2>/dev/null; then
    try "$out/ffn.kiln" "$mutants" inspect @
    try "$out/ffn.kiln" "$mutants" run @ --dim seq=3
fi
echo "$cases cases, $number files from $seeds seeds"
exit $failed
