"""The formulas of the seed's block, and of its steps, in numpy and float64.

Weights are [out, in], as nn.Linear keeps them. Token tensors are [batch, seq, ...] or [tokens, ...]: leading
dimensions are kept. q is [batch, seq, heads, head_dim]; k and v are [batch, keys, kv_heads, head_dim], where the last
`seq` of the keys are the new ones and those before them the cache.
"""

import numpy as np


def wide(*arrays):
    return [np.asarray(a, dtype=np.float64) for a in arrays]


def linear(x, weight):
    x, weight = wide(x, weight)
    return x @ weight.T


def rmsnorm(x, weight, eps=1e-5):
    x, weight = wide(x, weight)
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + eps) * weight.reshape(-1)


def stored(values, dtype):
    """The nearest values of fp16, bf16 or fp32, ties to even, in float64."""
    mantissa_bits, exponent_bits = {"fp16": (11, 5), "bf16": (8, 8), "fp32": (24, 8)}[dtype]
    (values,) = wide(values)
    greatest_exponent = 2 ** (exponent_bits - 1)
    exponent = np.frexp(values)[1]
    step = np.ldexp(1.0, np.maximum(exponent, 3 - greatest_exponent) - mantissa_bits)
    rounded = np.rint(values / step) * step
    return np.where(np.abs(rounded) < np.ldexp(1.0, greatest_exponent), rounded, np.sign(values) * np.inf)


def add_rmsnorm(x, r, weight, dtype, eps=1e-5):
    """h = x + r, and the norm of h as it is stored in dtype."""
    x, r = wide(x, r)
    h = x + r
    return h, rmsnorm(stored(h, dtype), weight, eps)


def rope_one(x, cos, sin, pairing="interleaved"):
    """x [batch, seq, heads, head_dim], cos and sin [seq, head_dim / 2]."""
    x, cos, sin = wide(x, cos, sin)
    cos = cos[None, :, None, :]
    sin = sin[None, :, None, :]
    if pairing == "interleaved":
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = np.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1)
        return turned.reshape(x.shape)
    if pairing == "half":
        low, high = np.split(x, 2, axis=-1)
        return np.concatenate((low * cos - high * sin, low * sin + high * cos), axis=-1)
    raise ValueError(f"no such pairing: {pairing}")


def rope(q, k, cos, sin, pairing="interleaved"):
    return rope_one(q, cos, sin, pairing), rope_one(k, cos, sin, pairing)


def attention(q, k, v, causal=False):
    """[batch, seq, heads, head_dim]; the last query and the last key are of one position."""
    q, k, v = wide(q, k, v)
    seq, heads, head_dim = q.shape[1:]
    keys, kv_heads = k.shape[1:3]
    k = np.repeat(k, heads // kv_heads, axis=2)
    v = np.repeat(v, heads // kv_heads, axis=2)
    scores = np.einsum("bshd,bkhd->bhsk", q, k) / np.sqrt(head_dim)
    visible = np.ones((seq, keys), dtype=bool)
    if causal:
        visible = np.arange(keys)[None, :] <= np.arange(seq)[:, None] + (keys - seq)
    scores = np.where(visible, scores, -np.inf)
    highest = np.max(scores, axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
    total = np.sum(weights, axis=-1, keepdims=True)
    probabilities = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return np.einsum("bhsk,bkhd->bshd", probabilities, v)


def qkv(x, norm_weight, wq, wk, wv, cos, sin, heads, kv_heads, pairing="interleaved", eps=1e-5):
    """x [batch, seq, dim] -> q, k (both turned) and v of the new tokens."""
    batch, seq, _ = x.shape
    n = rmsnorm(x, norm_weight, eps)
    q = linear(n, wq).reshape(batch, seq, heads, -1)
    k = linear(n, wk).reshape(batch, seq, kv_heads, -1)
    v = linear(n, wv).reshape(batch, seq, kv_heads, -1)
    q, k = rope(q, k, cos, sin, pairing)
    return q, k, v


def append(past, new):
    """A cache [batch, past, kv_heads, head_dim], or None, and the new tokens' rows after it."""
    if past is None:
        return new
    return np.concatenate(wide(past, new), axis=1)


def attn_out(a, wo, x):
    (x,) = wide(x)
    return x + linear(a, wo)


def silu(g):
    """g / (1 + exp(-g)), whose limit at minus infinity is 0."""
    (g,) = wide(g)
    e = np.exp(-np.abs(g))
    sigmoid = np.where(g < 0, e, 1.0) / (1.0 + e)
    with np.errstate(invalid="ignore"):
        return np.where(sigmoid == 0, 0.0, g * sigmoid)


def swiglu(g, u):
    (u,) = wide(u)
    return silu(g) * u


def mlp(h, norm_weight, w_gate, w_up, w_down, eps=1e-5):
    (h,) = wide(h)
    n = rmsnorm(h, norm_weight, eps)
    return h + linear(swiglu(linear(n, w_gate), linear(n, w_up)), w_down)


def block(
    x,
    norm1_weight,
    wq,
    wk,
    wv,
    cos,
    sin,
    wo,
    norm2_weight,
    w_gate,
    w_up,
    w_down,
    heads,
    kv_heads,
    past_k=None,
    past_v=None,
    causal=False,
    pairing="interleaved",
    eps=1e-5,
):
    """x [batch, seq, dim]; past_k and past_v [batch, past, kv_heads, head_dim] -> out, and the new tokens' k and v."""
    q, k, v = qkv(x, norm1_weight, wq, wk, wv, cos, sin, heads, kv_heads, pairing, eps)
    a = attention(q, append(past_k, k), append(past_v, v), causal)
    h = attn_out(a.reshape(x.shape), wo, x)
    return mlp(h, norm2_weight, w_gate, w_up, w_down, eps), k, v
