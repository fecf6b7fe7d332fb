"""Calls of operators as `brasa verify ops` reads them, with tensors as PyTorch's."""
import itertools
import math

import torch

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64, torch.complex128]
NAMES = {str(t).split(".")[1]: t for t in DTYPES + [torch.uint16, torch.uint32, torch.uint64, torch.complex32]}


def strided(rows, strides):
    if rows.numel() == 0 or len(strides) != rows.dim():
        return rows.clone()
    memory = torch.zeros(1 + sum((n - 1) * s for n, s in zip(rows.shape, strides)), dtype=rows.dtype)
    out = memory.as_strided(rows.shape, strides)
    try:
        return out.copy_(rows)
    except RuntimeError:  # elements that share memory
        for at in itertools.product(*map(range, rows.shape)):
            out[at] = rows[at]
    return out


def read_value(j, stored, made):
    if isinstance(j, list):
        return [read_value(v, stored, made) for v in j]
    if not isinstance(j, dict):
        return j
    if "tensor" in j:
        name = j["tensor"]
        if name not in made:
            rows, dtype = stored[name], NAMES[j["dtype"]]
            made[name] = strided(torch.view_as_complex(rows) if dtype.is_complex and not rows.is_complex() else rows, j["strides"])
        return made[name]
    (kind, v), = j.items()
    if kind == "complex":
        return complex(*[read_value(p, stored, made) for p in v])
    return float(v) if kind == "float" else NAMES[v] if kind == "dtype" else torch.device(v) if kind == "device" else getattr(torch, v)


class Writer:
    def __init__(self):
        self.entries, self.tensors = [], {}

    def value(self, v, role, names):
        if isinstance(v, torch.Tensor):
            if id(v) not in names:
                names[id(v)] = f"{len(self.entries)}.{role}{len(names)}"
                rows = v.detach().resolve_conj().resolve_neg()
                self.tensors[names[id(v)]] = (torch.view_as_real(rows) if rows.is_complex() else rows).clone(memory_format=torch.contiguous_format)
            return {"tensor": names[id(v)], "dtype": str(v.dtype).split(".")[1], "shape": list(v.shape), "strides": list(v.stride())}
        if isinstance(v, (list, tuple)):
            return [self.value(x, role, names) for x in v]
        if isinstance(v, float) and not math.isfinite(v):
            return {"float": str(v)}
        if isinstance(v, complex):
            return {"complex": [self.value(v.real, role, names), self.value(v.imag, role, names)]}
        for kind in ("dtype", "memory_format", "layout", "device"):
            if isinstance(v, getattr(torch, kind)):
                return {kind: str(v).removeprefix("torch.")}
        return v

    def add(self, call, result):
        names = {}
        entry = {"args": self.value(call["args"], "in", names),
                 "kwargs": {k: self.value(v, "in", names) for k, v in call["kwargs"].items()}}
        by_position = {at: names[id(t)] for at, t in enumerate(tensors_of(call))}
        if "raises" in result:
            self.entries.append(entry | {"outputs": [], "raises": result["raises"]})
            return
        outputs = {}
        entry["outputs"] = self.value(result["outputs"], "out", outputs)
        if result["metadata"]:
            entry["compare"] = "metadata"
        if result["changed"]:
            entry["changed"] = {by_position[at]: self.named(t, f"new{at}") for at, t in result["changed"].items()}
        if result["gradients"]:
            flat = [t for o in result["outputs"] for t in (o if isinstance(o, (list, tuple)) else [o])]
            entry["cotangents"] = {outputs[id(flat[at])]: self.named(t, f"cot{at}") for at, t in result["cotangents"].items()}
            entry["gradients"] = {by_position[at]: None if t is None else self.named(t, f"grad{at}") for at, t in result["gradients"].items()}
        self.entries.append(entry)

    def named(self, tensor, role):
        return self.value(tensor, role + "_", {})["tensor"]


def tensors_of(call):
    found = []

    def visit(v):
        if isinstance(v, torch.Tensor) and all(v is not t for t in found):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            for x in v:
                visit(x)

    visit(call["args"])
    visit(list(call["kwargs"].values()))
    return found
