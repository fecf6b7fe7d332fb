#pragma once

// Everything that a program uses.
#include <brasa/autograd.h>
#include <brasa/call.h>
#include <brasa/device.h>
#include <brasa/dtype.h>
#include <brasa/elements.h>
#include <brasa/error.h>
#include <brasa/factories.h>
#include <brasa/generator.h>
#include <brasa/index.h>
#include <brasa/memory.h>
#include <brasa/ops_generated.h>
#include <brasa/options.h>
#include <brasa/scalar.h>
#include <brasa/settings.h>
#include <brasa/sparse.h>
#include <brasa/stats.h>
#include <brasa/stream.h>
#include <brasa/tensor.h>
#include <brasa/threads.h>
#include <brasa/warning.h>
