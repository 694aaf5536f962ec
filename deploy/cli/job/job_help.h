// The documentation of the job file's keys, as `lockstep run --help-job` prints it. A section is
// the keys of one group: "train", or "job" for those without a group.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

// The sections with a line each, and the keys that most jobs set.
std::string job_help();

// The keys of one section, or of all of them for "all". kUsage with the nearest name for another.
Result<std::string> job_section_help(const std::string& section);

// The same as the table of a page, in Markdown. For a key such as train.loss: its values, each with
// what it is.
Result<std::string> job_section_table(const std::string& section);

}  // namespace lockstep
