"""PyTorch with torch.compile: the model as one function, as its tutorials do. Its cache is the given folder."""
import os

import torch

import torch_eager

version, workloads = torch_eager.version, torch_eager.workloads


def prepare(workload, o):
    if o.cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = o.cache
    return torch_eager.prepare(workload, o, torch.compile)
