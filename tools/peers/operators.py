#!/usr/bin/env python3
"""Times operators in Brasa and in PyTorch, in turn.

    brasa bench --operators --vectors DIR --seed 1 > calls.jsonl
    tools/peers/operators.py calls.jsonl [--brasa build/bin/brasa] [--rounds 2] [--seconds 0.1] [--backend inductor] [--cpu-time]

A line of JSON for each call: the least milliseconds of both over all rounds and their ratio. The last line has the geometric mean, and how
many took more than 1.1 of PyTorch's time. Both use BRASA_NUM_THREADS threads. With BRASA_CPU_TARGET=x86-64+avx2 PyTorch is to be capped, too:
ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import torch


def tensor(j):
    dtype, shape, low, high = getattr(torch, j["dtype"]), j["shape"], j["low"], j["high"]
    if dtype.is_floating_point:
        return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(dtype)
    if dtype.is_complex:
        return torch.complex(torch.rand(shape) * (high - low) + low, torch.zeros(shape)).to(dtype)
    return torch.randint(int(low), int(high) + 1, shape).to(dtype)


class Call:
    """A call of the vectors' form, ready to be made again and again."""

    def __init__(self, line):
        self.named = {}
        _, name, overload = line["overload"].split(".")
        self.operator = getattr(getattr(torch.ops.aten, name), overload)
        self.args = [self.value(a) for a in line["args"]]
        self.kwargs = {k: self.value(v) for k, v in line["kwargs"].items()}
        self.asked = [self.named[n].requires_grad_() for n in line.get("gradients", [])]
        self.once = self.with_gradients if self.asked else self.forward
        self.once()

    def value(self, j):
        if isinstance(j, list):
            return [self.value(item) for item in j]
        if not isinstance(j, dict):
            return j
        if "tensor" in j:
            if j["tensor"] not in self.named:
                self.named[j["tensor"]] = tensor(j)
            return self.named[j["tensor"]]
        if "float" in j:
            return float(j["float"])
        if "complex" in j:
            return complex(*(self.value(part) for part in j["complex"]))
        (kind, name), = j.items()
        return torch.device(name) if kind == "device" else getattr(torch, name)

    def forward(self):
        with torch.no_grad():
            return self.operator(*self.args, **self.kwargs)

    def with_gradients(self):
        out = self.operator(*self.args, **self.kwargs)
        out = [t for t in (out if isinstance(out, (list, tuple)) else [out])
               if isinstance(t, torch.Tensor) and t.requires_grad]
        return torch.autograd.grad(out, self.asked, [torch.ones_like(t) for t in out], allow_unused=True)

    def least(self, seconds, clock):
        best, end, n = math.inf, time.perf_counter() + seconds, 0
        while n < 3 or time.perf_counter() < end:
            start = clock()
            self.once()
            best = min(best, clock() - start)
            n += 1
        return 1e3 * best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("calls")
    p.add_argument("--brasa", default="build/bin/brasa")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.1, help="of each in a round")
    p.add_argument("--backend", default="eager")
    p.add_argument("--cpu-time", action="store_true", help="processor time, for machines that others use, too, and one thread")
    o = p.parse_args()
    clock = time.process_time if o.cpu_time else time.perf_counter
    if threads := os.environ.get("BRASA_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    brasa = subprocess.Popen([o.brasa, "bench", "--operators", "--calls", "-", "--backend", o.backend, "--seconds", str(o.seconds),
                              *(["--cpu-time"] if o.cpu_time else [])],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ratios = []
    for text in open(o.calls):
        line = json.loads(text)
        if "error" in line:
            continue
        shapes = []
        try:
            call = Call(line)
            shapes = [list(t.shape) for t in call.named.values()]
            times = [math.inf, math.inf]
            for _ in range(o.rounds):
                brasa.stdin.write(text.strip() + "\n")
                brasa.stdin.flush()
                times = [min(times[0], json.loads(brasa.stdout.readline())["ms"]), min(times[1], call.least(o.seconds, clock))]
        except Exception as e:  # what PyTorch refuses
            print(json.dumps({"overload": line["overload"], "error": str(e)[:200]}), file=sys.stderr)
            continue
        ratios.append(times[0] / times[1])
        print(json.dumps({"ratio": round(ratios[-1], 3), "overload": line["overload"], "gradients": bool(call.asked), "shapes": shapes,
                     "brasa_ms": round(times[0], 4), "torch_ms": round(times[1], 4)}), flush=True)
    brasa.stdin.close()
    brasa.wait()
    # A call may take less than a step of the clock.
    mean = math.exp(sum(math.log(max(r, 1e-3)) for r in ratios) / max(len(ratios), 1))
    print(json.dumps({"calls": len(ratios), "geometric_mean": round(mean, 3), "above_1.1": sum(r > 1.1 for r in ratios)}))


if __name__ == "__main__":
    main()
