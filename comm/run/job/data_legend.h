// The meaning of labels and values of the training data: class names, and the numbers with which
// `normalize` computes. `lockstep run` takes it from the data and keeps it in facts.pb; from there
// it goes to job.yaml, summary.json, manifests and the metadata of safetensors files. As JSON:
//
//   {"class_names": ["apple", "pear"], "columns": ["height", "weight"],
//    "normalize": {"mean": [0.286], "std": [0.353]}}
//
// A key is missing where there is nothing to say. "class_names_left_out" is a number in place of
// the names, if a run does not keep so many.
//
// Names come from folders and files of others: none is trusted. A byte that is not UTF-8 is kept as
// \xff.
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/data_facts.pb.h"

namespace lockstep {

// All names or none: above limits::kLegendNames and kLegendNameBytes only their number is kept.
void set_class_names(std::span<const std::string> names, wire::DataLegend& legend);

// The columns of a row, in their order. All or none: not above limits::kLegendChannels and
// kLegendNameBytes.
void set_columns(std::span<const std::string> names, wire::DataLegend& legend);

// Takes `stored`, and the rest from `found`: a run that goes on may read its data from other files,
// which do not say the names.
wire::DataLegend merge_legends(const wire::DataLegend& stored, const wire::DataLegend& found);

nlohmann::json legend_json(const wire::DataLegend& legend);
// kBadData if it is no legend, or larger than one may be.
Result<wire::DataLegend> legend_from_json(const nlohmann::json& json);

// Lines of a comment for a YAML file; empty for an empty legend.
std::string legend_comment(const wire::DataLegend& legend);

// For the header of a safetensors file, whose metadata are strings: each key of the JSON.
std::map<std::string, std::string> legend_metadata(const wire::DataLegend& legend);

}  // namespace lockstep
