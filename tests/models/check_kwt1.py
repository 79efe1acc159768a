"""Checks KWT-1, a keyword spotter, by kiln: logits as onnxruntime's, and words that are spoken.

FOLDER holds kwt1.onnx and labels.txt. onnxruntime, and espeak-ng with sox, are used where they are
installed; exit 77 when none is.

    python check_kwt1.py KILN FOLDER
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import kiln

WORDS = "yes no up down left right on off stop go".split()
RATE = 16000


def speak(word):
    """One second of speech, f32[1, 16000], with the word in its middle."""
    with tempfile.TemporaryDirectory() as d:
        wav, raw = os.path.join(d, "w.wav"), os.path.join(d, "w.raw")
        subprocess.run(["espeak-ng", "-v", "en-us", "-s", "130", "-w", wav, word], check=True)
        form = ["-r", str(RATE), "-c", "1", "-b", "16", "-e", "signed"]
        subprocess.run(["sox", wav, *form, raw, "norm", "-3"], check=True)
        heard = np.fromfile(raw, np.int16).astype(np.float32) / 32768
    x = np.zeros((1, RATE), np.float32)
    n = min(len(heard), RATE)
    start = (RATE - n) // 2
    x[0, start : start + n] = heard[:n]
    return x


def compare(command, model, vias):
    """The largest difference from onnxruntime on noise, over all vias."""
    import onnxruntime

    audio = 0.1 * np.random.default_rng(1).standard_normal((1, RATE)).astype(np.float32)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    right = session.run(["logits"], {"audio": audio})[0]
    got = [kiln.run(command, model, {"audio": audio}, via)["logits"] for via in vias]
    return max(float(np.abs(y - right).max()) for y in got)


def main():
    command, folder = sys.argv[1:]
    model = os.path.join(folder, "kwt1.onnx")
    with open(os.path.join(folder, "labels.txt")) as f:
        labels = f.read().split()
    speech = shutil.which("espeak-ng") and shutil.which("sox")
    oracle = importlib.util.find_spec("onnxruntime")
    failed = False
    if oracle:
        worst = compare(command, model, ["interpret", "c", "jit"])
        print(f"onnxruntime: largest difference {worst:.1e}")
        failed = not worst <= 1e-4
    if speech:
        heard = [kiln.run(command, model, {"audio": speak(w)}, "jit")["logits"] for w in WORDS]
        heard = [labels[int(y.argmax())] for y in heard]
        right = sum(w == h for w, h in zip(WORDS, heard))
        print(f"espeak-ng: {right} of {len(WORDS)} words recognised: {' '.join(heard)}")
        failed = failed or right < 8
    for what, there in (("onnxruntime", oracle), ("espeak-ng and sox", speech)):
        if not there:
            print(f"not compared: no {what}")
    sys.exit(1 if failed else 0 if oracle or speech else 77)


if __name__ == "__main__":
    main()
