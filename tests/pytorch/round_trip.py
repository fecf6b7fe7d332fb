#!/usr/bin/env python3
"""Has PyTorch load and run the archives that Brasa writes of PyTorch's own.

    tests/pytorch/round_trip.py BRASA FOLDER

For each archive of FOLDER (see archives.py): `brasa export --kind pt2`, the same program, must give the same results for the inputs that the
archive holds; `--kind recorded-pt2`, as Brasa records it, those of the stored files, where it does not refuse.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file

import modules  # noqa: F401: what archives of named tuples name


def leaves_of(value):
    return torch.utils._pytree.tree_leaves(value)


# An input's value that the program reads while it is recorded is taken for fixed, and should be an error.
def same(got, want, rtol=1e-4, atol=1e-5):
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)


def check_copy(original, copy):
    before, after = torch.export.load(original), torch.export.load(copy)
    args, kwargs = before.example_inputs
    results = []
    for program in (before, after):
        module = program.module(check_guards=False)
        torch.manual_seed(3)
        given = torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (args, kwargs))
        outputs = module(*given[0], **given[1])
        found = leaves_of((outputs, given)) + list(module.state_dict().values())
        results.append([v for v in found if isinstance(v, torch.Tensor)])
    same(*results, rtol=1e-5, atol=1e-6)


def check_recorded(archive, card, folder):
    program = torch.export.load(archive)
    module = program.module()
    declared = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    for file in card["sets"]:
        tensors = load_file(folder / file)
        given = []
        for i, name in enumerate(program.graph_signature.user_inputs):
            t = tensors[f"in{i}"]
            given.append(torch.view_as_complex(t) if declared[name].is_complex() and not t.is_complex() else t)
        stored = sorted((n for n in tensors if n.startswith("out")), key=lambda n: int(n[3:]))  # those that are no None
        for name, out in zip(stored, leaves_of(module(*given)), strict=True):
            out = torch.view_as_real(out) if out.is_complex() else out
            same(out.detach().to(tensors[name].dtype), tensors[name], **card["tolerance"])
        state = dict(module.state_dict())
        for name, want in tensors.items():
            if name.startswith("after.in"):
                same(given[int(name[8:])], want)
            elif name.startswith("after."):
                same(state[name[6:]], want)


def main():
    brasa, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    warnings.filterwarnings("ignore")
    counts = {"copied": 0, "recorded": 0, "refused": 0, "wrong": 0, "PyTorch refuses its own": 0}
    with tempfile.TemporaryDirectory() as temporary:
        for original in sorted(folder.glob("*.pt2")):
            card = json.loads(original.with_suffix(".json").read_text())
            try:
                torch.export.load(original).module()
            except Exception:
                counts["PyTorch refuses its own"] += 1
                continue
            for kind, check in (("pt2", lambda p: check_copy(original, p)), ("recorded-pt2", lambda p: check_recorded(p, card, folder))):
                out = f"{temporary}/{original.stem}.{kind}.pt2"
                run = subprocess.run([brasa, "export", original, "-o", out, "--kind", kind], capture_output=True, text=True)
                if run.returncode:
                    counts["refused" if kind == "recorded-pt2" else "wrong"] += 1
                    print(f"{original.stem} {kind}: {run.stderr.strip()[-200:]}")
                    continue
                try:
                    check(out)
                    counts["copied" if kind == "pt2" else "recorded"] += 1
                except Exception as e:
                    counts["wrong"] += 1
                    print(f"{original.stem} {kind}: WRONG: {type(e).__name__}: {' '.join(str(e).split())[:300]}")
    print(counts)
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
