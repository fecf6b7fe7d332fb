"""PyTorch, operator by operator."""
import torch
import torch.nn.functional as F

from torch_models import INFERRED, OPTIMIZED, SEQUENCES, TRAINED, inferred, reduced

ARCHIVES = True  # exported programs too


def version():
    return torch.__version__


def workloads():
    return [*TRAINED, *OPTIMIZED, *SEQUENCES, *INFERRED]


def prepare(workload, o, compiled=lambda model: model):
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    autocast = lambda: torch.autocast("cpu", torch.bfloat16, enabled=reduced(workload))
    if workload in SEQUENCES:
        model, inputs = SEQUENCES[workload]()

        def differentiate(forward):
            for x in inputs:
                model.zero_grad()
                forward(x)[0].sum().backward()

        return lambda: bound(differentiate, compiled(model))
    if workload in OPTIMIZED:
        parameters = list(OPTIMIZED[workload]().parameters())
        for p in parameters:
            p.grad = torch.randn_like(p)
        step = torch.optim.Adam(parameters, lr=1e-4, fused=True).step
        return lambda: compiled(step)
    if workload not in TRAINED:
        model, inputs = inferred(workload)

        def infer(forward):
            with torch.inference_mode(), autocast():
                forward(*inputs)

        return lambda: bound(infer, compiled(model))
    model, x, target = TRAINED[workload]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def train(forward):
        optimizer.zero_grad()
        with autocast():
            loss = F.cross_entropy(forward(x), target)
        loss.backward()
        optimizer.step()

    return lambda: bound(train, compiled(model))


def bound(work, forward):
    return lambda: work(forward)
