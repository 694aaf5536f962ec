// Collects what the coordinator learns about the data, and checks whether two datasets fit each
// other.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/data_facts.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

// The file that names a data set in messages.
std::string first_file(const Dataset& dataset);

// `eval`: null means no evaluation.
wire::DataFacts make_data_facts(const Dataset& train, const Dataset* eval);

// kUsage, naming a file of each, if the two data sets cannot be mixed. Their samples, the way they
// are stored, or their class names differ.
Status check_parts_fit(const Dataset& train, const Dataset& other);

// kBadData if evaluation samples have another shape, or a label that training never shows.
Status check_eval_fits_train(const Dataset& train, const Dataset& eval);

}  // namespace lockstep::data
