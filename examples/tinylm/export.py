"""Writes tinylm.onnx and reference.json from the trained weights, and checks the one by the other.

The graph is spelt the way exporters spell a decoder with a key-value cache: RMSNorm, rotary
embedding, the causal mask and the SiLU gate in primitives, key heads repeated by
Unsqueeze/Expand/Reshape, and sizes by Shape/Gather/Concat, so that `batch`, `seq` and `past` stay
symbolic; `past` may be 0. Opset 17, standard operators only. reference.json is made by forward.py,
which shares no code with the graph.

    python export.py --weights tinylm.npz --onnx tinylm.onnx --reference reference.json
"""

import argparse
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper

import forward

INT64_MAX = 2**63 - 1
PROMPTS = ["Once upon a time", "One day, Lily went to the park", "Tom and Mia were"]


class Graph:
    """Nodes and initialisers so far. Nodes are named by their scope, as exporters do."""

    def __init__(self):
        self.nodes, self.initialisers, self.counts, self.constants = [], [], {}, {}
        self.scope = ""

    def node(self, op, *inputs, **attributes):
        """Adds a node and returns the name of its output."""
        stem = f"{self.scope}/{op}"
        count = self.counts.get(stem, 0)
        self.counts[stem] = count + 1
        name = f"{stem}_{count}" if count else stem
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def constant(self, value, dtype=np.int64):
        """A Constant node; one for each value. A list gives a vector, a number a scalar."""
        key = (str(value), np.dtype(dtype).name)
        if key not in self.constants:
            scope, self.scope = self.scope, ""
            tensor = onnx.numpy_helper.from_array(np.array(value, dtype))
            self.constants[key] = self.node("Constant", value=tensor)
            self.scope = scope
        return self.constants[key]

    def scalar(self, value):
        return self.constant(value, np.float32)

    def weight(self, name, array):
        """An initialiser with raw data."""
        array = np.ascontiguousarray(array, np.float32)
        self.initialisers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def size(self, x, axis):
        """One dimension of x as an int64 scalar."""
        return self.node("Gather", self.node("Shape", x), self.constant(axis), axis=0)

    def shape(self, *dims):
        """A shape vector; a dimension is a number or the name of a scalar."""
        parts = [
            (
                self.constant([d])
                if isinstance(d, int)
                else self.node("Unsqueeze", d, self.constant([0]))
            )
            for d in dims
        ]
        return self.node("Concat", *parts, axis=0)

    def slice_last(self, x, start, end):
        """x[..., start:end] of a tensor of rank 4."""
        bounds = [self.constant([n]) for n in (start, end, 3, 1)]
        return self.node("Slice", x, *bounds)


def rms_norm(g, x, gain, eps):
    """x (batch, seq, dim) -> the same shape."""
    mean = g.node("ReduceMean", g.node("Pow", x, g.scalar(2.0)), axes=[-1], keepdims=1)
    root = g.node("Sqrt", g.node("Add", mean, g.scalar(eps)))
    return g.node("Mul", gain, g.node("Mul", x, g.node("Div", g.scalar(1.0), root)))


def positions(g, ids, past_key):
    """Query positions past .. past+seq-1 (seq) and key positions 0 .. past+seq-1 (total), int64."""
    g.scope = "/model"
    past = g.size(past_key, 2)
    total = g.node("Add", past, g.size(ids, 1))
    return (
        g.node("Range", past, total, g.constant(1)),
        g.node("Range", g.constant(0), total, g.constant(1)),
    )


def rotary(g, c, q_positions):
    """cos and sin (1, 1, seq, head_dim)."""
    g.scope = "/model/rotary_emb"
    speed = c["rope_theta"] ** (-np.arange(0, c["head_dim"], 2) / c["head_dim"])
    speed = g.weight("model.rotary_emb.inv_freq", speed.reshape(1, -1, 1))
    at = g.node("Cast", g.node("Unsqueeze", q_positions, g.constant([0, 1])), to=TensorProto.FLOAT)
    angle = g.node("Transpose", g.node("MatMul", speed, at), perm=[0, 2, 1])
    angle = g.node("Concat", angle, angle, axis=-1)
    axis = g.constant([1])
    return (
        g.node("Unsqueeze", g.node("Cos", angle), axis),
        g.node("Unsqueeze", g.node("Sin", angle), axis),
    )


def causal_mask(g, q_positions, k_positions):
    """(1, 1, seq, total): 0 where a query may look, the lowest float where it may not."""
    g.scope = "/model"
    later = g.node(
        "Greater",
        g.node("Unsqueeze", k_positions, g.constant([0])),
        g.node("Unsqueeze", q_positions, g.constant([1])),
    )
    lowest = g.scalar(float(np.finfo(np.float32).min))
    return g.node("Unsqueeze", g.node("Where", later, lowest, g.scalar(0.0)), g.constant([0, 1]))


