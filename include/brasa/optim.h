#pragma once

// Optimizers and learning-rate schedules.
#include <brasa/optim/adafactor.h>
#include <brasa/optim/adam.h>
#include <brasa/optim/adaptive.h>
#include <brasa/optim/lbfgs.h>
#include <brasa/optim/lr_scheduler.h>
#include <brasa/optim/muon.h>
#include <brasa/optim/optimizer.h>
#include <brasa/optim/reduce_on_plateau.h>
#include <brasa/optim/schedulers.h>
#include <brasa/optim/sgd.h>
#include <brasa/optim/sparse_adam.h>
