"""tinylm in plain NumPy: the oracle that the ONNX file and any compiler are compared with.

It is written from the architecture, not from the graph: float64 throughout over the float32
weights, one token's positions after another's, with the same key-value cache that the ONNX file
has at its border. Weights come from tinylm.npz (what train.py saves) or from tinylm.onnx.

    python forward.py --model tinylm.onnx --prompt "Once upon a time" --temperature 0.5
"""

import argparse
import json

import numpy as np

# The initialiser in tinylm.onnx of each of a layer's weights; matrices are (in, out).
LAYER_NAMES = {
    "attn_norm": "input_layernorm.weight",
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}


def onnx_names(layers):
    """{name in the .npz: name in the .onnx} of all weights."""
    names = {"embed": "model.embed_tokens.weight", "norm": "model.norm.weight"}
    for i in range(layers):
        for short, long in LAYER_NAMES.items():
            names[f"{i}.{short}"] = f"model.layers.{i}.{long}"
    return names


def load(path):
    """(weights by short name as float32, configuration) from an .npz or an .onnx file."""
    if path.endswith(".npz"):
        with np.load(path) as saved:
            return {n: saved[n] for n in saved.files if n != "config"}, json.loads(
                str(saved["config"])
            )
    import onnx

    model = onnx.load(path)
    config = json.loads({p.key: p.value for p in model.metadata_props}["config"])
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return {short: stored[long] for short, long in onnx_names(config["layers"]).items()}, config


def rms_norm(x, gain, eps):
    """x (..., dim), gain (dim) -> (..., dim)."""
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * gain


def rotate(x, first, theta):
    """Turns the pair (x[i], x[i + n/2]) of each head by position * theta^(-2i/n).

    x (batch, heads, seq, n), the first position being `first` -> the same shape."""
    half = x.shape[-1] // 2
    speed = theta ** (-np.arange(half) / half)
    angle = np.outer(first + np.arange(x.shape[2]), speed)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate(
        [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1
    )


def attend(q, k, v):
    """q (batch, heads, seq, n), k/v (batch, kv_heads, total, n) -> (batch, seq, heads * n).

    Query s sees keys 0 .. total - seq + s. Head h reads key head h // (heads / kv_heads)."""
    batch, heads, seq, n = q.shape
    total, out = k.shape[2], np.empty((batch, seq, heads, n))
    hidden = np.arange(total)[None, :] > np.arange(total - seq, total)[:, None]
    for h in range(heads):
        kv = h // (heads // k.shape[1])
        scores = q[:, h] @ k[:, kv].swapaxes(1, 2) / np.sqrt(n)
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, :, h] = weights / weights.sum(-1, keepdims=True) @ v[:, kv]
    return out.reshape(batch, seq, heads * n)


def empty_past(c, batch):
    """The cache before the first token: a layer's key and value, (batch, kv_heads, 0, head_dim)."""
    return [(np.zeros((batch, c["kv_heads"], 0, c["head_dim"])),) * 2 for _ in range(c["layers"])]


def forward(w, c, ids, past):
    """ids (batch, seq), past as `empty_past` -> logits (batch, seq, vocab), the longer cache."""
    w = {n: x.astype(np.float64) for n, x in w.items()}
    batch, seq = ids.shape
    x, present = w["embed"][ids], []

    def heads(h, name, n):
        return (h @ w[name]).reshape(batch, seq, n, c["head_dim"]).transpose(0, 2, 1, 3)

    for i, (past_k, past_v) in enumerate(past):
        first = past_k.shape[2]
        h = rms_norm(x, w[f"{i}.attn_norm"], c["norm_eps"])
        q = rotate(heads(h, f"{i}.q", c["heads"]), first, c["rope_theta"])
        k = rotate(heads(h, f"{i}.k", c["kv_heads"]), first, c["rope_theta"])
        k = np.concatenate([past_k, k], 2)
        v = np.concatenate([past_v, heads(h, f"{i}.v", c["kv_heads"])], 2)
        present.append((k, v))
        x = x + attend(q, k, v) @ w[f"{i}.o"]
        h = rms_norm(x, w[f"{i}.ffn_norm"], c["norm_eps"])
        gate = h @ w[f"{i}.gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w[f"{i}.up"])) @ w[f"{i}.down"]
    return rms_norm(x, w["norm"], c["norm_eps"]) @ w["embed"].T, present


def generate(w, c, prompt, count, choose):
    """Continues `prompt` (bytes) by `count` bytes. `choose` maps logits (vocab) to a byte.

    Returns the new ids (list) and the logits that each was chosen from, (count, vocab)."""
    ids, past, chosen, seen = np.frombuffer(prompt, np.uint8)[None], empty_past(c, 1), [], []
    for _ in range(count):
        logits, past = forward(w, c, ids.astype(np.int64), past)
        seen.append(logits[0, -1])
        chosen.append(int(choose(logits[0, -1])))
        ids = np.array([[chosen[-1]]])
    return chosen, np.array(seen)


def sampler(temperature, rng):
    """A `choose` for `generate`: the best byte at temperature 0, else a random one."""
    if temperature == 0:
        return np.argmax

    def choose(logits):
        p = np.exp((logits - logits.max()) / temperature)
        return rng.choice(len(p), p=p / p.sum())

    return choose


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="tinylm.onnx")
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--count", type=int, default=480)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    w, c = load(args.model)
    choose = sampler(args.temperature, np.random.default_rng(args.seed))
    count = min(args.count, c["context"] - len(args.prompt))
    ids, _ = generate(w, c, args.prompt.encode(), count, choose)
    print(args.prompt + bytes(ids).decode("latin-1").split("\n")[0])


if __name__ == "__main__":
    main()
