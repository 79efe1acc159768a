"""Trains tinylm: a byte-level language model of the Llama architecture, with JAX on the CPU.

Pre-norm blocks of grouped-query attention with rotary positions and a SiLU-gated feed-forward,
RMSNorm throughout, no biases, and one matrix for both the embedding and the output. A token is a
byte. The optimiser is Muon, with Adam for what is not a matrix, a warm-up and a cosine decay. Rows
are windows of the text that start where a text starts. They are short at first, and so are their
texts: on long ones alone, a model this small learns the wordings but not to look back for a name.
Everything is drawn from one seed, so one machine gives one result.

    python make_text.py --out text.txt
    python train.py --text text.txt --out tinylm.npz
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

CONFIG = {
    "vocab": 256,
    "dim": 96,
    "layers": 4,
    "heads": 6,
    "kv_heads": 2,
    "head_dim": 16,
    "ffn": 192,
    "context": 512,
    "rope_theta": 10000.0,
    "norm_eps": 1e-5,
}

# Window length by share of the steps done; a step always sees the same number of bytes.
LENGTHS = [(0.0, 128), (0.3, 256), (0.7, 512)]


def init(rng, c):
    """Random weights by name. Matrices are (in, out); the embedding is (vocab, dim)."""
    d, q, kv, f = c["dim"], c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"], c["ffn"]

    def matrix(rows, cols, scale=1.0):
        return (rng.standard_normal((rows, cols)) * scale / rows**0.5).astype(np.float32)

    out = 1.0 / (2 * c["layers"]) ** 0.5  # residual branches start small
    w = {"embed": (rng.standard_normal((c["vocab"], d)) * 0.05).astype(np.float32)}
    for i in range(c["layers"]):
        w[f"{i}.attn_norm"] = np.ones(d, np.float32)
        w[f"{i}.q"], w[f"{i}.k"], w[f"{i}.v"] = matrix(d, q), matrix(d, kv), matrix(d, kv)
        w[f"{i}.o"] = matrix(q, d, out)
        w[f"{i}.ffn_norm"] = np.ones(d, np.float32)
        w[f"{i}.gate"], w[f"{i}.up"] = matrix(d, f), matrix(d, f)
        w[f"{i}.down"] = matrix(f, d, out)
    w["norm"] = np.ones(d, np.float32)
    return w


def rms_norm(x, gain, eps):
    """x (..., dim), gain (dim) -> (..., dim)."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * gain


def rotate(x, cos, sin):
    """Rotary embedding by halves. x (batch, heads, seq, head_dim), cos/sin (seq, head_dim)."""
    low, high = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-high, low], -1) * sin


def rotary(c, seq):
    """cos and sin (seq, head_dim) for positions 0 .. seq-1."""
    inv = c["rope_theta"] ** (-np.arange(0, c["head_dim"], 2) / c["head_dim"])
    angle = np.concatenate([np.outer(np.arange(seq), inv)] * 2, -1)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def mix(q, k, v):
    """Causal attention of one row. q (heads, seq, head_dim), k/v (kv_heads, seq, head_dim) -> as q.

    The query heads of a group are stacked along seq, so that keys and values are not repeated."""
    heads, seq, head_dim = q.shape
    kv_heads = k.shape[0]
    q = q.reshape(kv_heads, -1, head_dim)
    scores = (q @ k.swapaxes(1, 2) / head_dim**0.5).reshape(heads, seq, seq)
    scores = jnp.where(jnp.tril(jnp.ones((seq, seq), bool)), scores, -1e9)
    weights = jax.nn.softmax(scores, -1).reshape(kv_heads, -1, seq)
    return (weights @ v).reshape(heads, seq, head_dim)


def attention(w, i, x, cos, sin, c):
    """Attention of layer i, row by row: the scores of one row stay in the cache and are computed
    anew in the backward pass. x (batch, seq, dim) -> (batch, seq, dim)."""
    b, s, _ = x.shape

    def heads(name, n):
        return (x @ w[f"{i}.{name}"]).reshape(b, s, n, c["head_dim"]).transpose(0, 2, 1, 3)

    q = rotate(heads("q", c["heads"]), cos, sin)
    k = rotate(heads("k", c["kv_heads"]), cos, sin)
    row = jax.checkpoint(mix)
    mixed = jax.lax.map(lambda qkv: row(*qkv), (q, k, heads("v", c["kv_heads"])))
    return mixed.transpose(0, 2, 1, 3).reshape(b, s, -1) @ w[f"{i}.o"]


def forward(w, ids, c):
    """ids (batch, seq) -> logits (batch, seq, vocab)."""
    cos, sin = rotary(c, ids.shape[1])
    x = w["embed"][ids]
    for i in range(c["layers"]):
        x = x + attention(w, i, rms_norm(x, w[f"{i}.attn_norm"], c["norm_eps"]), cos, sin, c)
        h = rms_norm(x, w[f"{i}.ffn_norm"], c["norm_eps"])
        x = x + (jax.nn.silu(h @ w[f"{i}.gate"]) * (h @ w[f"{i}.up"])) @ w[f"{i}.down"]
    return rms_norm(x, w["norm"], c["norm_eps"]) @ w["embed"].T


