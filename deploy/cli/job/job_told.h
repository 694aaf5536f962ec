// How messages name a key: with its value and the place where the value was given.
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// "train.slots is 400 (job.yaml:7)".
std::string told(const JobValues& values, std::string_view key, const wire::JobSpec& job);

}  // namespace lockstep
