#!/usr/bin/env python3
"""Writes a statically quantized ResNet-18 for 8 images of 224 x 224 as an exported program; needs torch, torchvision and torchao.

    int8_resnet18.py resnet18_int8.pt2
    brasa bench resnet18_int8.pt2 --peers
"""
import sys

import torch
import torchvision
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (X86InductorQuantizer,
                                                                        get_default_x86_inductor_quantization_config)


def fold(module, conv, norm):
    setattr(module, conv, fuse_conv_bn_eval(getattr(module, conv), getattr(module, norm)))
    setattr(module, norm, torch.nn.Identity())


def folded_resnet18():
    """Without batch norm, and with a call of relu where torchvision's blocks use one module twice, which the quantizer refuses."""
    model = torchvision.models.resnet18().eval()
    fold(model, "conv1", "bn1")
    for block in model.modules():
        if isinstance(block, torchvision.models.resnet.BasicBlock):
            fold(block, "conv1", "bn1")
            fold(block, "conv2", "bn2")
            if block.downsample is not None:
                fold(block.downsample, "0", "1")
            del block.relu
            block.__dict__["relu"] = torch.relu
    return model


def main():
    torch.manual_seed(0)
    model, images = folded_resnet18(), (torch.randn(8, 3, 224, 224),)
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, images).module(), quantizer)
    prepared(*images)  # observes the ranges
    quantized = convert_pt2e(prepared)
    torch.export.save(torch.export.export(quantized, images), sys.argv[1])
    with torch.no_grad():
        difference, largest = (quantized(*images) - model(*images)).abs().max(), model(*images).abs().max()
    print(f"largest difference from float32 {difference:.3g}, largest result {largest:.3g}")


if __name__ == "__main__":
    main()
