// One batch as a loader delivers it: a slot's micro-batch of a step.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "data/dataset/sample_shape.h"
#include "data/transform/batch_mix.h"

namespace lockstep::data {

struct Batch {
  Step step = 0;
  uint32_t slot = 0;
  uint32_t samples = 0;  // B, never 0
  // One of these three is not null.
  const float* images = nullptr;    // (B, C, H, W), or (B, C) of rows, transformed
  const uint8_t* stored = nullptr;  // (B, C, H, W), as LoaderOptions::form may ask
  const int64_t* tokens =
      nullptr;  // (B, T), also of rows of ids, or (B, 2, T) with positions after the tokens
  const int64_t* labels = nullptr;  // (B) of images, (B, T) of sequences
  MixShares shares;                 // the rest belongs to the sample before (batch_mix.h)
  uint64_t digest = 0;              // comm/run/plan/digest.h
  SampleShape shape;                // the pointers are 64-byte aligned

  const void* inputs() const {
    if (stored != nullptr) return stored;
    return tokens != nullptr ? static_cast<const void*>(tokens) : images;
  }
};

}  // namespace lockstep::data
