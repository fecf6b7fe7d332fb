"""What a case is: a module, what it gets, and how it is exported."""
import dataclasses
from typing import Any, Callable

import torch


@dataclasses.dataclass
class Case:
    name: str
    build: Callable[[], torch.nn.Module]
    inputs: Callable[[torch.nn.Module], list]  # of (args, kwargs)
    dynamic: Any = None
    training: bool = False
    gradients: bool = True
    core: bool = False
    only_tensors: bool = False  # numbers among the inputs are fixed by the export, and left out
    rtol: float = 1e-4
    atol: float = 1e-5


def calls(*sets):
    """Inputs that do not depend on the module, drawn when they are asked for."""

    def make(module):
        torch.manual_seed(2)
        drawn = [s() for s in sets]
        return [(d if isinstance(d, tuple) else (d,), {}) for d in drawn]

    return make


def calls_with(*sets):
    """The same with keywords: each gives (args, kwargs)."""

    def make(module):
        torch.manual_seed(2)
        return [s() for s in sets]

    return make
