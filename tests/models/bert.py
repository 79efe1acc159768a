"""Builds an ONNX BERT encoder as exporters write one; export_minilm.py and make_bert.py share it.

Inputs are input_ids, attention_mask and token_type_ids, int64 (batch, seq); outputs are
last_hidden_state (batch, seq, d) and embedding (batch, d), the mean over the tokens that the mask
keeps, divided by its L2 norm. `batch` and `seq` are symbolic: sizes come from Shape, Gather,
Unsqueeze and Concat. GELU is spelt with Erf; LayerNorm in primitives or as LayerNormalization.
Opset 17, standard operators only.

Weights are given by their Hugging Face names ("encoder.layer.0.attention.self.query.weight",
(out, in)); matrices are stored transposed, (in, out), for MatMul. `weight_shapes` lists them.
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def weight_shapes(c):
    """{Hugging Face name: shape} of every weight. c: a Hugging Face BERT configuration."""
    d, f = c["hidden_size"], c["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (c["vocab_size"], d),
        "embeddings.position_embeddings.weight": (c["max_position_embeddings"], d),
        "embeddings.token_type_embeddings.weight": (c["type_vocab_size"], d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    linear = {
        "attention.self.query": (d, d),
        "attention.self.key": (d, d),
        "attention.self.value": (d, d),
        "attention.output.dense": (d, d),
        "intermediate.dense": (f, d),
        "output.dense": (d, f),
    }
    for i in range(c["num_hidden_layers"]):
        for part, shape in linear.items():
            shapes[f"encoder.layer.{i}.{part}.weight"] = shape
            shapes[f"encoder.layer.{i}.{part}.bias"] = shape[:1]
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{i}.{part}.weight"] = (d,)
            shapes[f"encoder.layer.{i}.{part}.bias"] = (d,)
    return shapes


class Graph:
    """Nodes and initialisers so far. Nodes are named by their scope, as exporters do."""

    def __init__(self, weights):
        self.weights, self.scope = weights, ""
        self.nodes, self.initialisers, self.counts = [], [], {}

    def node(self, op, *inputs, **attributes):
        """Adds a node and returns the name of its output."""
        stem = f"{self.scope}/{op}"
        count = self.counts.get(stem, 0)
        self.counts[stem] = count + 1
        name = f"{stem}_{count}" if count else stem
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_output_0"], name, **attributes))
        return f"{name}_output_0"

    def constant(self, value, dtype=np.int64):
        """A Constant node: a list gives a vector, a number a scalar."""
        return self.node("Constant", value=onnx.numpy_helper.from_array(np.array(value, dtype)))

    def scalar(self, value):
        return self.constant(value, np.float32)

    def store(self, name, array):
        """An initialiser with raw data."""
        array = np.ascontiguousarray(array)
        self.initialisers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def weight(self, name):
        return self.store(name, self.weights[name])

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

    def linear(self, x, name):
        """x (..., in) -> (..., out)."""
        matrix = self.store(f"{name}.MatMul.weight", self.weights[f"{name}.weight"].T)
        return self.node("Add", self.weight(f"{name}.bias"), self.node("MatMul", x, matrix))


def layer_norm(g, x, name, c, fused):
    """x (..., d) -> the same shape."""
    gain, bias = g.weight(f"{name}.weight"), g.weight(f"{name}.bias")
    if fused:
        return g.node("LayerNormalization", x, gain, bias, axis=-1, epsilon=c["layer_norm_eps"])
    centred = g.node("Sub", x, g.node("ReduceMean", x, axes=[-1], keepdims=1))
    square = g.node("Pow", centred, g.scalar(2.0))
    variance = g.node("ReduceMean", square, axes=[-1], keepdims=1)
    root = g.node("Sqrt", g.node("Add", variance, g.scalar(c["layer_norm_eps"])))
    return g.node("Add", g.node("Mul", g.node("Div", centred, root), gain), bias)


def gelu(g, x):
    """x / 2 * (1 + erf(x / sqrt 2)), in the exporter's order."""
    erf = g.node("Erf", g.node("Div", x, g.scalar(2**0.5)))
    product = g.node("Mul", x, g.node("Add", erf, g.scalar(1.0)))
    return g.node("Mul", product, g.scalar(0.5))


