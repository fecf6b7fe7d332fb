#!/usr/bin/env python3
"""Writes exported programs with their inputs and outputs, as `brasa verify models` reads them.

    tests/pytorch/archives.py FOLDER [--only NAME …] [--models]

The modules of modules.py, each exported by the PyTorch that is installed; with --models also those of libraries (timm, torchvision,
transformers), with random weights.
"""
import argparse
import copy
import json
import pathlib
import warnings

import torch
from safetensors.torch import save_file

LOSS = "mean of squares"


def leaves_of(value):
    return torch.utils._pytree.tree_leaves(value)


def stored(value):
    """A value as safetensors has it: complex numbers as pairs, numbers as tensors of one element."""
    t = value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value)
    t = torch.view_as_real(t) if t.is_complex() else t
    return t.clone().contiguous()


def described(value):
    t = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)}


def loss_of(outputs):
    real = [t for t in leaves_of(outputs) if isinstance(t, torch.Tensor) and t.requires_grad]
    return sum((t.abs().double() ** 2).mean() for t in real) if real else None


def write(case, folder, strict=False):
    torch.manual_seed(1)
    module = case.build().train(case.training)
    sets = case.inputs(module)
    args, kwargs = sets[0]
    fixed = copy.deepcopy(module)
    program = torch.export.export(fixed, copy.deepcopy(args), copy.deepcopy(kwargs), dynamic_shapes=case.dynamic, strict=strict)
    if case.core:
        program = program.run_decompositions()
    torch.export.save(program, folder / f"{case.name}.pt2")

    card = {
        "name": case.name,
        "sets": [],
        "tolerance": {"rtol": case.rtol, "atol": case.atol},
        "inputs": [described(v) for v in leaves_of((args, kwargs)) if v is not None and not isinstance(v, str)],
    }
    if not case.gradients:
        module.requires_grad_(False)
    for i, (args, kwargs) in enumerate(sets):
        file = f"{case.name}.{i}.safetensors"
        inputs = [v for v in leaves_of((args, kwargs)) if v is not None and not isinstance(v, str)]
        if case.only_tensors:
            inputs = [v for v in inputs if isinstance(v, torch.Tensor)]
        tensors = {f"in{k}": stored(v) for k, v in enumerate(inputs)}
        before = {n: b.clone() for n, b in module.named_buffers()}
        given = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        module.zero_grad()
        with torch.set_grad_enabled(case.gradients):
            outputs = module(*args, **kwargs)
        for k, v in enumerate(leaves_of(outputs)):
            if v is not None and not isinstance(v, str):
                tensors[f"out{k}"] = stored(v)
        for n, b in module.named_buffers():
            if n in module.state_dict() and not torch.equal(before[n], b):
                tensors[f"after.{n}"] = stored(b)
        for k, (was, now) in enumerate(zip(given, inputs)):
            if isinstance(was, torch.Tensor) and not torch.equal(was, now):
                tensors[f"after.in{k}"] = stored(now)
        if case.gradients and (loss := loss_of(outputs)) is not None:
            card["loss"] = LOSS
            loss.backward()
            for n, p in module.named_parameters():
                if p.grad is not None:
                    tensors[f"gradient.{n}"] = stored(p.grad)
        save_file(tensors, folder / file)
        card["sets"].append(file)
    (folder / f"{case.name}.json").write_text(json.dumps(card, indent=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--models", action="store_true", help="those of libraries too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    import modules

    cases = list(modules.CASES)
    if options.models:
        import models

        cases += models.CASES
    written, failed = 0, 0
    for case in cases:
        if options.only and case.name not in options.only:
            continue
        try:
            write(case, options.folder)
            written += 1
        except Exception as e:  # What PyTorch itself cannot export is no case.
            failed += 1
            print(f"{case.name}: not written: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300], flush=True)
            (options.folder / f"{case.name}.pt2").unlink(missing_ok=True)
    print(f"{written} written, {failed} that PyTorch does not export")


if __name__ == "__main__":
    main()
