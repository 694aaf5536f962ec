// Advice that the seeds of a job give about its speed without a measurement: the stem of a resnet,
// sizes of layers that a GPU's tensor cores do not like, and threads that only take turns.
//
// Pure. Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/doctor/measurements.h"

namespace lockstep::doctor {

// Returns sentences, each with the key to change. The advice is for a new run, unless a sentence
// says otherwise.
std::vector<std::string> model_advice(const wire::JobSpec& job, const data::Dataset& dataset,
                                      const Setting& setting);

// For tests: the same for a data set of which only `shape` and `classes` are known.
std::vector<std::string> model_advice(const wire::JobSpec& job, const data::SampleShape& shape,
                                      uint64_t classes, const Setting& setting);

}  // namespace lockstep::doctor
