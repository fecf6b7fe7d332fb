#!/usr/bin/env python3
"""Draws calls of operators that are right but for one argument, and writes what PyTorch makes of them.

    calls.py VECTORS OUT [--seed N] [--count N] [--together SHARE] [--minutes N] [--only NAME ...]

VECTORS is a folder as `brasa verify ops` reads it. Each call starts from one that is there, in its functional, in-place or `out=` form,
and has one thing changed: a dtype, a rank, a size, a number, an index, a list, an element, the memory. In a SHARE of the calls all
tensors change together: those of one dtype, the dimensions of one size, the memory of all. OUT is such a folder, too, for
`brasa verify ops OUT`; a call that PyTorch refuses has "raises" with the error's text.
"""
import argparse
import json
import math
import os
import pathlib
import pickle
import random
import resource
import signal
import tempfile
import time
import warnings

import safetensors.torch
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers quantized_decomposed

from call_files import DTYPES, Writer, read_value, strided, tensors_of

MOST_ELEMENTS = 3000  # of a call's tensors
HUGE = [-(2**63), 2**63 - 1, 2**40, -(2**40), 2**31]
# Refusals that say nothing about the call: of this machine, and of tensors that are views because their memory is laid out by hand.
# The last is of forms with out= whose numbers have no defaults.
NOT_OF_THE_CALL = ["not differentiable with respect to", "Found no NVIDIA driver", "Can't detach views in-place", "is missing value for argument"]


# --- Changes ---
def other_dtype(rng, t):
    return t.to(rng.choice([d for d in DTYPES if d != t.dtype]))


def other_rank(rng, t):
    ways = [lambda: t.unsqueeze(rng.randint(0, t.dim())), lambda: t.reshape(-1), lambda: t.reshape(1, -1)]
    if t.dim() and t.shape[0]:
        ways += [lambda: t[0], lambda: t.reshape(-1)[0] if t.numel() else t]
    return rng.choice(ways)().clone()


def other_size(rng, t):
    if not t.dim():
        return t.reshape(1).repeat(rng.choice([0, 1, 2]))
    d = rng.randrange(t.dim())
    n = t.shape[d]
    if n == 0:
        return t.new_ones([1 if k == d else s for k, s in enumerate(t.shape)])
    return t.index_select(d, torch.arange(rng.choice([0, 1, n - 1, n + 1, 2 * n])) % n)


def other_element(rng, t):
    t = t.clone()
    if not t.numel():
        return t
    if t.dtype == torch.bool:
        values = [True, False]
    elif t.dtype.is_floating_point or t.dtype.is_complex:
        values = [math.nan, math.inf, -math.inf, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 1e4, -1e4, 1e30 if t.dtype not in (torch.float16,) else 6e4, 1e-30, 100.5]
    else:
        info = torch.iinfo(t.dtype)
        values = [0, 1, 2, 5, 100, info.min, info.max] + ([-1, -5] if info.min else [])
    v = rng.choice(values)
    if rng.random() < 0.3:
        t.fill_(v)
    else:
        t[tuple(rng.randrange(n) for n in t.shape)] = v
    return t


def other_memory(rng, t):
    if t.dim() > 1 and rng.random() < 0.5:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if t.dim() and t.shape[-1] and rng.random() < 0.5:
        return torch.stack([t, t], -1)[..., 0]
    if t.dim() and t.numel():
        d = rng.randrange(t.dim())
        return t.narrow(d, 0, 1).expand(t.shape)
    return t.clone()


def other_number(rng, v):
    if isinstance(v, bool):
        return not v
    if isinstance(v, int):
        return rng.choice([0, 1, -1, 2, v + 1, v - 1, -v, v + 7, -v - 1, 300, *HUGE, 1.5, True, float(v)])
    if isinstance(v, float):
        return rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -v, math.nan, math.inf, -math.inf, 1e300, 1e39, 70000.0, 3, -2, True, 1j])
    if isinstance(v, complex):
        return rng.choice([1j, 1.5, 2, complex(math.inf, 0), complex(0, math.nan)])
    return v