def embeddings(g, c, fused):
    """The sum of the word, type and position embeddings, normalised: (batch, seq, d)."""
    g.scope = "/embeddings"
    words = g.node("Gather", g.weight("embeddings.word_embeddings.weight"), "input_ids")
    types = g.node("Gather", g.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    ids = np.arange(c["max_position_embeddings"], dtype=np.int64)[None]
    ids = g.store("embeddings.position_ids", ids)
    end = g.node("Unsqueeze", g.size("input_ids", 1), g.constant([0]))
    ids = g.node("Slice", ids, g.constant([0]), end, g.constant([1]), g.constant([1]))
    places = g.node("Gather", g.weight("embeddings.position_embeddings.weight"), ids)
    x = g.node("Add", g.node("Add", words, types), places)
    return layer_norm(g, x, "embeddings.LayerNorm", c, fused)


def additive_mask(g):
    """(batch, 1, 1, seq): 0 where the mask is 1, the lowest float where it is 0."""
    g.scope = ""
    mask = g.node("Unsqueeze", "attention_mask", g.constant([1]))
    mask = g.node("Cast", g.node("Unsqueeze", mask, g.constant([2])), to=TensorProto.FLOAT)
    lowest = g.scalar(float(np.finfo(np.float32).min))
    return g.node("Mul", g.node("Sub", g.scalar(1.0), mask), lowest)


def attention(g, c, i, x, mask):
    """Self-attention of layer i before the residual, x (batch, seq, d) -> the same shape."""
    name = f"encoder.layer.{i}.attention"
    n, d = c["num_attention_heads"], c["hidden_size"]

    def heads(part, perm):
        g.scope = f"/encoder/layer.{i}/attention/self/{part}"
        y = g.linear(x, f"{name}.self.{part}")
        g.scope = f"/encoder/layer.{i}/attention/self"
        split = g.node("Reshape", y, g.shape(g.size(y, 0), g.size(y, 1), n, d // n))
        return g.node("Transpose", split, perm=perm)

    q, k = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])
    v = heads("value", [0, 2, 1, 3])
    scores = g.node("Div", g.node("MatMul", q, k), g.scalar((d / n) ** 0.5))
    scores = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
    mixed = g.node("Transpose", g.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    mixed = g.node("Reshape", mixed, g.shape(g.size(mixed, 0), g.size(mixed, 1), d))
    g.scope = f"/encoder/layer.{i}/attention/output/dense"
    return g.linear(mixed, f"{name}.output.dense")


def layer(g, c, i, x, mask, fused):
    """One post-norm block, x (batch, seq, d) -> the same shape."""
    name = f"encoder.layer.{i}"
    y = attention(g, c, i, x, mask)
    g.scope = f"/encoder/layer.{i}/attention/output"
    x = layer_norm(g, g.node("Add", y, x), f"{name}.attention.output.LayerNorm", c, fused)
    g.scope = f"/encoder/layer.{i}/intermediate"
    y = gelu(g, g.linear(x, f"{name}.intermediate.dense"))
    g.scope = f"/encoder/layer.{i}/output"
    y = g.linear(y, f"{name}.output.dense")
    return layer_norm(g, g.node("Add", y, x), f"{name}.output.LayerNorm", c, fused)


def pool(g, x):
    """Masked mean over seq, then L2 norm: (batch, seq, d) -> (batch, d)."""
    g.scope = "/pooling"
    mask = g.node("Unsqueeze", "attention_mask", g.constant([-1]))
    mask = g.node("Cast", g.node("Expand", mask, g.node("Shape", x)), to=TensorProto.FLOAT)
    total = g.node("ReduceSum", g.node("Mul", x, mask), g.constant([1]), keepdims=0)
    count = g.node("ReduceSum", mask, g.constant([1]), keepdims=0)
    mean = g.node("Div", total, g.node("Clip", count, g.scalar(1e-9)))
    g.scope = "/normalize"
    norm = g.node("ReduceL2", mean, axes=[1], keepdims=1)
    norm = g.node("Expand", g.node("Clip", norm, g.scalar(1e-12)), g.node("Shape", mean))
    return g.node("Div", mean, norm)


def build(weights, c, fused=False):
    """The model. weights: {Hugging Face name: float32 array}; fused: LayerNormalization nodes."""
    g = Graph(weights)
    mask, x = additive_mask(g), embeddings(g, c, fused)
    for i in range(c["num_hidden_layers"]):
        x = layer(g, c, i, x, mask, fused)
    embedding = pool(g, x)
    g.scope, d = "", c["hidden_size"]
    for inner, outer in ((x, "last_hidden_state"), (embedding, "embedding")):
        g.nodes.append(helper.make_node("Identity", [inner], [outer], f"/Identity_{outer}"))
    info = helper.make_tensor_value_info
    ids = [info(name, TensorProto.INT64, ["batch", "seq"]) for name in INPUTS]
    outputs = [
        info("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", d]),
        info("embedding", TensorProto.FLOAT, ["batch", d]),
    ]
    graph = helper.make_graph(g.nodes, "bert", ids, outputs, g.initialisers)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, producer_name="tests/models/bert.py")
    model.ir_version = 8
    return model


def save(model, path, external):
    """Writes the file; with `external`, weights of 1 KiB and more go to `path`.data beside it."""
    files = [path]
    if external:
        files.append(path + ".data")
        if os.path.exists(files[1]):
            os.remove(files[1])  # onnx would append
        location = os.path.basename(files[1])
        onnx.save_model(model, path, save_as_external_data=True, location=location)
    else:
        onnx.save_model(model, path)
    onnx.checker.check_model(path, full_check=True)
    size = sum(os.path.getsize(f) for f in files)
    print(f"{' + '.join(files)}: {len(model.graph.node)} nodes, {size} bytes")


def padded(batches):
    """{input name: array} for id lists of any lengths, padded with 0 and masked."""
    seq = max(map(len, batches))
    ids = np.array([b + [0] * (seq - len(b)) for b in batches], np.int64)
    mask = np.array([[1] * len(b) + [0] * (seq - len(b)) for b in batches], np.int64)
    return dict(zip(INPUTS, (ids, mask, np.zeros_like(ids))))


def run(path, inputs):
    """{output name: array} by onnxruntime: last_hidden_state (batch, seq, d), embedding (batch, d)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
