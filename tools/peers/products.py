#!/usr/bin/env python3
"""Prints how fast products of square matrices are in Brasa, in all four transpositions, as shares of a peak.

    tools/peers/products.py --peak 118 [--dtype float32] [--backend eager] [--sizes 192 256 ...] [--seconds 0.3] [--rounds 2] [--torch]

A row for each size: GFLOP/s of a·b, a·bᵀ, aᵀ·b, aᵀ·bᵀ, the best of all rounds by processor time, packing included; behind them the median
and the least of all as shares of the peak. Eager calls have symbolic sizes, those of `--backend inductor` their own. One thread.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

SIZES = [192, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096]
TURNED = [(False, False), (False, True), (True, False), (True, True)]


def matrix(name, n, turned, dtype):
    return {"tensor": name, "dtype": dtype, "shape": [n, n], "strides": [1, n] if turned else [n, 1], "low": -1.0, "high": 1.0}


def call(n, turned, dtype):
    return {"overload": "aten.mm.default", "args": [matrix(name, n, t, dtype) for name, t in zip("ab", turned)], "kwargs": {}}


def torch_ms(n, turned, dtype, seconds):
    import torch
    torch.set_num_threads(1)
    a, b = (torch.rand(n, n).to(getattr(torch, dtype)) for _ in "ab")
    a, b = (x.t() if t else x for x, t in zip((a, b), turned))
    best, end, calls = float("inf"), time.perf_counter() + seconds, 0
    while calls < 3 or time.perf_counter() < end:
        start = time.process_time()
        a @ b
        best, calls = min(best, time.process_time() - start), calls + 1
    return 1e3 * best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peak", type=float, required=True, help="GFLOP/s of one thread")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--backend", default="eager")
    p.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    p.add_argument("--seconds", type=float, default=0.3, help="of each in a round")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--brasa", default="build/bin/brasa")
    p.add_argument("--torch", action="store_true", help="PyTorch's, in turn, in brackets")
    o = p.parse_args()
    brasa = subprocess.Popen([o.brasa, "bench", "--operators", "--calls", "-", "--backend", o.backend, "--seconds", str(o.seconds), "--cpu-time"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "BRASA_NUM_THREADS": "1"})
    shares = []
    print("| n | a·b | a·bᵀ | aᵀ·b | aᵀ·bᵀ |\n| --- | --- | --- | --- | --- |")
    for n in o.sizes:
        row = []
        for turned in TURNED:
            best, peer = float("inf"), float("inf")
            for _ in range(o.rounds):
                brasa.stdin.write(json.dumps(call(n, turned, o.dtype)) + "\n")
                brasa.stdin.flush()
                best = min(best, json.loads(brasa.stdout.readline())["ms"])
                if o.torch:
                    peer = min(peer, torch_ms(n, turned, o.dtype, o.seconds))
            shares.append(2e-6 * n**3 / best / o.peak)
            row.append(f"{2e-6 * n**3 / best:.0f}" + (f" ({2e-6 * n**3 / peer:.0f})" if o.torch else ""))
        print(f"| {n} | " + " | ".join(row) + " |", flush=True)
    print(f"median {statistics.median(shares):.0%}, least {min(shares):.0%} of {o.peak:g}; below 75 %: {sum(s < 0.75 for s in shares)}, "
          f"below 90 %: {sum(s < 0.9 for s in shares)} of {len(shares)}")
    brasa.stdin.close()
    brasa.wait()


if __name__ == "__main__":
    main()
