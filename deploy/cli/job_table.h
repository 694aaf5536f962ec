// The rows of the job file's schema (job_schema.h), in the order in which they are printed.
#pragma once

#include <span>

#include "deploy/cli/job_schema.h"

namespace lockstep {

std::span<const JobKey> job_table();

}  // namespace lockstep
