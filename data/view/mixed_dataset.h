// Several data sets as one, whose samples are numbered part after part: what a run trains on that
// mixes them by weight (data/order/mixture.h says in which order).
//
// Shape, format, statistics and names of classes are those of the first, classes and vocabulary the
// largest. The fingerprint is of those of all parts, with their weights.
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
  std::string whole = {};  // fingerprint of what it is a part of; empty: it is all there is
};

// kUsage, naming the files, where they cannot be mixed (facts.h, mixture.h), or one is there twice.
// REQUIRES: parts.
Result<std::unique_ptr<Dataset>> mix(std::vector<WeightedDataset> parts);

}  // namespace lockstep::data
