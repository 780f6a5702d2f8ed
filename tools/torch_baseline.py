#!/usr/bin/env python3
"""What plain PyTorch takes for a prefill block, measured as fusebench measures: one JSON line for each way to run it.

    tools/torch_baseline.py                                  # the seed's block and LLaMA-3-8B's, every way
    tools/torch_baseline.py --block seed --mode compiled --attention default

A sample is the replay of a CUDA graph behind a flush of L2 (twice its size written, then as much of clean lines read),
between two events. Before the samples the graph runs on end until the clock has settled, and it runs before each sample
again, so that the chip is under the block's own load. Run it right before or behind `fusebench run`, on the same GPU.

Needs PyTorch with CUDA. It is not part of fusebench's build.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    sys.exit(f"torch_baseline: needs PyTorch 2.5 or later: {error}")

BLOCKS = {
    "seed": dict(dim=4096, hidden=14336, heads=32, kv_heads=32, causal=False, pairing="interleaved", dtype="float16"),
    "llama3-8b": dict(dim=4096, hidden=14336, heads=32, kv_heads=8, causal=True, pairing="half", dtype="bfloat16"),
}
ATTENTION = {
    "default": None,  # what PyTorch chooses
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
SETTLE_SECONDS = 0.3
PRELOAD_SECONDS = 0.02


def rmsnorm(x, weight, eps=1e-5):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rope(x, cos, sin, pairing):
    """x [batch, heads, seq, head_dim]; cos and sin [seq, head_dim / 2]."""
    if pairing == "interleaved":
        first, second = x[..., ::2], x[..., 1::2]
        return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class Block(torch.nn.Module):
    def __init__(self, dim, hidden, heads, kv_heads, causal, pairing, dtype):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.causal, self.pairing = causal, pairing
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False)
        self.query, self.output = linear(dim, dim), linear(dim, dim)
        self.key, self.value = (linear(dim, kv_heads * self.head_dim) for _ in range(2))
        self.gate, self.up, self.down = linear(dim, hidden), linear(dim, hidden), linear(hidden, dim)
        self.norm1 = torch.nn.Parameter(torch.ones(dim))
        self.norm2 = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x, cos, sin):
        batch, seq, dim = x.shape
        normed = rmsnorm(x, self.norm1)
        by_head = lambda product: product.view(batch, seq, -1, self.head_dim).transpose(1, 2)
        q = rope(by_head(self.query(normed)), cos, sin, self.pairing)
        k = rope(by_head(self.key(normed)), cos, sin, self.pairing)
        v = by_head(self.value(normed))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=self.heads != self.kv_heads)
        h = x + self.output(a.transpose(1, 2).reshape(batch, seq, dim))
        normed = rmsnorm(h, self.norm2)
        return h + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Flush:
    """Drives everything out of L2, and leaves it clean."""

    def __init__(self):
        bytes_ = 2 * torch.cuda.get_device_properties(0).L2_cache_size
        self.dirty = torch.empty(bytes_ // 4, dtype=torch.int32, device="cuda")
        self.clean = torch.zeros(bytes_ // 4, dtype=torch.int32, device="cuda")

    def __call__(self):
        self.dirty.fill_(1)
        torch.sum(self.clean)


def captured(run):
    """`run` as a CUDA graph, behind the launches that compile and choose kernels."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def load_for(launch, seconds):
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        for _ in range(4):
            launch()
        torch.cuda.synchronize()


def samples_us(launch, count):
    flush = Flush()
    load_for(launch, SETTLE_SECONDS)
    samples = []
    for _ in range(count):
        load_for(launch, PRELOAD_SECONDS)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush()
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        samples.append(1e3 * begin.elapsed_time(end))
    return samples


def measure(name, mode, attention, arguments):
    sizes = BLOCKS[name]
    dtype = getattr(torch, sizes["dtype"])
    torch.manual_seed(42)
    with torch.device("cuda"):
        block = Block(**sizes).to(dtype)
        x = torch.randn(arguments.batch, arguments.seq, sizes["dim"], dtype=dtype)
        angles = torch.rand(arguments.seq, sizes["dim"] // sizes["heads"] // 2) * 6.2831853
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    forward = torch.compile(block) if mode == "compiled" else block
    chosen = ATTENTION[attention]
    with torch.inference_mode(), sdpa_kernel(chosen) if chosen else contextlib.nullcontext():
        samples = samples_us(captured(lambda: forward(x, cos, sin)), arguments.samples)
    return {
        "block": name, "mode": mode, "attention": attention, "dtype": sizes["dtype"], "batch": arguments.batch,
        "seq": arguments.seq, "median_us": statistics.median(samples), "min_us": min(samples), "samples": len(samples),
        "torch": torch.__version__, "device": torch.cuda.get_device_name(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--block", choices=BLOCKS, nargs="+", default=list(BLOCKS))
    parser.add_argument("--mode", choices=["eager", "compiled"], nargs="+", default=["eager", "compiled"])
    parser.add_argument("--attention", choices=ATTENTION, nargs="+", default=list(ATTENTION))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--samples", type=int, default=50)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch_baseline: PyTorch sees no GPU")
    for name in arguments.block:
        for mode in arguments.mode:
            for attention in arguments.attention:
                torch.compiler.reset()
                try:
                    line = measure(name, mode, attention, arguments)
                except RuntimeError as error:  # a backend that does not take the shape
                    reason = str(error).strip().splitlines()
                    line = {"block": name, "mode": mode, "attention": attention, "reason": reason[0] if reason else "failed"}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
