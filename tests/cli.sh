#!/bin/bash
# The commands as FACE promises them: exit codes, key words, files; the same compile twice gives the same bytes; generated C is
# clean with both compilers; whatever is broken gets one error; nothing is half-written.
. "$(dirname "$0")/built.bash"
kiln=$bin/kiln
opt=$bin/kiln-opt
build=${KILN_BUILD:-$bin/..}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

complain() {
    echo "cli: $*"
    failed=1
}

# expect CODE WORDS COMMAND...: what the command says holds the words, and it exits with the code.
expect() {
    code=$1
    words=$2
    shift 2
    said=$("$@" 2>&1)
    got=$?
    [ $got = "$code" ] || complain "$*: exit $got, expected $code: $said"
    case $said in
    *"$words"*) ;;
    *) complain "$*: expected \`$words\`, found: $said" ;;
    esac
}

cat >ffn.kir <<'END'
graph @ffn(%x: f32[seq, 6], %past: f32[2]) -> (%y: f32[seq, 5], %present: f32[2] aliases %past) where seq in 0:64 {
  const %w1: f32[6, 8] = splat 0.125
  const %b1: f32[8] = [0.5, -0.5, 1.0, -1.0, 0.25, 0.75, 0.0, 2.0]
  const %w2: f32[8, 5] = splat -0.5
  %h = gelu(add(matmul(%x, %w1), %b1))
  %t = notation "(A[p, q], B[q, s]) -> T: T[i, j] +=! A[i, r] * B[r, j]"(%h, %w2)
  %y = add(%t, reduce_sum(%past) {axes = [0], keepdims = false})
  %present = add(%past, %past)
}
END
llvm=1
"$kiln" compile ffn.kir -o probe.o -q 2>/dev/null || llvm=0
rm -f probe*
kinds="c"
vias="interpret c"
[ $llvm = 1 ] && kinds="c ll o a so kiln" && vias="interpret c jit"

# ---- usage ----
expect 0 "kiln " "$kiln" --version
expect 0 "Exit codes" "$kiln" --help
expect 2 "usage: kiln" "$kiln"
expect 2 "there is no verb" "$kiln" fly
expect 2 "no option" "$kiln" run ffn.kir --no-such 1
expect 2 "wants a value" "$kiln" run ffn.kir --seed
expect 2 "run needs one MODEL" "$kiln" run
expect 2 "compile needs" "$kiln" compile ffn.kir
expect 2 "what to write" "$kiln" compile ffn.kir -o model
expect 2 "--emit: expected" "$kiln" compile ffn.kir -o m.c --emit exe
expect 2 "--dim" "$kiln" run ffn.kir --dim seq
expect 2 'no dimension `length`; it has `seq`' "$kiln" run ffn.kir --dim length=3
expect 2 'it has `batch`, `seq`, `past`' "$kiln" run "$src/examples/tinylm/tinylm.onnx" --dim sequence=3
expect 2 "--precision" "$kiln" compile ffn.kir -o m.c --precision f12
expect 2 "--threads" "$kiln" run ffn.kir --threads 0
expect 2 "is not a shape" "$kiln" run ffn.kir --input-shape x:3x48x
expect 2 "is not a shape" "$kiln" run ffn.kir --input-shape x:3xx48
expect 2 "is not a shape" "$kiln" run ffn.kir --input-shape x:99999999999999999999x6
expect 2 "not a whole number" "$kiln" run ffn.kir --dim seq=99999999999999999999
expect 2 "there is no pass \`fly\`; there are" "$kiln" run ffn.kir --dump-ir fly
expect 2 "no input" "$kiln" run ffn.kir --input z=ffn.kir
expect 2 "inspect needs" "$kiln" inspect
for verb in generate bench profile tune serve check-target; do
    expect 3 "$verb: not built yet" "$kiln" $verb ffn.kir
done
expect 3 "not built yet" "$kiln" compile ffn.kir -o m.c --precision int8
printf 'schedule @nothing { }' >nothing.schedule
expect 4 'nothing.schedule:1:10: error: no kernel is called @nothing' "$kiln" compile ffn.kir -o m.c --schedule nothing.schedule
expect 3 "not built yet" "$kiln" compile ffn.kir -o m.trace --emit trace
expect 4 "target" "$kiln" compile ffn.kir -o m.c --target nowhere
expect 0 "host" "$kiln" targets
expect 0 '"name"' "$kiln" targets --json

