// Several data sets as one data set, with samples numbered part after part. A run on it mixes the
// parts by weight; comm/run/plan/mixture.h has the order.
//
// The first part gives shape, format, statistics and class names. Classes and vocabulary are the
// largest of all parts. The fingerprint covers the parts' fingerprints and weights.
//
// Thread-safety: as a Dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

struct WeightedDataset {
  std::unique_ptr<Dataset> dataset;
  uint32_t weight = 0;
  std::string whole = {};  // fingerprint of the data set that this is a part of, or empty
};

// kUsage, naming the files, if the parts cannot be mixed (facts.h, mixture.h), or one occurs twice.
// REQUIRES: parts is not empty.
Result<std::unique_ptr<Dataset>> mix(std::vector<WeightedDataset> parts);

}  // namespace lockstep::data
