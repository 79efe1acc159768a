"""Runs a model by the kiln command."""

import os
import subprocess
import tempfile

import numpy as np


def run(kiln, model, inputs, via, *options):
    """{output name: array} of `kiln run MODEL` on {input name: array}; raises what kiln says."""
    with tempfile.TemporaryDirectory() as d:
        command = [kiln, "run", model, "--via", via, "--output-dir", d, *options]
        for name, x in inputs.items():
            path = os.path.join(d, f"in-{name}.npy")
            np.save(path, x)
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr}")
        files = [f for f in os.listdir(d) if f.endswith(".npy") and not f.startswith("in-")]
        return {f.removesuffix(".npy"): np.load(os.path.join(d, f)) for f in files}
