#!/usr/bin/env python3
"""Other libraries on the workloads of `brasa bench`, for `brasa bench --peers`. What it prints is JSON, a line each.

    peers.py list                                         which peers this interpreter has, and what they run
    peers.py measure PEER WORKLOAD [--seconds 2] [--threads 2] [--cache FOLDER] [--seed 0]
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import time

# A peer's name, and the module here that has its `version()`, `workloads()` and `prepare(workload, options)`.
PEERS = {
    "torch eager": "torch_eager",
    "torch.compile": "torch_compiled",
    "jax": "jax_peer",
    "onnxruntime": "onnxruntime_peer",
    "openvino": "openvino_peer",
}


def check(peer):
    """In a process of its own: libraries that disagree, or crash, do not meet."""
    module = importlib.import_module(PEERS[peer])
    return {"peer": peer, "version": module.version(), "workloads": module.workloads(),
            "archives": getattr(module, "ARCHIVES", False)}


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def list_peers():
    for peer in PEERS:
        child = subprocess.run([sys.executable, __file__, "check", peer], capture_output=True, text=True)
        if child.returncode == 0:
            print(last_line(child.stdout), flush=True)
        else:
            reason = last_line(child.stderr) or f"exit status {child.returncode}"
            print(json.dumps({"peer": peer, "missing": reason}), flush=True)


def measure(o):
    """The first call with what it compiles, two more, then as many as fit, at least three: as `brasa bench` does."""
    prepared = importlib.import_module(PEERS[o.peer]).prepare(o.workload, o)
    start = time.perf_counter()
    call = prepared()
    call()
    first = time.perf_counter() - start
    call()
    call()
    times, cpu_times, end = [], [], time.perf_counter() + o.seconds
    while len(times) < 3 or time.perf_counter() < end:
        start, cpu = time.perf_counter(), time.process_time()
        call()
        times.append(1e3 * (time.perf_counter() - start))
        cpu_times.append(1e3 * (time.process_time() - cpu))
    times.sort()
    cpu_times.sort()
    middle = len(times) // 2
    return {"workload": o.workload, "peer": o.peer, "median_ms": round(times[middle], 4), "min_ms": round(times[0], 4),
            "cpu_median_ms": round(cpu_times[middle], 4), "cpu_min_ms": round(cpu_times[0], 4),
            "first_s": round(first, 4), "runs": len(times)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    commands.add_parser("check").add_argument("peer", choices=PEERS)
    m = commands.add_parser("measure")
    m.add_argument("peer", choices=PEERS)
    m.add_argument("workload")
    m.add_argument("--seconds", type=float, default=2)
    m.add_argument("--threads", type=int, default=os.cpu_count())
    m.add_argument("--cache", default="", help="a folder where compiled code is kept for the next process")
    m.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    if o.command == "list":
        return list_peers()
    print(json.dumps(check(o.peer) if o.command == "check" else measure(o)), flush=True)


if __name__ == "__main__":
    main()
