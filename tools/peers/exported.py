#!/usr/bin/env python3
"""Times exported programs: `brasa export`, `compile` in the process, ONNX Runtime and AOTInductor, one thread, in turn.

    tools/peers/exported.py WORK [--brasa build/bin/brasa] [--rounds 5] [--calls 20] [--models mlp resnet18 vit_tiny:8] [--avx2] [--cpu-time]

A line of JSON for each model (a name, or a name and a batch, or the path of an archive that has its call beside it, as ../shared/reference/models/bert.pt2): seconds of the export, cold, of each, the least milliseconds of a call over all rounds, and the
median of the rounds' medians. Each round runs each of them once, in a process of its own; a call includes what the interface of each costs (an array of the
caller's in, one out). With --cpu-time all times are the processor's, for machines that others use, too. With --avx2 none uses more than AVX2
(`without_avx512.c` hides the rest). Files that WORK has from an earlier run are used again; their exports are not timed.
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
AVX2 = False
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "BRASA_NUM_THREADS": "1"}


def now():
    """Seconds, of this process and those that it waited for if processor time counts."""
    if not CPU_TIME:
        return time.perf_counter()
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def model(name):
    """The program, its inputs and the result."""
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    if name.endswith(".pt2"):
        from safetensors.torch import load_file

        call = load_file(sorted(pathlib.Path(name).parent.glob(f"{pathlib.Path(name).stem}.*.safetensors"))[-1])
        return torch.export.load(name), [call[f"in{i}"] for i in range(sum(k.startswith("in") for k in call))], call["out0"]
    name, _, batch = name.partition(":")
    batch = int(batch or 1)
    import timm
    import torchvision

    if name == "mlp":
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        net, shape = torch.nn.Sequential(linear(784, 256), relu(), linear(256, 256), relu(), linear(256, 10)), (batch, 784)
    elif name == "resnet18":
        net, shape = torchvision.models.resnet18(), (batch, 3, 224, 224)
    else:
        net, shape = timm.create_model("vit_tiny_patch16_224", pretrained=False), (batch, 3, 224, 224)
    x = torch.rand(shape)
    with torch.no_grad():
        return torch.export.export(net.eval(), (x,)), [x], net(x)


AVX2_TARGET = "x86-64+avx2"


def plain(name):
    return pathlib.Path(name).stem.replace(":", "_b")


def made(kind, name, work):
    """The file of an export. ONNX Runtime decides on instructions when it loads one."""
    ends = {"brasa": ".so", "aoti": "_aoti.pt2", "onnx": ".onnx"}
    return work / (plain(name) + ("_avx2" if AVX2 and kind != "onnx" else "") + ends[kind])


def export(kind, name, work, brasa):
    """Seconds of the export itself; loading of libraries and torch.export are not counted, for any of them. None for a file that is there."""
    file = made(kind, name, work)
    if file.exists():
        return None
    import torch

    program, inputs, result = model(name)
    stem = plain(name)
    if kind == "onnx":
        begin = now()
        torch.onnx.export(program, tuple(inputs), file, dynamo=True, verbose=False)
        return now() - begin
    if kind == "aoti":
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
        begin = now()
        torch._inductor.aoti_compile_and_package(program, package_path=str(file))
        seconds = now() - begin
        shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        return seconds
    from safetensors.torch import save_file

    torch.export.save(program, work / f"{stem}.pt2")
    given = {f"in{i}": x for i, x in enumerate(inputs)}
    save_file(given | {"out0": result}, work / f"{stem}.call.safetensors")
    save_file(given, work / f"{stem}.in.safetensors")
    begin = now()
    subprocess.run([brasa, "export", work / f"{stem}.pt2", "-o", file.with_suffix(""), "--weights", "beside", "--kind", "shared",
                    *(["--target", AVX2_TARGET] if AVX2 else [])], check=True, stdout=subprocess.DEVNULL)
    return now() - begin


def caller(kind, name, work):
    """A function that makes one call and gives its result."""
    import numpy

    from safetensors.numpy import load_file

    given = load_file(work / f"{plain(name)}.in.safetensors")
    arrays = [given[f"in{i}"] for i in range(len(given))]
    file = made(kind, name, work)
    if kind == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        given = {i.name: x for i, x in zip(session.get_inputs(), arrays)}
        return lambda: session.run(None, given)[0]
    if kind == "aoti":
        import torch

        torch.set_num_threads(1)
        program = torch._inductor.aoti_load_package(str(file))
        tensors = [torch.from_numpy(x) for x in arrays]
        first = lambda out: out[0] if isinstance(out, (list, tuple)) else out
        return lambda: first(program(*tensors)).numpy()
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("sizes", ctypes.c_int64 * 8)]

    class Context(ctypes.Structure):  # as the header has it
        _fields_ = [("weights", ctypes.c_void_p), ("mapped", ctypes.c_void_p), ("prepared", ctypes.c_void_p), ("level", ctypes.c_int32), ("threads", ctypes.c_int32),
                    ("parallel", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("memory", ctypes.c_void_p),
                    ("memory_bytes", ctypes.c_size_t), ("state", ctypes.c_void_p), ("message", ctypes.c_char * 248)]

    library, context = ctypes.CDLL(str(file)), Context()
    function = lambda f: getattr(library, f"{file.stem}_{f}")
    assert function("open")(ctypes.byref(context), str(file.with_suffix(".weights")).encode()) == 0, context.message
    inputs = (Tensor * len(arrays))(*(Tensor(x.ctypes.data, x.nbytes, (ctypes.c_int64 * 8)(*x.shape)) for x in arrays))
    y = numpy.empty_like(load_file(work / f"{plain(name)}.call.safetensors")["out0"])
    outputs = Tensor(y.ctypes.data, y.nbytes)
    needs = ctypes.c_size_t()
    assert function("memory")(ctypes.byref(context), inputs, ctypes.byref(needs)) == 0, context.message
    memory = ctypes.create_string_buffer(needs.value)
    context.memory, context.memory_bytes = ctypes.addressof(memory), needs.value
    run = function("run")

    def call():
        assert run(ctypes.byref(context), inputs, ctypes.byref(outputs)) == 0, context.message
        return y

    call.keeps = arrays, memory, inputs, outputs, context
    return call


def measure(kind, name, work, calls, brasa):
    """The least and the median milliseconds of a call."""
    if kind == "compiled":
        # Kernels of short calls begin with code that is not optimized.
        seconds = max(sum(measure("brasa", name, work, 3, brasa)) / 2e3 * calls, 0.5)
        out = subprocess.run([brasa, "bench", work / f"{plain(name)}.pt2", "--inputs", work / f"{plain(name)}.in.safetensors", "--modes", "default",
                              "--seconds", str(seconds), "--json"], env=os.environ | ({"BRASA_CPU_TARGET": AVX2_TARGET} if AVX2 else {}), check=True,
                             capture_output=True, text=True).stdout
        line = json.loads(out.splitlines()[-1])
        return [line[f"cpu_{k}_ms" if CPU_TIME else f"{k}_ms"] for k in ("min", "median")]
    import numpy

    from safetensors.numpy import load_file

    call = caller(kind, name, work)
    expected = load_file(work / f"{plain(name)}.call.safetensors")["out0"]
    assert numpy.allclose(call(), expected, rtol=1e-3, atol=1e-4), f"{kind} gives another result for {name}"
    times = []
    clock = time.process_time if CPU_TIME else time.perf_counter
    for _ in range(calls * (1 if name.startswith(("resnet", "vit")) else 50)):
        begin = clock()
        call()
        times.append((clock() - begin) * 1e3)
    return [min(times), statistics.median(times)]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("work", type=pathlib.Path)
    arguments.add_argument("--brasa", default="build/bin/brasa")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--calls", type=int, default=20)
    arguments.add_argument("--models", nargs="+", default=["mlp", "resnet18", "vit_tiny"])
    arguments.add_argument("--cpu-time", action="store_true", help="processor time")
    arguments.add_argument("--avx2", action="store_true", help="no AVX-512")
    arguments.add_argument("--only", nargs=3, metavar=("DO", "KIND", "MODEL"), help="what a process of this script does")
    a = arguments.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    global CPU_TIME, AVX2
    CPU_TIME, AVX2 = a.cpu_time, a.avx2
    exported = ["brasa", "onnx", "aoti"]
    kinds = ["compiled", *exported]
    if a.only:
        do, kind, name = a.only
        print(json.dumps(export(kind, name, a.work, a.brasa) if do == "export" else measure(kind, name, a.work, a.calls, a.brasa)))
        return

    # Compilers that AOTInductor calls handle the fault themselves: its export asks PyTorch, which has a setting.
    hidden = {"run": {"LD_PRELOAD": str(without_avx512(a.work))}, "export": {"ATEN_CPU_CAPABILITY": "avx2"}} if AVX2 else {}

    def process(do, kind, name):
        options = [*(["--cpu-time"] if CPU_TIME else []), *(["--avx2"] if AVX2 else [])]
        out = subprocess.run([sys.executable, __file__, a.work, "--brasa", a.brasa, "--calls", str(a.calls), *options, "--only", do, kind, name],
                             env=os.environ | THREADS | hidden.get(do, {}), check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out.splitlines()[-1])

    for name in a.models:
        seconds = {kind: process("export", kind, name) for kind in exported}
        times = {kind: [] for kind in kinds}
        for _ in range(a.rounds):
            for kind in kinds:
                times[kind].append(process("run", kind, name))
        print(json.dumps({"model": name} | {"export_s": seconds} | {
            kind: {"least_ms": round(min(least for least, _ in times[kind]), 4),
                   "median_ms": round(statistics.median(median for _, median in times[kind]), 4)} for kind in kinds}), flush=True)


def without_avx512(work):
    library = work.resolve() / "without_avx512.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", pathlib.Path(__file__).with_name("without_avx512.c"), "-o", library], check=True)
    return library


main()
