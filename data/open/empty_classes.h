// Classes without a sample: the model gets an output for each of them, which nothing trains.
//
// Thread-safety: a pure function.
#pragma once

#include <string>

#include "data/dataset/dataset.h"

namespace lockstep::data {

// A sentence that names the first of them and what to do, or "". It looks at labels until each
// class was seen, so it costs little where none is empty. "" also for data without classes.
std::string empty_classes_text(const Dataset& dataset);

}  // namespace lockstep::data
