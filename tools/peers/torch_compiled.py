"""PyTorch with torch.compile: the model as one function, as its tutorials do. Its cache is the given folder."""
import os

import torch

import torch_eager

version, workloads, ARCHIVES = torch_eager.version, torch_eager.workloads, True


def prepare(workload, o):
    if o.cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = o.cache
    if workload.endswith(".pt2"):  # int8 kernels are found in graphs with constant weights only
        from torch._inductor import config
        config.freezing = True
    return torch_eager.prepare(workload, o, torch.compile)
