// What the coordinator is told about the data, and whether two datasets belong together.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

// The file that stands for a data set in messages.
std::string first_file(const Dataset& dataset);

// `eval` may be null: no evaluation.
wire::DataFacts make_data_facts(const Dataset& train, const Dataset* eval);

// kUsage, naming a file of both, where data sets cannot be mixed: samples that are not alike, or
// not stored alike, or classes with other names.
Status check_parts_fit(const Dataset& train, const Dataset& other);

// kBadData when evaluation samples have another shape, or a label that training never shows.
Status check_eval_fits_train(const Dataset& train, const Dataset& eval);

}  // namespace lockstep::data
