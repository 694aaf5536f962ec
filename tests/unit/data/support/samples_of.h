// Asks a data set for one sample at a time. REQUIRES: it has such samples.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

inline const uint8_t* stored_sample(const Dataset& dataset, uint64_t i) {
  const auto [from, number] = dataset.as<StoredSamples>().value().at(i);
  return from.sample(number);
}

inline uint32_t label_of(const Dataset& dataset, uint64_t i) {
  const auto [from, number] = dataset.as<Labels>().value().at(i);
  return from.label(number);
}

inline Status read_encoded(const Dataset& dataset, uint64_t i, std::vector<uint8_t>& out) {
  const auto [from, number] = dataset.as<EncodedImages>().value().at(i);
  return from.read_encoded(number, out);
}

inline uint64_t counted_labels(const Dataset& dataset, uint64_t i) {
  const auto [from, number] = dataset.as<Sequences>().value().at(i);
  return from.counted_labels(number);
}

}  // namespace lockstep::data
