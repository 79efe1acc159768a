#!/usr/bin/env bash
# Golden tests of passes: each tests/passes/NAME.kir starts with `// RUN: kiln-opt ARGS`; what that prints for the file, messages
# included, must be NAME.expect. `tests/passes.sh --update [NAME...]` writes them; read the diff.
set -u
. "$(dirname "$0")/built.bash"
opt=$bin/kiln-opt
update=0
if [ "${1:-}" = --update ]; then
    update=1
    shift
fi
cd "$src/tests/passes" || exit 1
failed=0 passed=0
for file in "${@:-*.kir}"; do
    for input in ${file%.kir}.kir; do
        args=$(sed -n '1s,^// RUN: kiln-opt ,,p' "$input")
        if [ -z "$args" ]; then
            echo "FAIL $input: no RUN line"
            failed=$((failed + 1))
            continue
        fi
        # shellcheck disable=SC2086
        got=$("$opt" $args "$input" 2>&1; echo "exit $?")
        expect=${input%.kir}.expect
        if [ $update = 1 ]; then
            printf '%s\n' "$got" >"$expect"
        elif diff -u "$expect" <(printf '%s\n' "$got") >&2; then
            passed=$((passed + 1))
        else
            echo "FAIL $input"
            failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
