#!/usr/bin/env python3
"""Builds the programs of this folder with Brasa and with LibTorch, and times their steps in turn.

    tools/peers/programs/programs.py --python venv/bin/python [--build build] [--rounds 3] [--seconds 2] [--cpu-time] [--json] [NAME ...]

A line for each program: the least and the median of Brasa's milliseconds over LibTorch's, eager and compiled, over all rounds, and whether what the
programs computed agrees. Each measurement is a process of its own; in every second round the order is the opposite. Both use BRASA_NUM_THREADS threads.
With BRASA_CPU_TARGET=x86-64+avx2 LibTorch is capped, too.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MODES = {"torch": ("torch", []), "eager": ("brasa", []), "compiled": ("brasa", ["--compile"])}
CAPPED = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def flags(library, build, torch):
    """Of the compiler, before and behind the source."""
    if library == "torch":
        include, lib = torch / "include", torch / "lib"
        return ([f"-isystem{include}", f"-isystem{include}/torch/csrc/api/include"],
                [f"-L{lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"])
    folders = [ROOT / "include", build / "generated" / "include", ROOT / "compat" / "torch"]
    return [f"-I{f}" for f in folders], [f"-L{build}/lib", "-lbrasa", f"-Wl,-rpath,{build}/lib"]


def program(name, library, build, torch):
    """The path of a program, which is built if its sources are newer; none where the compiler refuses it."""
    out = build / "programs" / f"{name}_{library}"
    sources = [HERE / f"{name}.cpp", HERE / "program.h"]
    if out.exists() and all(out.stat().st_mtime > s.stat().st_mtime for s in sources):
        return out
    out.parent.mkdir(exist_ok=True)
    before, behind = flags(library, build, torch)
    compiler = os.environ.get("CXX", "g++")
    made = subprocess.run([compiler, "-std=c++20", "-O2", *before, str(sources[0]), "-o", str(out), *behind], stderr=subprocess.PIPE, text=True)
    if made.returncode:
        print(f"{name} does not compile with {library}:\n{made.stderr[:2000]}", file=sys.stderr)
        return None
    return out


def environment():
    env = dict(os.environ)
    if threads := env.get("BRASA_NUM_THREADS"):
        env |= {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    if "avx512" not in env.get("BRASA_CPU_TARGET", "avx512"):
        env |= CAPPED
    return env


def measure(path, arguments):
    done = subprocess.run([path, *arguments], env=environment(), capture_output=True, text=True)
    if done.returncode:
        print(f"{path.name} {' '.join(arguments)} failed: {done.stderr[:1000]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def agree(lines):
    """Whether all computed the same; random numbers are the same in Brasa's two modes alone."""
    checks = [line["check"] for line in lines.values()]
    return max(checks) - min(checks) <= lines["torch"]["tolerance"] * max(abs(c) for c in checks)


def compared(name, paths, options):
    lines = {}
    for number in range(options.rounds):
        for mode, (library, arguments) in list(MODES.items())[::-1 if number % 2 else 1]:
            if paths[library] is None:
                continue
            line = measure(paths[library], [*arguments, "--seconds", str(options.seconds), *(["--cpu-time"] if options.cpu_time else [])])
            if line is None:
                continue
            known = lines.setdefault(mode, line)
            for key in ("least_ms", "median_ms"):
                known[key] = min(known[key], line[key])
    out = {"name": name, **lines}
    if "torch" in lines:
        for mode in ("eager", "compiled"):
            if mode in lines:
                out[f"{mode}_ratio"] = [round(lines[mode][key] / lines["torch"][key], 3) for key in ("least_ms", "median_ms")]
        out["agree"] = agree(lines)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where Brasa is built")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2, help="of each measurement")
    p.add_argument("--cpu-time", action="store_true", help="processor time, for machines that others use, too, and one thread")
    p.add_argument("--json", action="store_true")
    o = p.parse_args()
    find = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    torch = pathlib.Path(subprocess.run([o.python, "-c", find], check=True, capture_output=True, text=True).stdout.strip())
    build = o.build.resolve()
    if not o.json:
        print(f"{'program':18} {'torch ms':>9} {'eager':>7} {'median':>7} {'compiled':>9} {'median':>7}  agree")
    for name in o.names or sorted(s.stem for s in HERE.glob("*.cpp")):
        paths = {library: program(name, library, build, torch) for library in ("torch", "brasa")}
        line = compared(name, paths, o)
        if o.json:
            print(json.dumps(line), flush=True)
            continue
        cell = lambda mode, i: format(line[f"{mode}_ratio"][i], ".2f") if f"{mode}_ratio" in line else "-"
        least = f"{line['torch']['least_ms']:.1f}" if "torch" in line else "-"
        print(f"{name:18} {least:>9} {cell('eager', 0):>7} {cell('eager', 1):>7} {cell('compiled', 0):>9} {cell('compiled', 1):>7}  "
              f"{'yes' if line.get('agree') else 'no'}", flush=True)


if __name__ == "__main__":
    main()