# ---- messages: both programs say the place alike ----
printf 'graph @x(%%a: f32[3]) -> %%b {\n  %%b = foo(%%a)\n}\n' >unknown.kir
expect 4 "unknown.kir:2:3: error: b: unknown op" "$kiln" run unknown.kir
expect 4 "unknown.kir:2:3: error: b: unknown op" "$opt" unknown.kir
expect 4 "missing.kir: error: cannot read" "$kiln" run missing.kir
expect 4 "missing.kir: error: cannot read" "$opt" missing.kir
expect 2 "kiln-opt: error: there is no option --no-such" "$opt" --no-such ffn.kir
expect 2 "usage: kiln-opt" "$opt"
expect 0 "kiln-opt " "$opt" --version
for flag in --pass --stop-after --print-after; do
    expect 2 "$flag: there is no pass \`fly\`; there are" "$opt" $flag fly ffn.kir
done
expect 2 'no dimension `length`; it has `seq`' "$opt" --dim length=3 ffn.kir
"$opt" --pipeline ffn.kir >lowered.kir
expect 2 'no dimension `length`; it has `seq`' "$opt" --dim length=3 --interpret lowered.kir
expect 0 "y: f32[15]" "$opt" --dim seq=3 --interpret lowered.kir
expect 0 "plan         ok: largest difference 0" "$opt" --bisect ffn.kir

# ---- compile: the same bytes, clean C ----
for kind in $kinds; do
    expect 0 "\"one.$kind\"" "$kiln" compile ffn.kir -o "one.$kind" --json
    mkdir -p again
    (cd again && "$kiln" compile ../ffn.kir -o "one.$kind" -q) || complain "compiling to $kind again"
done
for file in one.*; do
    cmp "$file" "again/$file" || complain "$file is not the same twice"
done
cmp one_weights.bin again/one_weights.bin || complain "the weights are not the same twice"
for compiler in gcc clang-19; do
    command -v $compiler >/dev/null || continue
    $compiler -std=c11 -O2 -Wall -Wextra -Werror -ffp-contract=off -I"$src/include" -I"$src/runtime" -c one.c -o /dev/null ||
        complain "one.c is not clean with $compiler"
