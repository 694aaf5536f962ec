// The logical records of a dataset of fixed-size samples, wherever they lie. Lockstep computes
// fingerprint and statistics over the records.
//
// Thread-safety: a value over memory that does not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/sample_shape.h"

namespace lockstep::data {

struct Records {
  std::string format;
  uint64_t samples = 0;
  SampleShape shape;
  // Where the samples lie, file after file, including the bytes between samples.
  std::vector<std::span<const uint8_t>> content;
  // The shape.stored_bytes() bytes of sample i, somewhere in `content`, and its label.
  std::function<const uint8_t*(uint64_t)> sample;
  std::function<uint32_t(uint64_t)> label;
};

}  // namespace lockstep::data
