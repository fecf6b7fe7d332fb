#pragma once

// Modules, their functions, initialisation.
#include <brasa/nn/any.h>
#include <brasa/nn/cloneable.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>
#include <brasa/nn/module.h>
#include <brasa/nn/modules/activation.h>
#include <brasa/nn/modules/attention.h>
#include <brasa/nn/modules/container.h>
#include <brasa/nn/modules/conv.h>
#include <brasa/nn/modules/distance.h>
#include <brasa/nn/modules/dropout.h>
#include <brasa/nn/modules/embedding.h>
#include <brasa/nn/modules/functional.h>
#include <brasa/nn/modules/linear.h>
#include <brasa/nn/modules/loss.h>
#include <brasa/nn/modules/norm.h>
#include <brasa/nn/modules/padding.h>
#include <brasa/nn/modules/parameters.h>
#include <brasa/nn/modules/pooling.h>
#include <brasa/nn/modules/transformer.h>
#include <brasa/nn/modules/vision.h>
#include <brasa/nn/options.h>
#include <brasa/nn/pimpl.h>
#include <brasa/nn/utils.h>
