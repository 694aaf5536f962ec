// The keys of a job file in the order in which they are printed. The options on the fields of
// comm/run/job/job.proto say what each row holds.
//
// Thread-safety: immutable.
#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "comm/run/job/key_values.h"

namespace lockstep {

// Bounds of a number. An exclusive bound is not itself a possible value.
struct NumberRange {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool min_exclusive = false;
  bool max_exclusive = false;
};

// The default of a key where the key "name" of its group has a certain value.
struct NamedDefault {
  std::string_view name;  // "sgd"
  std::string_view text;  // "0.1"
};

// Other programs' words for a value of a key, and what to take here.
struct ValueElsewhere {
  std::vector<std::string_view> words;
  std::string_view instead;  // a value; empty: none means the same
  std::string_view advice;   // then: a sentence
};

struct JobKey {
  std::string_view key;
  // As text; "required": the job must give it. job_resolve.cc has defaults that depend on other
  // keys.
  std::string_view default_text;
  std::span<const NamedDefault> named_defaults;
  NumberRange range;                        // of numbers
  std::span<const std::string_view> names;  // not empty: the value is one of these
  std::span<const KeyValue> values;         // these with what they are, if a table of the code does
  bool identity = false;                    // defines the run: frozen at its first start
  bool shorthand = false;                   // "model: cnn" means "model: {name: cnn}"
  std::string_view meaning;
  std::string_view zero;        // how users write 0, if 0 stands for something else
  std::string_view unit;        // "MiB"; empty: none
  std::string_view under;       // the models, optimizers or data that use the key; empty: all
  std::string_view by_machine;  // not empty: what the default depends on, instead of a fixed one
  bool common = false;          // most jobs set it
  bool is_path = false;         // relative to the job file, or to the shell
  std::span<const std::string_view> elsewhere;  // other programs' words for the key
  std::span<const ValueElsewhere> values_elsewhere;

  bool required() const { return default_text == "required"; }
};

std::span<const JobKey> job_keys();

}  // namespace lockstep
