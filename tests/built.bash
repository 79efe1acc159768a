# Sourced by the scripts here: $src, the repository, and $bin, the folder of the programs to test. ctest says which build that is; by
# hand it is that of the preset dev, or KILN_BIN=build/PRESET/bin.
src=${KILN_SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
bin=$(cd "${KILN_BIN:-$src/build/dev/bin}" 2>/dev/null && pwd)
if [ ! -x "$bin/kiln" ] || [ ! -x "$bin/kiln-opt" ]; then
    echo "no kiln and kiln-opt in ${KILN_BIN:-$src/build/dev/bin}: build the preset dev, or set KILN_BIN to build/PRESET/bin" >&2
    exit 1
fi