def other_list(rng, v, tensors):
    v = list(v)
    if not v:
        return [rng.choice([0, 1, -1, 2])] if not tensors else v
    at = rng.randrange(len(v))
    way = rng.randrange(5)
    if way == 0:
        del v[at]
    elif way == 1:
        v.insert(at, v[at])
    elif way == 2:
        v[at] = v[rng.randrange(len(v))]
    elif way == 3:
        v = []
    else:
        v[at] = other(rng, v[at], tensors)
    return v


def other(rng, v, tensors):
    if isinstance(v, torch.Tensor):
        way = rng.choices([other_dtype, other_rank, other_size, other_element, other_memory, None], [5, 2, 3, 4, 1, 1])[0]
        if way:
            return way(rng, v)
        return rng.choice(tensors + [None])
    if isinstance(v, (list, tuple)):
        return other_list(rng, v, tensors)
    if isinstance(v, str):
        return rng.choice(["none", "mean", "sum", "tanh", "reflect", "", "bogus", "L", "U", "left"])
    if isinstance(v, torch.dtype):
        return rng.choice(DTYPES)
    if v is None or isinstance(v, (torch.layout, torch.device, torch.memory_format)):
        return v
    return other_number(rng, v)


def copied(v, made):
    if isinstance(v, torch.Tensor):
        return made.setdefault(id(v), strided(v.contiguous(), v.stride()))
    return [copied(x, made) for x in v] if isinstance(v, (list, tuple)) else v


def copy_of(call):
    made = {}
    return {"args": copied(call["args"], made), "kwargs": {k: copied(v, made) for k, v in call["kwargs"].items()}}


def change(rng, call):
    """The call with one argument replaced."""
    tensors = tensors_of(call)
    places = [("args", i) for i in range(len(call["args"]))] + [("kwargs", k) for k in call["kwargs"]]
    if not places or rng.random() < 0.05:
        return call
    for _ in range(5):
        part, at = rng.choice(places)
        old = call[part][at]
        call[part][at] = other(rng, old, tensors)
        if call[part][at] is not old:
            break
    return call


def replaced(v, f):
    """The argument with f of each tensor and number in it."""
    return [replaced(x, f) for x in v] if isinstance(v, (list, tuple)) else f(v)


def change_together(rng, call):
    """The call with all tensors of one dtype, all dimensions of one size, or the memory of all tensors changed."""
    tensors = tensors_of(call)
    if not tensors:
        return call
    way, model = rng.randrange(3), rng.choice(tensors)
    if way == 0:
        near = [d for d in DTYPES if (d.is_floating_point or d.is_complex) == differentiable(model)]
        dtype = rng.choice([d for d in (near if rng.random() < 0.7 else DTYPES) if d != model.dtype])
        new = lambda t: t.to(dtype) if t.dtype == model.dtype else t
    elif way == 1 and model.dim():
        n, m = rng.choice(model.shape), rng.choice([0, 0, 1, 1, 2, 17])
        def new(t):
            for d in range(t.dim()):
                if t.shape[d] == n:
                    t = t.index_select(d, torch.arange(m) % n) if n else t.new_ones([*t.shape[:d], m, *t.shape[d + 1:]])
            return t
    else:
        new = lambda t: other_memory(rng, t)
    made = {id(t): new(t) for t in tensors}
    number = {n: m} if way == 1 and model.dim() and rng.random() < 0.5 else {}

    def f(v):
        if isinstance(v, torch.Tensor):
            return made[id(v)]
        return number.get(v, v) if type(v) is int else v

    return {"args": replaced(call["args"], f), "kwargs": {k: replaced(v, f) for k, v in call["kwargs"].items()}}


# --- PyTorch ---
class Form:
    """An overload that PyTorch has: the functional one of the vectors, or one that writes."""

    def __init__(self, function, name, schema, writes=None, random=False):
        self.function, self.name, self.schema, self.writes, self.random = function, name, schema, writes, random