done
expect 0 "_run(" "$kiln" compile ffn.kir --emit c -o /dev/stdout
expect 0 "kernels" "$kiln" compile ffn.kir -o 1-2.c
grep -q m1_2_run 1-2.c || complain "1-2.c has no function m1_2_run"
expect 0 "" "$kiln" compile ffn.kir -o pass.c --dump-ir plan --dump-dir dumps -q
ls dumps/*-plan.kir >/dev/null || complain "--dump-ir wrote nothing to --dump-dir"
expect 0 "" "$kiln" compile ffn.kir -o pass.c --dump-ir plan -q
ls ./*-plan.kir >/dev/null || complain "--dump-ir wrote nothing"

# ---- run: the same numbers by every way ----
want=$("$kiln" run ffn.kir --via interpret --dim seq=3 --seed 7) || complain "interpreting"
case $want in *"y: f32[3, 5] = "*"present: f32[2] = "*) ;; *) complain "run printed $want" ;; esac
for via in $vias; do
    expect 0 "y: f32[3, 5]" "$kiln" run ffn.kir --via "$via" --dim seq=3 --seed 7
    [ "$said" = "$want" ] || complain "--via $via printed $said"
done
if [ $llvm = 1 ]; then
    expect 0 "$want" "$kiln" run one.kiln --dim seq=3 --seed 7
    expect 2 "native code" "$kiln" run one.kiln --via c
    expect 2 "--schedule: a .kiln file" "$kiln" run one.kiln --schedule nothing.schedule
    expect 2 "--target: a .kiln file" "$kiln" run one.kiln --target host
    expect 2 "-O3: a .kiln file" "$kiln" run one.kiln -O3
    expect 2 "seq: expected 0 to 64, found 99999999999" "$kiln" run one.kiln --dim seq=99999999999
    expect 2 "seq: expected 0 to 64, found 65" "$kiln" run one.kiln --input-shape x:65x6
    expect 2 "no dimension" "$kiln" run one.kiln --dim length=3
    expect 4 "compiled already" "$kiln" compile one.kiln -o two.kiln
    expect 0 "y [3, 5]" "$build/examples/run_kiln" one.kiln seq=3
    ldd "$build/examples/run_kiln" | grep -vE 'linux-vdso|ld-linux|lib(c|m|gcc_s|stdc\+\+|asan|ubsan|pthread|dl|rt)\.so' &&
        complain "run_kiln links more than the C library"
fi
expect 0 "" "$kiln" run ffn.kir --dim seq=3 --output-dir out -q
expect 0 "3, 5" "$kiln" inspect out/y.npy
expect 0 '"values"' "$kiln" run ffn.kir --input past=out/present.npy --json
expect 2 "expected f32 of rank 2" "$kiln" run ffn.kir --input x=out/present.npy
expect 0 "y: f32[9, 5]" "$kiln" run ffn.kir --input-shape x:9x6
printf 'graph @g(%%x: f32[3]) -> (%%"a/b", %%a_b) { %%"a/b" = neg(%%x) %%a_b = exp(%%x) }' >slash.kir
expect 0 '"file":	"slash/a_b_.npy"' "$kiln" run slash.kir --output-dir slash --json
cmp -s slash/a_b.npy slash/a_b_.npy && complain "two outputs went to one file"
[ "$(ls slash)" = "a_b.npy
a_b_.npy" ] || complain "two outputs with names alike gave $(ls slash)"
expect 2 "cannot be" "$kiln" run ffn.kir --input-shape x:9x7

# ---- inspect ----
files="ffn.kir out/y.npy"
[ $llvm = 1 ] && files="$files one.kiln"
for file in $files; do
    for key in kind inputs outputs ops parameters weight_bytes bits_per_weight arena_bytes; do
        expect 0 "\"$key\":" "$kiln" inspect "$file" --json
    done
done
expect 0 '"parameters":	96' "$kiln" inspect ffn.kir --json
expect 0 "notation 1" "$kiln" inspect ffn.kir

# ---- broken files ----
: >empty
head -c 700 /dev/urandom >noise
printf 'graph @g(%%x: f32[2]) -> %%y { %%y = foo(%%x) }' >unknown.kir
printf 'graph @g(%%x: f32[4611686018427387904, 4611686018427387904]) -> %%y { %%y = gelu(%%x) }' >absurd.kir
expect 4 "unknown op" "$kiln" run unknown.kir
for verb in run inspect "compile -o x.c"; do
    for file in empty noise missing . unknown.kir; do
        # shellcheck disable=SC2086
        expect 4 "error" "$kiln" $verb $file
    done
done
for verb in run inspect "compile -o x.c"; do
    # shellcheck disable=SC2086
    expect 4 "more elements than memory" "$kiln" $verb absurd.kir
done

# ---- loops of the user's own that leave their buffers ----
# refused WORDS BODY: the loops in an opaque row, however they run.
refused() {
    printf 'graph @g(%%x: f32[5]) -> %%y { %%y = notation "(A[n]) -> B: f32[n] loops: func @f(n: index in 0:100, ' >loops.kir
    printf 'in A: f32[n] @ddr, out B: f32[n] @ddr) { %s }"(%%x) }' "$2" >>loops.kir
    for via in $vias; do
        expect 4 "$1" "$kiln" run loops.kir --via $via
    done
}
refused "an index into B is out of range" "for i in 0:n + 100000000 { B[i] = 1.0 }"
refused "an index into A is out of range" "for i in 0:n { B[i] = A[i + 1000000000] }"
refused "an index into A is out of range" "for i in 0:cast(index, A[0 - n]) { B[0] = 1.0 }"
refused "a view does not fit in B" "view V: f32[100000000] = B at 100 V[99999999] = 1.0"
refused "a view does not fit in B" "view V: f32[1] = B at -1 V[0] = 1.0"
refused "a negative extent of t" "alloc t: f32[n - 6] @ddr B[0] = 1.0"
refused "64 bits are not enough for i" "for i in 9223372036854775800:9223372036854775807 step 100 { B[0] = A[0] }"
refused "the step of \`i\` is not positive" "for i in 0:n step -1 { B[i] = A[i] }"
refused "\`A\` is read only" "A[0] = 3.0"

if [ $llvm = 1 ]; then
    size=$(stat -c %s one.kiln)
    for n in 4 8 9 100 600 2000 $((size - 1)); do
        head -c "$n" one.kiln >short.kiln
        expect 4 "error" "$kiln" run short.kiln
        expect 4 "error" "$kiln" inspect short.kiln
    done
    cp one.kiln flipped.kiln
    printf 'x' | dd of=flipped.kiln bs=1 seek=$((size - 300)) conv=notrunc 2>/dev/null
    expect 4 "damaged" "$kiln" run flipped.kiln
    expect 4 "damaged" "$kiln" inspect flipped.kiln
fi
onnx=${KILN_ONNX_NODES:-/usr/share/libonnx-testdata/data/node}
if [ -d "$onnx/test_adam" ]; then
    expect 3 "Adam" "$kiln" compile "$onnx/test_adam/model.onnx" -o adam.c
    head -c 60 "$onnx/test_add/model.onnx" >short.onnx
    expect 4 "short.onnx" "$kiln" run short.onnx
    expect 4 "invalid: missing.onnx: cannot read" "$kiln" verify missing.onnx --data .
    expect 0 '"add":	1' "$kiln" inspect "$onnx/test_add/model.onnx" --json
    expect 0 "ok" "$kiln" verify "$onnx/test_add/model.onnx" --data "$onnx/test_add/test_data_set_0"
    expect 0 '"result":	"ok"' "$kiln" verify "$onnx/test_add/model.onnx" --data "$onnx/test_add/test_data_set_0" --json
    mkdir -p wrong
    cp "$onnx"/test_add/test_data_set_0/* wrong
    cp wrong/input_0.pb wrong/output_0.pb
    expect 1 "wrong: sum: largest difference" "$kiln" verify "$onnx/test_add/model.onnx" --data wrong
    expect 1 '"output":	"sum"' "$kiln" verify "$onnx/test_add/model.onnx" --data wrong --json
    case $said in "{"*'"largest_absolute":'*"}") ;; *) complain "verify --json printed $said" ;; esac
    rm wrong/input_1.pb
    expect 4 "invalid: wrong/input_1.pb: cannot read" "$kiln" verify "$onnx/test_add/model.onnx" --data wrong
    expect 4 "invalid: short.onnx: " "$kiln" verify short.onnx --data wrong
    expect 3 "model.onnx: " "$kiln" verify "$onnx/test_adam/model.onnx" --data wrong
    if [ $llvm = 1 ]; then
        expect 0 "" "$kiln" compile "$onnx/test_add/model.onnx" -o add.kiln
        expect 0 "ok" "$kiln" verify add.kiln --data "$onnx/test_add/test_data_set_0"
    fi
fi

# ---- nothing half-written ----
mkdir -p half
[ $llvm = 1 ] && expect 5 "ld" env PATH=/nowhere "$kiln" compile ffn.kir -o half/m.so
expect 5 "cannot write" "$kiln" compile ffn.kir -o half/none/m.c
mkdir -p half2/m.c
expect 5 "folder" "$kiln" compile ffn.kir -o half2/m.c
for out in half2/w.c half2/w_weights.bin; do
    printf '\000\000\200\077' >half2/w_weights.bin
    printf 'graph @w(%%x: f32[1]) -> %%y { const %%c: f32[1] = file "half2/w_weights.bin" at 0 %%y = add(%%x, %%c) }' >half2/w.kir
    expect 2 "would be written over" "$kiln" compile half2/w.kir --emit c -o $out
    expect 2 "would be written over" "$kiln" compile half2/w.kir --emit c -o half2/w.kir
    [ "$(stat -c %s half2/w_weights.bin)" = 4 ] || complain "the weights were written over"
done
rm half2/w.kir half2/w_weights.bin
mkfifo fifo
expect 5 "fifo: error: cannot write: no such device, or nobody reads" timeout 20 "$kiln" compile ffn.kir --emit c -o fifo
[ -p fifo ] || complain "the pipe is gone"
cat fifo >through &
expect 0 "" timeout 20 bash -c "sleep 0.2; '$kiln' compile ffn.kir --emit c -o fifo"
wait
grep -q _run through || complain "nothing came through the pipe"
for program in "$kiln" "$opt"; do
    expect 5 "cannot write the output" bash -c "'$program' --help >/dev/full"
    expect 5 "cannot write the output" bash -c "'$program' --version >/dev/full"
    expect 0 "5" bash -c "{ sleep 0.2; '$program' --help; echo \$? >status; } | true; cat status"
done
[ "$(cat status)" = 5 ] || complain "a closed pipe: exit $(cat status)"
expect 5 "half/big.h: error: cannot write" bash -c "ulimit -f 1; exec '$kiln' compile ffn.kir -o half/big.c"
[ -z "$(ls -A half)" ] || complain "left behind: $(ls -A half)"
[ "$(ls -A half2)" = m.c ] || complain "left behind: $(ls -A half2)"
exit $failed
