// The rows of the job file's schema (job_schema.h), in the order in which they are printed: what
// the options on the fields of comm/wire/job.proto say.
//
// Thread-safety: immutable.
#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace lockstep {

// Bounds of a number; an exclusive bound is itself impossible.
struct NumberRange {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool min_exclusive = false;
  bool max_exclusive = false;
};

struct JobKey {
  std::string_view key;
  // As text; "required": must be given. What depends on other keys is in job_resolve.cc.
  std::string_view default_text;
  NumberRange range;                        // of numbers
  std::span<const std::string_view> names;  // not empty: the value is one of these
  bool identity = false;                    // defines the run: frozen at its first start
  bool shorthand = false;                   // "model: cnn" means "model: {name: cnn}"
  std::string_view meaning;
  std::string_view zero;        // how 0 is written, where it stands for something else
  std::string_view unit;        // "MiB"; empty: none
  std::string_view under;       // the model, optimizer or data that alone have the key; empty: all
  std::string_view by_machine;  // not empty: no fixed default, but what decides
  bool common = false;          // most jobs set it
  bool is_path = false;         // relative to the job file, or to the shell

  bool required() const { return default_text == "required"; }
};

std::span<const JobKey> job_keys();

}  // namespace lockstep