def forms_of(overload):
    space, base, which = overload.split(".", 2)
    packet = getattr(getattr(torch.ops, space), base)
    function = getattr(packet, which)
    schema = function._schema
    # PyTorch leaves the tag out where an operator is composed.
    random_results = torch.Tag.nondeterministic_seeded in function.tags or any(n in base for n in ("dropout", "rrelu"))
    forms = [Form(function, overload, schema, None, random_results)]
    one = len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor"
    if one and hasattr(torch.ops.aten, base + "_") and which in getattr(torch.ops.aten, base + "_").overloads():
        f = getattr(getattr(torch.ops.aten, base + "_"), which)
        forms.append(Form(f, f"aten.{base}_.{which}", f._schema, "self", random_results))
    if one:
        wanted = [str(a.type) for a in schema.arguments if a.name not in ("dtype", "layout", "device", "pin_memory")]
        for o in packet.overloads():
            f = getattr(packet, o)
            outs = [a for a in f._schema.arguments if a.is_out]
            given = [str(a.type) for a in f._schema.arguments if not a.is_out and a.name != "dtype"]
            if len(outs) == 1 and outs[0].name == "out" and given == wanted:
                forms.append(Form(f, overload, schema, "out", random_results))
                break
    return forms


def differentiable(t):
    return t.is_floating_point() or t.is_complex()


def comparable(t):
    return t.nan_to_num(7.5, 1e38, -1e38) if differentiable(t) and t.isnan().any() else t


def perform(form, call, seed):
    """What PyTorch gives for the call, or {"raises": text}."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    before = tensors_of(call)
    work = copy_of(call)
    tensors = tensors_of(work)
    asked = []
    if not form.writes and not form.random and rng.random() < 0.4:
        asked = [at for at, t in enumerate(tensors) if differentiable(t) and t.is_contiguous()]
    try:
        for at in asked:
            tensors[at].requires_grad_(True)
        results = form.function(*work["args"], **work["kwargs"])
    except Exception as e:  # whatever it is, PyTorch refused
        if any(text in str(e) for text in NOT_OF_THE_CALL):
            return None
        return {"raises": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300]}
    if form.random and form.writes:
        return None
    returns = 1 if len(form.function._schema.returns) == 1 else 0
    outputs = [results] if returns else list(results) if isinstance(results, (list, tuple)) else []
    flat = [t for o in outputs for t in (o if isinstance(o, (list, tuple)) else [o])]
    made = [t for t in flat if isinstance(t, torch.Tensor)]
    if sum(t.numel() for t in made) > 100000 or any(t.layout != torch.strided or t.dtype not in DTYPES for t in made):
        return None
    gradients, cotangents = {}, {}
    able = [at for at, t in enumerate(flat) if isinstance(t, torch.Tensor) and t.requires_grad]
    if asked and able:
        cotangents = {at: torch.randn_like(flat[at]).detach().contiguous() for at in able}
        try:
            grads = torch.autograd.grad([flat[at] for at in able], [tensors[at] for at in asked], [cotangents[at] for at in able], allow_unused=True)
            gradients = {at: None if g is None else g.to_dense().detach().clone() for at, g in zip(asked, grads)}
        except Exception:
            cotangents = {}

    def plain(v):
        if isinstance(v, torch.Tensor):
            rows = v.detach().resolve_conj().resolve_neg()
            return strided(rows, rows.stride())
        return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v

    changed = {}
    for at, (old, new) in enumerate(zip(before, tensors)):
        new = new.detach()
        if old.shape != new.shape or not torch.equal(comparable(old), comparable(new)):
            changed[at] = new.clone()
    # What empty memory holds is nobody's.
    metadata = form.random or form.name.split(".")[1].removeprefix("new_").startswith("empty")
    return {"outputs": plain(outputs), "metadata": metadata, "changed": {} if form.random else changed, "cotangents": cotangents, "gradients": gradients}


def guarded(form, calls, seeds):
    """perform() of each call in a process that may die or hang: (call, result) of those that it answered."""
    at = 0
    while at < len(calls):
        with tempfile.TemporaryFile() as file:
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
                for i in range(at, len(calls)):
                    signal.alarm(10)
                    pickle.dump(perform(form, calls[i], seeds[i]), file)
                    file.flush()
                os._exit(0)
            os.waitpid(child, 0)
            file.seek(0)
            while at < len(calls):
                try:
                    result = pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    print(f"{form.name}: PyTorch died or hung: {calls[at]}"[:300], flush=True)
                    at += 1
                    break
                if result is not None:
                    yield calls[at], result
                at += 1


def result_for(rng, functional, call):
    """A tensor to write into that fits the call's result, or nearly so."""
    right = perform(functional, call, 0)
    like = right["outputs"][0] if right and "outputs" in right else torch.zeros(2)
    out = torch.zeros_like(like, memory_format=torch.contiguous_format)
    for way in rng.sample([other_dtype, other_size, other_memory, other_rank], rng.choice([0, 1, 1, 1, 2])):
        out = way(rng, out)
    return out


