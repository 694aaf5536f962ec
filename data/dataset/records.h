// The logical records of a dataset of fixed-size samples, wherever they lie. Fingerprint and
// statistics are computed over them.
//
// Thread-safety: a value over memory that nobody writes.
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
  // Where the samples lie, file after file; with what lies between them.
  std::vector<std::span<const uint8_t>> content;
  // Of sample i: its shape.stored_bytes(), somewhere in `content`, and its label.
  std::function<const uint8_t*(uint64_t)> sample;
  std::function<uint32_t(uint64_t)> label;
};

}  // namespace lockstep::data