def loss_of(w, rows, c):
    """Mean cross-entropy in nats a byte. rows (batch, seq + 1)."""
    logp = jax.nn.log_softmax(forward(w, rows[:, :-1], c), -1)
    return -jnp.mean(jnp.take_along_axis(logp, rows[:, 1:, None], -1))


def orthogonal(g):
    """About the nearest matrix with orthonormal rows or columns, by five Newton-Schulz steps whose
    coefficients are those of the Muon optimiser (Jordan et al., 2024). g (rows, cols)."""
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / (jnp.linalg.norm(x) + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


def muon(w, g, m, rate, decay=0.05):
    """The new (w, m) of one matrix (in, out): its momentum, orthogonalised, with Nesterov's look."""
    m = 0.95 * m + g
    scale = max(1.0, w.shape[1] / w.shape[0]) ** 0.5
    return w * (1 - rate * decay) - rate * scale * orthogonal(0.95 * m + g), m


def adam(w, g, m, v, step, rate, b1=0.9, b2=0.98):
    """The new (w, m, v) of one array by Adam."""
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    move = m / (1 - b1**step) / (jnp.sqrt(v / (1 - b2**step)) + 1e-8)
    return w - rate * move, m, v


def update(w, g, m, v, step, rate):
    """One step: Muon for the matrices, Adam for the embedding and the gains.

    w, gradients g and both moments m, v: {name: array}; returns the new w, m, v."""
    w, m, v = dict(w), dict(m), dict(v)
    for n in w:
        if w[n].ndim == 2 and n != "embed":
            w[n], m[n] = muon(w[n], g[n], m[n], rate)
        else:
            w[n], m[n], v[n] = adam(w[n], g[n], m[n], v[n], step, 0.15 * rate)
    return w, m, v


def make_step(c):
    """The compiled training step."""

    def step(w, m, v, rows, number, rate):
        loss, g = jax.value_and_grad(loss_of)(w, rows, c)
        w, m, v = update(w, g, m, v, number, rate)
        return w, m, v, loss

    return jax.jit(step, donate_argnums=(0, 1, 2))


def lines_of(text):
    """Offset and length, newline included, of every line but the first."""
    ends = np.flatnonzero(text == ord("\n")) + 1
    return ends[:-1], np.diff(ends)


def draw(rng, text, lines, batch, seq):
    """Windows (batch, seq + 1) that start at texts no longer than seq; other texts may follow."""
    starts, lengths = lines
    fits = starts[(lengths <= seq) & (starts < len(text) - seq - 1)]
    at = rng.choice(fits, batch)
    return text[at[:, None] + np.arange(seq + 1)].astype(np.int32)


def rate_at(step, steps, peak, warm=100):
    """Learning rate: linear warm-up, then a cosine down to 2% of the peak."""
    if step < warm:
        return peak * (step + 1) / warm
    x = (step - warm) / max(1, steps - warm)
    return peak * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * x)))


def save(path, w, c):
    """Weights by name, and the configuration as a JSON string."""
    np.savez(path, config=json.dumps(c), **{n: np.asarray(x) for n, x in w.items()})


def train(text, c, args):
    """Trains for `args.steps` steps; now and then, and at the end, prints the loss and saves."""
    rng = np.random.default_rng(args.seed)
    w = {n: jnp.asarray(x) for n, x in init(rng, c).items()}
    m = {n: jnp.zeros_like(x) for n, x in w.items()}
    v = {n: jnp.zeros_like(x) for n, x in w.items()}
    print(f"{sum(x.size for x in w.values())} parameters, {len(text)} bytes of text", flush=True)
    held, learn = text[: len(text) // 50], text[len(text) // 50 :]
    step, lines, began, recent = make_step(c), lines_of(learn), time.time(), []
    for i in range(args.steps):
        seq = [length for share, length in LENGTHS if i >= share * args.steps][-1]
        rows = draw(rng, learn, lines, args.bytes // seq, seq)
        w, m, v, loss = step(w, m, v, rows, i + 1.0, rate_at(i, args.steps, args.rate))
        recent.append(float(loss))
        if (i + 1) % args.report == 0 or i + 1 == args.steps:
            seconds = time.time() - began
            print(f"{i + 1} loss {np.mean(recent):.4f} after {seconds:.0f} s", flush=True)
            save(args.out, w, c)
            recent = []
    rows = draw(np.random.default_rng(0), held, lines_of(held), 64, c["context"])
    print(f"held-out loss {float(loss_of(w, rows, c)):.4f} nats a byte", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default="text.txt")
    parser.add_argument("--out", default="tinylm.npz")
    parser.add_argument("--steps", type=int, default=3500)
    parser.add_argument("--bytes", type=int, default=4096, help="bytes a step")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=100)
    args = parser.parse_args()
    text = np.fromfile(args.text, np.uint8)
    train(text, CONFIG, args)


if __name__ == "__main__":
    main()