def drop_options(form, call):
    """Leaves out what the overload with out= does not take, such as layouts, and the dtype, which is the result's."""
    taken = form.function._schema.arguments
    call["args"] = call["args"][: sum(not a.kwarg_only for a in taken)]
    call["kwargs"] = {k: v for k, v in call["kwargs"].items() if k != "dtype" and k in {a.name for a in taken}}


def small_calls(folder, overload):
    entries = json.loads((folder / f"{overload}.json").read_text())["entries"]
    stored = safetensors.torch.load_file(folder / f"{overload}.safetensors")
    for e in entries:
        if sum(math.prod(t["shape"]) for t in tensors_in(e)) > MOST_ELEMENTS:
            continue
        made = {}
        try:
            args = read_value(e["args"], stored, made)
            yield {"args": args, "kwargs": {k: read_value(v, stored, made) for k, v in e["kwargs"].items()}}
        except (KeyError, AttributeError):  # a dtype or layout that is not drawn
            pass


def tensors_in(j):
    if isinstance(j, dict) and "tensor" in j:
        yield j
    elif isinstance(j, (dict, list)):
        for v in j.values() if isinstance(j, dict) else j:
            yield from tensors_in(v)


def draw(options, card):
    """Writes the calls of an overload's forms; gives their cards."""
    overload = card["overload"]
    rng = random.Random(f"{options.seed} {overload}")
    small = list(small_calls(options.vectors, overload))
    forms = forms_of(overload) if small else []
    writers = {}
    for form in forms:
        share = options.count if len(forms) == 1 else options.count // 2 // (1 if not form.writes else len(forms) - 1)
        calls = []
        for _ in range(share):
            call = copy_of(rng.choice(small))
            together = options.together > 0 and rng.random() < options.together
            if together:
                call = change_together(rng, call)
            if form.writes == "out":
                drop_options(form, call)
                call["kwargs"]["out"] = result_for(rng, forms[0], call)
            elif not together or rng.random() < 0.3:
                call = change(rng, call)
            calls.append(call)
        for call, result in guarded(form, calls, [rng.randrange(2**31) for _ in calls]):
            writers.setdefault(form.name, Writer()).add(call, result)
    cards = []
    for name, writer in writers.items():
        (options.out / f"{name}.json").write_text(json.dumps({"overload": name, "entries": writer.entries}))
        safetensors.torch.save_file(writer.tensors, options.out / f"{name}.safetensors")
        cards.append({"overload": name, "entries": len(writer.entries), "refused": sum("raises" in e for e in writer.entries)}
                     | {k: card[k] for k in ("ambiguous", "tolerance", "gradient_tolerance")})
    return cards


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=25, help="calls of an overload")
    parser.add_argument("--together", type=float, default=0, help="share of the calls whose tensors change together")
    parser.add_argument("--minutes", type=float, default=math.inf, help="draws of no more overloads after this time")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)

    index = json.loads((options.vectors / "index.json").read_text())
    wanted = [c for c in index if not options.only or any(c["overload"].startswith(f"aten.{o}.") for o in options.only)]
    random.Random(options.seed).shuffle(wanted)  # so that a part of a run shows all families
    drawn, running, end = [], {}, time.monotonic() + 60 * options.minutes
    # A process for each: a call that damages PyTorch's memory may end a process later.
    while wanted or running:
        if time.monotonic() > end:
            wanted = []
        if wanted and len(running) < os.cpu_count():
            card = wanted.pop(0)
            path = options.out / f"{card['overload']}.card"
            child = os.fork()
            if child == 0:
                signal.alarm(120)
                path.write_text(json.dumps(draw(options, card)))
                os._exit(0)
            running[child] = path
        elif running:
            child, _ = os.wait()
            path = running.pop(child)
            if path.exists():
                drawn += json.loads(path.read_text())
            else:
                print(f"{path.stem}: PyTorch died", flush=True)
    (options.out / "index.json").write_text(json.dumps(drawn))
    print(f"seed {options.seed}: {sum(c['entries'] for c in drawn)} calls of {len(drawn)} overloads, {sum(c['refused'] for c in drawn)} that PyTorch refuses")


main()
