"""Which calls of LibTorch's API compile against compat/torch: its functions and the methods of its tensors, with arguments of the very
types that its headers declare, once with all of them and once with those that have no default.

    python3 tests/pytorch/names.py LIBTORCH_INCLUDE BUILD [--all]

LIBTORCH_INCLUDE is torch/include of PyTorch, BUILD a build folder of Brasa. Prints the declarations that do not compile and their number.
Left out unless `--all`: names of backends, of quantized and nested tensors, and those that begin with `_`.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = re.compile(r"^(_|cudnn_|miopen_|mkldnn_|mps_|fbgemm_|quantize|fake_quant|q_)|nested|quantized|mkldnn|padded_tensor|overrideable")
NOT_TAKEN = ("SymInt", "Dimname", "/*unused*/")
FUNCTION = re.compile(r"\s*inline (.*?) (\w+)\((.*)\) \{")
METHOD = re.compile(r"  ((?:const )?(?:at::|::std::|bool|int64_t|void|double)\S*(?: &)?) (\w+)\((.*)\) const;")
UNIT = 1200  # calls a compiler takes at once


def split(parameters: str) -> list[str]:
    """At the commas that are in no brackets."""
    out, depth, at = [], 0, 0
    for i, c in enumerate(parameters):
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            out.append(parameters[at:i].strip())
            at = i + 1
    return out + [parameters[at:].strip()] if parameters.strip() else out


def parameter(text: str) -> tuple[str, str, bool]:
    """Its type, its name, and whether it has a default."""
    declared, _, default = text.partition("=")
    kind, name = re.fullmatch(r"(.*[\s&>])(\w+)", declared.strip()).groups()
    return kind.replace("const at::ITensorListRef &", "at::TensorList").strip(), name, bool(default)


def declarations(include: pathlib.Path, all_names: bool):
    """(whether it is a method, its name, the result's type, parameters, the declaration) of each."""
    headers = [p for p in sorted((include / "ATen/ops").glob("*.h")) if not re.search(r"_(native|ops|dispatch|meta)\.h$", p.name)]
    for path in [*headers, include / "ATen/core/TensorBody.h"]:
        method = path.name == "TensorBody.h"
        for line in path.read_text().splitlines():
            m = (METHOD if method else FUNCTION).match(line)
            if not m or any(word in m.group(0) for word in NOT_TAKEN):
                continue
            result, name, parameters = m.groups()
            if name.endswith("symint") or name.startswith("__dispatch") or (OTHERS.search(name) and not all_names):
                continue
            yield method, name, result, [parameter(p) for p in split(parameters)], m.group(0).strip(" {")


def calls(include: pathlib.Path, all_names: bool):
    """(the declaration, a function of C++ that calls it)"""
    for method, name, result, parameters, declared in declarations(include, all_names):
        required = len(parameters)
        while required and parameters[required - 1][2]:
            required -= 1
        for count in sorted({required, len(parameters)}, reverse=True):
            taken = [f"{kind} {p}_" for kind, p, _ in parameters[:count]]
            call = f"{'self__.' if method else 'at::'}{name}({', '.join(p + '_' for _, p, _ in parameters[:count])});"
            if method:
                taken.insert(0, "const at::Tensor& self__")
            use = call if result == "void" else f"[[maybe_unused]] {result} result = {call}"
            yield declared, f"({', '.join(taken)}) {{ {use} }}"


def refused(unit: list[str], build: pathlib.Path, compiler: str) -> set[int]:
    """The numbers of those that do not compile."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "unit.cpp"
        source.write_text("#include <torch/torch.h>\n" + "\n".join(f"void f{i}{body}" for i, body in enumerate(unit)) + "\n")
        includes = [f"-I{p}" for p in (ROOT / "compat/torch", ROOT / "include", build / "generated/include")]
        run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-fmax-errors=0", "-w", *includes, str(source)], capture_output=True, text=True)
    return {int(line) - 2 for line in re.findall(r"unit\.cpp:(\d+):\d+: error", run.stderr)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--compiler", default="g++")
    options = parser.parse_args()
    every = list(calls(options.include, options.all))
    bad = []
    for at in range(0, len(every), UNIT):
        unit = every[at : at + UNIT]
        bad += [unit[i][0] for i in sorted(refused([body for _, body in unit], options.build, options.compiler))]
    for declared in dict.fromkeys(bad):
        print(declared)
    print(f"{len(every) - len(bad)} of {len(every)} calls compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
