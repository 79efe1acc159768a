#!/bin/bash
# Includes point one way: support <- ir <- {frontend, passes, codegen} <- driver <- tools; runtime
# on support alone. isl stays behind ir/poly*, LLVM behind codegen/llvm* and jit*, protobuf behind
# frontend/onnx*, and no folder includes another's *_internal.h.
cd "$KILN_SRC" || exit 1
failed=0
folders='support|ir|frontend|passes|codegen|driver|runtime|tools'

complain() {
    echo "$*"
    failed=1
}

# may FOLDER FOLDER...: the first includes nothing of the layers but itself and the others.
may() {
    from=$1
    allowed=" $* "
    while IFS=: read -r file line text; do
        to=${text#*\"}
        to=${to%%/*}
        case $allowed in
        *" $to "*) ;;
        *) complain "$file:$line: $from/ must not include $to/" ;;
        esac
    done < <(grep -rnE --include='*.[ch]' --include='*.def' \
        "^ *# *include \"($folders)/" "$from" 2>/dev/null)
}

# only PATTERN WHERE: includes that match PATTERN stand in files that match WHERE.
only() {
    while read -r file; do
        [[ $file =~ $2 ]] || complain "$file: must not include $1"
    done < <(grep -rlE --include='*.[ch]' "^ *# *include [<\"]$1" \
        include support ir frontend passes codegen driver runtime tools 2>/dev/null)
}

may support
may include
may ir support
may frontend support ir
may passes support ir
may codegen support ir
may runtime support
may driver support ir frontend passes codegen runtime
may tools support ir frontend passes codegen driver runtime
only 'isl/' '^ir/poly'
only 'llvm' '^codegen/(llvm|jit)'
only '(protobuf-c|onnx\.pb-c)' '^frontend/onnx'

while IFS=: read -r file line text; do
    path=${text#*\"}
    [[ $path == */* && ${path%/*} != "${file%/*}" ]] &&
        complain "$file:$line: private header of another folder: ${path%%\"*}"
done < <(grep -rnE --include='*.[ch]' '^ *# *include ".*_internal\.h"' \
    support ir frontend passes codegen driver runtime tools 2>/dev/null)
exit $failed
