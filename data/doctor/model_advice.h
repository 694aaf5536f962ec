// What the seeds of a job say about its speed without a measurement: the stem of a resnet, sizes of
// layers that a GPU's tensor cores do not like, and threads that only take turns.
//
// Pure. Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/doctor/measurements.h"

namespace lockstep::doctor {

// Sentences, each with the key to change. What they advise is for a new run, unless they say
// otherwise.
std::vector<std::string> model_advice(const wire::JobSpec& job, const data::Dataset& dataset,
                                      const Setting& setting);

// For tests: the same of a data set that is known by these two only.
std::vector<std::string> model_advice(const wire::JobSpec& job, const data::SampleShape& shape,
                                      uint64_t classes, const Setting& setting);

}  // namespace lockstep::doctor
