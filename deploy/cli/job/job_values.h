// The values that the user gave for job keys, unchecked: key -> text and where it was given. The
// YAML file, the environment and the command line each give such a map; overlay() puts one over
// another.
//
// Invariants
//   1. Every key in a JobValues is a key of the schema; the parsers refuse others. A list of maps
//      has an entry of its own, with the number of maps, in addition to the keys of each map.
//   2. Parsing costs no more than the size of the text: aliases are never expanded, and nesting is
//      at most as deep as the schema.
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
  // One element unless the key is a list. A list of maps has one: the number of its maps.
  std::vector<std::string> items;
  std::string origin;      // "job.yaml:7", "LOCKSTEP_TRAIN__SLOTS", "command line"
  bool from_file = false;  // relative paths are relative to the file
};

using JobValues = std::map<std::string, JobValue, std::less<>>;

// Parses a job file. `name` is for messages ("job.yaml:7:3: ...").
Result<JobValues> parse_job_yaml(std::string_view text, const std::string& name);

// "a.b=c" each; c is text for a plain key, YAML for a list or a group (optimizer='{name: sgd}').
Result<JobValues> parse_job_overrides(std::span<const std::string> overrides);

// "NAME=value" each, as in environ. LOCKSTEP_TRAIN__MAX_STEPS sets train.max_steps. Ignores names
// without "__" that are no key, such as LOCKSTEP_RANK.
Result<JobValues> parse_job_environment(std::span<const std::string> environment);

void overlay(JobValues& lower, const JobValues& upper);

}  // namespace lockstep