def rotate(g, x, cos, sin, head_dim):
    """x * cos + rotate_half(x) * sin, x (batch, heads, seq, head_dim)."""
    low = g.slice_last(x, 0, head_dim // 2)
    high = g.slice_last(x, head_dim // 2, INT64_MAX)
    turned = g.node("Concat", g.node("Neg", high), low, axis=-1)
    return g.node("Add", g.node("Mul", x, cos), g.node("Mul", turned, sin))


def repeat(g, x, c):
    """(batch, kv_heads, total, head_dim) -> (batch, heads, total, head_dim)."""
    batch, total, group = g.size(x, 0), g.size(x, 2), c["heads"] // c["kv_heads"]
    wide = g.node("Unsqueeze", x, g.constant([2]))
    wide = g.node("Expand", wide, g.shape(batch, c["kv_heads"], group, total, c["head_dim"]))
    return g.node("Reshape", wide, g.shape(batch, c["heads"], total, c["head_dim"]))


def attention(g, c, i, x, w, tables):
    """Self-attention of layer i, x (batch, seq, dim) -> the same shape.

    Names its cache `present.i.key` and `present.i.value`."""
    cos, sin, mask = tables
    g.scope = f"/layers.{i}/self_attn"
    batch, seq = g.size(x, 0), g.size(x, 1)

    def heads(name, n):
        split = g.node(
            "Reshape", g.node("MatMul", x, w[name]), g.shape(batch, seq, n, c["head_dim"])
        )
        return g.node("Transpose", split, perm=[0, 2, 1, 3])

    q, k, v = heads("q", c["heads"]), heads("k", c["kv_heads"]), heads("v", c["kv_heads"])
    q, k = rotate(g, q, cos, sin, c["head_dim"]), rotate(g, k, cos, sin, c["head_dim"])
    present = []
    for kind, new in (("key", k), ("value", v)):
        g.node("Concat", f"past_key_values.{i}.{kind}", new, axis=2)
        g.nodes[-1].output[0] = f"present.{i}.{kind}"
        present.append(g.nodes[-1].output[0])
    k, v = (repeat(g, p, c) for p in present)
    scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.node("Div", scores, g.scalar(c["head_dim"] ** 0.5))
    mixed = g.node("MatMul", g.node("Softmax", g.node("Add", scores, mask), axis=-1), v)
    mixed = g.node("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = g.node("Reshape", mixed, g.shape(batch, seq, c["heads"] * c["head_dim"]))
    return g.node("MatMul", mixed, w["o"])


def layer(g, c, i, x, w, tables):
    """One block, x (batch, seq, dim) -> the same shape. w: short name -> initialiser."""
    g.scope = f"/layers.{i}/input_layernorm"
    h = rms_norm(g, x, w["attn_norm"], c["norm_eps"])
    x = g.node("Add", x, attention(g, c, i, h, w, tables))
    g.scope = f"/layers.{i}/post_attention_layernorm"
    h = rms_norm(g, x, w["ffn_norm"], c["norm_eps"])
    g.scope = f"/layers.{i}/mlp"
    gate = g.node("MatMul", h, w["gate"])
    gate = g.node("Mul", gate, g.node("Sigmoid", gate))
    h = g.node("MatMul", g.node("Mul", gate, g.node("MatMul", h, w["up"])), w["down"])
    return g.node("Add", x, h)


def cache_infos(c, prefix, length):
    """The cache's signature: `prefix`.N.key and .value, (batch, kv_heads, length, head_dim)."""
    dims = ["batch", c["kv_heads"], length, c["head_dim"]]
    return [
        helper.make_tensor_value_info(f"{prefix}.{i}.{kind}", TensorProto.FLOAT, dims)
        for i in range(c["layers"])
        for kind in ("key", "value")
    ]


def build(weights, c):
    """The whole model."""
    g = Graph()
    names = forward.onnx_names(c["layers"])
    for short, long in names.items():
        g.weight(long, weights[short])
    q_positions, k_positions = positions(g, "input_ids", "past_key_values.0.key")
    mask = causal_mask(g, q_positions, k_positions)
    tables = (*rotary(g, c, q_positions), mask)
    g.scope = "/model/embed_tokens"
    x = g.node("Gather", names["embed"], "input_ids", axis=0)
    for i in range(c["layers"]):
        own = {short: names[f"{i}.{short}"] for short in forward.LAYER_NAMES}
        x = layer(g, c, i, x, own, tables)
    g.scope = "/model/norm"
    x = rms_norm(g, x, names["norm"], c["norm_eps"])
    g.scope = "/lm_head"
    g.node("MatMul", x, g.node("Transpose", names["embed"], perm=[1, 0]))
    g.nodes[-1].output[0] = "logits"
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"])
    logits = helper.make_tensor_value_info(
        "logits", TensorProto.FLOAT, ["batch", "seq", c["vocab"]]
    )
    graph = helper.make_graph(
        g.nodes,
        "tinylm",
        [ids] + cache_infos(c, "past_key_values", "past"),
        [logits] + cache_infos(c, "present", "past + seq"),
        g.initialisers,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tinylm/export.py"
    )
    model.ir_version = 8
    helper.set_model_props(model, {"config": json.dumps(c)})
    onnx.checker.check_model(model, full_check=True)
    return model


def run_onnx(session, ids, past):
    """As forward.forward, by onnxruntime."""
    feeds = {"input_ids": ids.astype(np.int64)}
    for i, (k, v) in enumerate(past):
        feeds[f"past_key_values.{i}.key"] = k.astype(np.float32)
        feeds[f"past_key_values.{i}.value"] = v.astype(np.float32)
    out = session.run(None, feeds)
    return out[0], list(zip(out[1::2], out[2::2]))


def check(path, w, c):
    """Compares the file with forward.py: a whole batch, a split one, and greedy decoding."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    text = "One day, Ben saw a red kite in the park. The kite was stuck in a tall tree.".encode()
    ids = np.stack([np.frombuffer(text, np.uint8)] * 2)
    ids[1, 9:12] = list(b"Amy")
    expected, cache = forward.forward(w, c, ids, forward.empty_past(c, 2))
    whole, present = run_onnx(session, ids, forward.empty_past(c, 2))
    first, past = run_onnx(session, ids[:, :31], forward.empty_past(c, 2))
    rest, _ = run_onnx(session, ids[:, 31:], past)
    worst = np.abs(whole - expected).max()
    split = np.abs(np.concatenate([first, rest], 1) - expected).max()
    kept = max(np.abs(a - b).max() for x, y in zip(present, cache) for a, b in zip(x, y))
    print(f"largest difference: logits {worst:.2e}, in two steps {split:.2e}, cache {kept:.2e}")
    assert max(worst, split, kept) < 1e-4
    check_greedy(session, w, c)


def check_greedy(session, w, c, count=96):
    """The same bytes from the oracle, from the file with its cache, and from it without."""
    for prompt in PROMPTS:
        expected, _ = forward.generate(w, c, prompt.encode(), count, np.argmax)
        plain = list(prompt.encode())
        ids, past, cached = np.array([plain]), forward.empty_past(c, 1), []
        for _ in range(count):
            logits, past = run_onnx(session, ids, past)
            cached.append(int(logits[0, -1].argmax()))
            ids = np.array([cached[-1:]])
            logits, _ = run_onnx(session, np.array([plain]), forward.empty_past(c, 1))
            plain.append(int(logits[0, -1].argmax()))
        assert cached == expected and plain[len(prompt) :] == expected, prompt
        print(f"{prompt!r}: {count} bytes agree, with the cache and without")


def reference(w, c, prompt, count):
    """One case of reference.json: what a right implementation answers."""
    ids, logits = forward.generate(w, c, prompt.encode(), count, np.argmax)
    best = np.sort(logits, -1)
    first = logits[0]
    top, fixed = np.argsort(-first, kind="stable")[:10], [0, 10, 32, 46, 65, 97, 101, 255]
    return {
        "prompt": prompt,
        "prompt_ids": list(prompt.encode()),
        "greedy": ids,
        "greedy_text": bytes(ids).decode("ascii"),
        "margins": [round(float(m), 4) for m in best[:, -1] - best[:, -2]],
        "first_logits_top10": [[int(t), round(float(first[t]), 6)] for t in top],
        "first_logits_at": [[t, round(float(first[t]), 6)] for t in fixed],
    }


def write_reference(path, w, c, count):
    """Writes reference.json, one key of a case a line."""
    cases = []
    for prompt in PROMPTS:
        case = reference(w, c, prompt, count)
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items())
        cases.append(" {\n" + lines + "\n }")
    with open(path, "w") as out:
        out.write("[\n" + ",\n".join(cases) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", default="tinylm.npz")
    parser.add_argument("--onnx", default="tinylm.onnx")
    parser.add_argument("--reference", default="reference.json")
    parser.add_argument("--count", type=int, default=96, help="greedy bytes a prompt")
    args = parser.parse_args()
    w, c = forward.load(args.weights)
    model = build(w, c)
    onnx.save(model, args.onnx)
    print(f"{args.onnx}: {len(model.graph.node)} nodes, {os.path.getsize(args.onnx)} bytes")
    check(args.onnx, w, c)
    write_reference(args.reference, w, c, args.count)


if __name__ == "__main__":
    main()
