"""PyTorch's models as ONNX files, which other libraries read. The export is no part of what is measured."""
import contextlib
import os
import sys
import tempfile

WORKLOADS = ["vit_tiny_infer_b8", "vit_tiny_infer_b1", "gpt_infer_b1_t256", "resnet18_infer_b8", "mobilenet_v3_infer_b8",
             "unet_infer_b1", "mlp_block_infer", "mlp_infer_b8", "pointwise_4M", "pointwise_64",
             "layernorm_softmax_4096x1024"]


def exported(workload, o):
    """The file and the inputs, NumPy's arrays. The file of an earlier process is used again."""
    import numpy
    folder = o.cache or tempfile.mkdtemp()
    model_file, inputs_file = os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")
    if not os.path.exists(inputs_file):
        import torch
        from torch_models import inferred
        torch.manual_seed(o.seed)
        model, inputs = inferred(workload)
        with contextlib.redirect_stdout(sys.stderr):  # the exporter tells what it does
            torch.onnx.export(model, tuple(inputs), model_file, dynamo=True)
        numpy.savez(inputs_file, *(x.numpy() for x in inputs))
    with numpy.load(inputs_file) as stored:
        return model_file, [stored[name] for name in stored.files]
