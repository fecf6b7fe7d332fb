#!/usr/bin/env python3
"""Draws a call of each overload of the reference vectors, as large as PyTorch takes some milliseconds for.

    tools/peers/draw_operators.py ../shared/reference/ops --seed 1 > calls.jsonl
    tools/peers/operators.py calls.jsonl

Equal sizes of a call's tensors grow together, and its lists of whole numbers with them where nothing else grows. Half of the calls that
have gradients are drawn with them. What PyTorch refuses at larger sizes is left out, and so is what never takes so long.
"""
import argparse
import copy
import json
import math
import os
import random
import resource
import sys
import time

import torch
from safetensors import safe_open

from operators import Call

MOST_ELEMENTS = 1 << 25
LONGEST = 1 << 20  # a dimension
TRIES = 4          # entries of an overload


def visit(j, tensor, whole_numbers):
    """Calls `tensor` for every tensor among arguments, `whole_numbers` for every list of them."""
    if isinstance(j, dict) and "tensor" in j:
        tensor(j)
    elif isinstance(j, list) and j and all(type(i) is int for i in j):
        whole_numbers(j)
    elif isinstance(j, list):
        for item in j:
            visit(item, tensor, whole_numbers)


class Growing:
    def __init__(self, overload, entry, stored, gradients, low_ms, high_ms):
        self.call = {"overload": overload, "args": copy.deepcopy(entry["args"]), "kwargs": copy.deepcopy(entry["kwargs"])}
        self.limits, self.lists, self.sizes, self.low_ms, self.high_ms = {}, False, {}, low_ms, high_ms
        self.each(self.call, lambda t: self.prepare(t, stored), lambda numbers: None)
        if gradients and entry.get("gradients"):
            self.call["gradients"] = list(entry["gradients"])

    @staticmethod
    def each(call, tensor, whole_numbers):
        visit(call["args"], tensor, whole_numbers)
        visit(list(call["kwargs"].values()), tensor, whole_numbers)

    def prepare(self, t, stored):
        values = stored.get_tensor(t["tensor"]).double().flatten()
        values = values[values.isfinite()]
        t["low"], t["high"] = (values.min().item(), values.max().item()) if len(values) else (0.0, 1.0)
        t.pop("strides", None)
        self.sizes.update({size: size for size in t["shape"] if size > 1})

    def grown(self):
        out = copy.deepcopy(self.call)

        def grow(sizes):
            sizes[:] = [self.sizes.get(size, size) for size in sizes]
        self.each(out, lambda t: grow(t["shape"]), lambda numbers: self.lists and grow(numbers))
        return out

    def time(self):
        """Milliseconds, the less of two; None for what is refused."""
        call, elements = self.grown(), []
        self.each(call, lambda t: elements.append(math.prod(t["shape"])), lambda numbers: None)
        if sum(elements) > MOST_ELEMENTS:
            return None
        try:
            made = Call(call)
            times = []
            for _ in range(2):
                start = time.process_time()
                made.once()
                times.append(1e3 * (time.process_time() - start))
            return min(times)
        except Exception:
            return None

    def large_enough(self, rng):
        """The call that takes so long, if there is one."""
        order = sorted(self.sizes)
        rng.shuffle(order)
        for self.lists in (False, True):
            for size in order:
                by = 4
                while by > 1 and self.sizes[size] * by <= LONGEST:
                    before = dict(self.sizes)
                    self.sizes[size] *= by
                    ms = self.time()
                    if ms is None or ms > self.high_ms:
                        self.sizes = before
                        by = by - 1 if ms is not None else 1
                    elif ms >= self.low_ms:
                        return self.grown()
                    # Others grow, too, where one alone would make a tensor that is all one dimension.
                    elif self.sizes[size] >= 512 and size != order[-1]:
                        break
        return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("vectors")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--milliseconds", type=float, nargs=2, default=(1, 10), help="of PyTorch, at least and at most")
    p.add_argument("--only", nargs="*", help="overloads, or parts of their names")
    o = p.parse_args()
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))  # a result that is too large is an error, too
    for card in json.load(open(os.path.join(o.vectors, "index.json"))):
        overload = card["overload"]
        if o.only and not any(part in overload for part in o.only):
            continue
        sys.stdout.flush()
        child = os.fork()  # PyTorch may end the process that asks it for what it does not check
        if child == 0:
            draw(overload, o)
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            print(overload, "ended PyTorch", file=sys.stderr)


def draw(overload, o):
    stem, rng = os.path.join(o.vectors, overload), random.Random(f"{o.seed} {overload}")
    torch.manual_seed(o.seed)
    entries = json.load(open(stem + ".json"))["entries"]
    entries = [e for e in entries if "raises" not in e and e.get("compare") != "metadata"]
    rng.shuffle(entries)
    gradients = rng.random() < 0.5
    with safe_open(stem + ".safetensors", "pt") as stored:
        for entry in entries[:TRIES]:
            if call := Growing(overload, entry, stored, gradients, *o.milliseconds).large_enough(rng):
                print(json.dumps({**call, "seed": o.seed}))
                return
    print(overload, "never takes so long", file=sys.stderr)


if __name__ == "__main__":
    main()
