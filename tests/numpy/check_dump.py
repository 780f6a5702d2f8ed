"""Compares a dump of `fusebench run --dump DIR` with the seed's formulas in numpy.

    python3 check_dump.py DIR

For every case in DIR: the oracle's rows agree with the formulas to double precision, and each variant's output is finite
and near them. Prints one line a case; exits with 1 when one disagrees or there is none.
"""
import json
import sys
from pathlib import Path

import numpy as np

import seed_formulas as seed

ORACLE_TOLERANCE = 1e-11  # relative L2: double against double
OUTPUT_TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 1e-1}


def outputs_of(case, tensors):
    """The op's outputs by name, [tokens, cols]."""
    batch, seq, past = case["batch"], case["seq"], case["past"]
    heads, kv_heads = case["heads"], case["kv_heads"]
    pairing, eps, causal = case["rope"], case["eps"], case["causal"]
    t = dict(tensors)

    def tokens(name, count=seq):
        return t[name].reshape(batch, count, -1)

    def split(name, n, count=seq):
        return t[name].reshape(batch, count, n, -1)

    def cached(name):
        return split(name, kv_heads, past + seq)[:, :past] if past else None

    norm = {k: t[k].reshape(-1) for k in t if "norm" in k or k == "weight"}
    op = case["op"]
    if op == "rmsnorm":
        out = {"y": seed.rmsnorm(tokens("x"), norm["weight"], eps)}
    elif op == "add_rmsnorm":
        h, y = seed.add_rmsnorm(tokens("x"), tokens("r"), norm["weight"], case["dtype"], eps)
        out = {"h": h, "y": y}
    elif op == "rope":
        q, k = seed.rope(split("q", heads), split("k", kv_heads), t["cos"], t["sin"], pairing)
        out = {"q_out": q, "k_out": k}
    elif op == "attention":
        keys = past + seq
        out = {"out": seed.attention(split("q", heads), split("k", kv_heads, keys), split("v", kv_heads, keys), causal)}
    elif op == "qkv":
        q, k, v = seed.qkv(tokens("x"), norm["norm_weight"], t["wq"], t["wk"], t["wv"], t["cos"], t["sin"], heads,
                           kv_heads, pairing, eps)
        out = {"q": q, "k": k, "v": v}
    elif op == "attn_out":
        out = {"out": seed.attn_out(tokens("a"), t["wo"], tokens("x"))}
    elif op == "swiglu":
        out = {"y": seed.swiglu(tokens("g"), tokens("u"))}
    elif op == "mlp":
        out = {"out": seed.mlp(tokens("h"), norm["norm_weight"], t["w_gate"], t["w_up"], t["w_down"], eps)}
    elif op == "block":
        y, k, v = seed.block(tokens("x"), norm["norm1_weight"], t["wq"], t["wk"], t["wv"], t["cos"], t["sin"], t["wo"],
                             norm["norm2_weight"], t["w_gate"], t["w_up"], t["w_down"], heads, kv_heads,
                             past_k=cached("k"), past_v=cached("v"), pairing=pairing, causal=causal, eps=eps)
        out = {"out": y}
        if past:
            out |= {"k": k, "v": v}
    return {name: value.reshape(batch * seq, -1) for name, value in out.items()}


def distance(got, want):
    return np.linalg.norm(got - want) / np.linalg.norm(want)


def check(folder):
    case = json.loads((folder / "case.json").read_text())
    tensors = {p.name.split(".")[1]: np.load(p) for p in folder.glob("input.*.npy")}
    rows = np.load(folder / "rows.npy")
    wrong = []
    for name, want in outputs_of(case, tensors).items():
        expected = np.load(folder / f"expected.{name}.npy")
        error = distance(expected, want[rows])
        if not error < ORACLE_TOLERANCE:
            wrong.append(f"the oracle's {name} is {error:.2e} away")
        for path in folder.glob(f"*/output.{name}.npy"):
            error = distance(np.load(path), want)
            if not error < OUTPUT_TOLERANCE[case["dtype"]]:
                wrong.append(f"{path.parent.name}'s {name} is {error:.2e} away")
    print(f"{case['case_id']}: {'; '.join(wrong) or 'agrees'}")
    return not wrong


def main():
    folders = sorted(p.parent for p in Path(sys.argv[1]).glob("*/case.json"))
    results = [check(folder) for folder in folders]
    print(f"{sum(results)} of {len(results)} cases agree with the seed's formulas")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
