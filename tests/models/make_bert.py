"""Writes a BERT of any size with random weights, for measurements of compile time.

The graph is bert.py's; the sizes default to BERT-base (110 M parameters, 436 MB). The weights are
a function of the seed. With --check, onnxruntime runs the file once and the outputs must be finite
and the embeddings of length 1.

    python make_bert.py --out bert.onnx --external
    python make_bert.py --out small.onnx --layers 2 --dim 64 --heads 4 --ffn 256 --vocab 100
"""

import argparse

import numpy as np

import bert


def config_of(args):
    """The Hugging Face configuration of the sizes asked for."""
    if args.dim % args.heads:
        raise SystemExit(f"--dim {args.dim} is not a multiple of --heads {args.heads}")
    return {
        "num_hidden_layers": args.layers,
        "hidden_size": args.dim,
        "num_attention_heads": args.heads,
        "intermediate_size": args.ffn,
        "vocab_size": args.vocab,
        "max_position_embeddings": args.context,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
    }


def random_weights(config, seed):
    """Normal matrices of deviation 0.02, gains near 1, biases near 0: {name: float32 array}."""
    rng, weights = np.random.default_rng(seed), {}
    for name, shape in bert.weight_shapes(config).items():
        x = rng.standard_normal(shape, np.float32) * np.float32(0.02)
        weights[name] = x + np.float32(1) if name.endswith("LayerNorm.weight") else x
    return weights


def check(path, config):
    """One run on a batch of two lengths."""
    ids = [[n % config["vocab_size"] for n in range(start, 12)] for start in (1, 4)]
    out = bert.run(path, bert.padded(ids))
    hidden = out["last_hidden_state"]
    assert hidden.shape == (2, 11, config["hidden_size"]) and np.isfinite(hidden).all()
    assert np.allclose(np.linalg.norm(out["embedding"], axis=1), 1, atol=1e-4)
    print(f"{path}: runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="bert.onnx")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--ffn", type=int, default=3072)
    parser.add_argument("--vocab", type=int, default=30522)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fused", action="store_true", help="LayerNormalization nodes")
    parser.add_argument("--external", action="store_true", help="weights in a file beside")
    parser.add_argument("--check", action="store_true", help="run it once by onnxruntime")
    args = parser.parse_args()
    config = config_of(args)
    weights = random_weights(config, args.seed)
    print(f"{sum(w.size for w in weights.values())} parameters")
    bert.save(bert.build(weights, config, args.fused), args.out, args.external)
    if args.check:
        check(args.out, config)


if __name__ == "__main__":
    main()
