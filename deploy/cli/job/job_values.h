// What was said about a job, before it is checked: key -> text, with the place where it was said.
// Three sources give such a map: the YAML file, the environment and the command line; `overlay`
// puts one over the other.
//
// Invariants
//   1. Every key in a JobValues is a key of the schema; an unknown one is an error of the parser. A
//      list of maps is there as a whole, with the number of its maps, and as the keys of each.
//   2. Nothing from outside can cost more than the size of the file: aliases are never expanded,
//      depth is that of the schema.
//
// Thread-safety: values and free functions.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

struct JobValue {
  // One element unless the key is a list; of a list of maps the number of these.
  std::vector<std::string> items;
  std::string origin;      // "job.yaml:7", "LOCKSTEP_TRAIN__SLOTS", "command line"
  bool from_file = false;  // relative paths are relative to the file
};

using JobValues = std::map<std::string, JobValue, std::less<>>;

// The text of a job file; `name` is for messages ("job.yaml:7:3: ...").
Result<JobValues> parse_job_yaml(std::string_view text, const std::string& name);

// "a.b=c" each; c is text for a plain key, YAML for a list or a group (optimizer='{name: sgd}').
Result<JobValues> parse_job_overrides(std::span<const std::string> overrides);

// "NAME=value" each, as in environ. LOCKSTEP_TRAIN__MAX_STEPS sets train.max_steps. Names without
// "__" that are no key (LOCKSTEP_RANK) belong to somebody else and are left alone.
Result<JobValues> parse_job_environment(std::span<const std::string> environment);

void overlay(JobValues& lower, const JobValues& upper);

}  // namespace lockstep
