#!/usr/bin/env python3
"""Times exported programs: `brasa export`, ONNX Runtime and AOTInductor, one thread, in turn.

    tools/peers/exported.py WORK [--brasa build/bin/brasa] [--rounds 5] [--calls 20] [--models mlp resnet18 vit_tiny] [--cpu-time]

A line of JSON for each model: seconds of the export, cold, of each, and the least and the median milliseconds of a call over all rounds. Each
round runs each of them once, in a process of its own; a call includes what the interface of each costs (an array of the caller's in, one out).
With --cpu-time all times are the processor's, for machines that others use, too.
Needs torch, torchvision, timm, onnx, onnxruntime and safetensors.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CPU_TIME = False
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "BRASA_NUM_THREADS": "1"}


def now():
    """Seconds, of this process and those that it waited for if processor time counts."""
    if not CPU_TIME:
        return time.perf_counter()
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def model(name):
    import timm
    import torch
    import torchvision

    torch.manual_seed(1)
    torch.set_num_threads(1)
    if name == "mlp":
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        net, shape = torch.nn.Sequential(linear(784, 256), relu(), linear(256, 256), relu(), linear(256, 10)), (1, 784)
    elif name == "resnet18":
        net, shape = torchvision.models.resnet18(), (1, 3, 224, 224)
    else:
        net, shape = timm.create_model("vit_tiny_patch16_224", pretrained=False), (1, 3, 224, 224)
    return net.eval(), torch.rand(shape)


def export(kind, name, work, brasa):
    """Seconds of the export itself; loading of libraries and torch.export are not counted, for any of them."""
    import torch

    net, x = model(name)
    if kind == "onnx":
        with torch.no_grad():
            begin = now()
            torch.onnx.export(net, (x,), work / f"{name}.onnx", dynamo=True, verbose=False)
        return now() - begin
    with torch.no_grad():
        program = torch.export.export(net, (x,))
    if kind == "aoti":
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
        begin = now()
        torch._inductor.aoti_compile_and_package(program, package_path=str(work / f"{name}_aoti.pt2"))
        seconds = now() - begin
        shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        return seconds
    from safetensors.torch import save_file

    torch.export.save(program, work / f"{name}.pt2")
    with torch.no_grad():
        save_file({"in0": x, "out0": net(x)}, work / f"{name}.call.safetensors")
    save_file({"in0": x}, work / f"{name}.in.safetensors")
    begin = now()
    subprocess.run([brasa, "export", work / f"{name}.pt2", "-o", work / name, "--weights", "beside", "--kind", "shared"], check=True,
                   stdout=subprocess.DEVNULL)
    return now() - begin


def caller(kind, name, work):
    """A function that makes one call and gives its result."""
    import numpy

    from safetensors.numpy import load_file

    x = load_file(work / f"{name}.in.safetensors")["in0"]
    if kind == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(work / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        given = {session.get_inputs()[0].name: x}
        return lambda: session.run(None, given)[0]
    if kind == "aoti":
        import torch

        torch.set_num_threads(1)
        program = torch._inductor.aoti_load_package(str(work / f"{name}_aoti.pt2"))
        given = torch.from_numpy(x)
        return lambda: program(given).numpy()
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("sizes", ctypes.c_int64 * 8)]

    class Context(ctypes.Structure):  # as the header has it
        _fields_ = [("weights", ctypes.c_void_p), ("mapped", ctypes.c_void_p), ("level", ctypes.c_int32), ("threads", ctypes.c_int32),
                    ("parallel", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("memory", ctypes.c_void_p),
                    ("memory_bytes", ctypes.c_size_t), ("state", ctypes.c_void_p), ("message", ctypes.c_char * 248)]

    library, context = ctypes.CDLL(str(work / f"{name}.so")), Context()
    function = lambda f: getattr(library, f"{name}_{f}")
    assert function("open")(ctypes.byref(context), str(work / f"{name}.weights").encode()) == 0, context.message
    inputs = Tensor(x.ctypes.data, x.nbytes, (ctypes.c_int64 * 8)(*x.shape))
    y = numpy.empty_like(load_file(work / f"{name}.call.safetensors")["out0"])
    outputs = Tensor(y.ctypes.data, y.nbytes)
    needs = ctypes.c_size_t()
    assert function("memory")(ctypes.byref(context), ctypes.byref(inputs), ctypes.byref(needs)) == 0, context.message
    memory = ctypes.create_string_buffer(needs.value)
    context.memory, context.memory_bytes = ctypes.addressof(memory), needs.value
    run = function("run")

    def call():
        assert run(ctypes.byref(context), ctypes.byref(inputs), ctypes.byref(outputs)) == 0, context.message
        return y

    call.keeps = x, memory, inputs, outputs, context
    return call


def measure(kind, name, work, calls):
    import numpy

    from safetensors.numpy import load_file

    call = caller(kind, name, work)
    expected = load_file(work / f"{name}.call.safetensors")["out0"]
    assert numpy.allclose(call(), expected, rtol=1e-3, atol=1e-4), f"{kind} gives another result for {name}"
    times = []
    clock = time.process_time if CPU_TIME else time.perf_counter
    for _ in range(calls * (50 if name == "mlp" else 1)):
        begin = clock()
        call()
        times.append((clock() - begin) * 1e3)
    return times


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("work", type=pathlib.Path)
    arguments.add_argument("--brasa", default="build/bin/brasa")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--calls", type=int, default=20)
    arguments.add_argument("--models", nargs="+", default=["mlp", "resnet18", "vit_tiny"])
    arguments.add_argument("--cpu-time", action="store_true", help="processor time")
    arguments.add_argument("--only", nargs=3, metavar=("DO", "KIND", "MODEL"), help="what a process of this script does")
    a = arguments.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    global CPU_TIME
    CPU_TIME = a.cpu_time
    kinds = ["brasa", "onnx", "aoti"]
    if a.only:
        do, kind, name = a.only
        print(json.dumps(export(kind, name, a.work, a.brasa) if do == "export" else measure(kind, name, a.work, a.calls)))
        return

    def process(do, kind, name):
        out = subprocess.run([sys.executable, __file__, a.work, "--brasa", a.brasa, "--calls", str(a.calls), *(["--cpu-time"] if a.cpu_time else []), "--only", do, kind, name],
                             env=os.environ | THREADS, check=True, capture_output=True, text=True).stdout
        return json.loads(out.splitlines()[-1])

    for name in a.models:
        seconds = {kind: process("export", kind, name) for kind in kinds}
        times = {kind: [] for kind in kinds}
        for _ in range(a.rounds):
            for kind in kinds:
                times[kind] += process("run", kind, name)
        print(json.dumps({"model": name} | {
            kind: {"export_s": round(seconds[kind], 2), "least_ms": round(min(times[kind]), 4),
                   "median_ms": round(statistics.median(times[kind]), 4)} for kind in kinds}), flush=True)


main()
