// The names of the fields that a job gives a model besides its first input: further inputs and the
// targets, as data.inputs and data.targets list them (data/dataset/fields.h). Without such keys
// there is one label, which has no name.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::exported {

struct FieldNames {
  std::vector<std::string> names;   // inputs after the first one, then targets
  uint32_t inputs = 0;              // so many of `names` are inputs
  std::optional<uint32_t> label{};  // the one of `names` that is the label; not known from a job
};

// As far as they are known before the data are opened. REQUIRES: the job is resolved.
FieldNames field_names(const wire::DataSpec& data);
FieldNames field_names(const data::SampleShape& shape);

}  // namespace lockstep::exported
