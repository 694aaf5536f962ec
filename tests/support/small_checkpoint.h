// A checkpoint on disk for tests of the files about it.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "comm/run/checkpoint/store.h"

namespace lockstep {

// Writes the checkpoint of member 1 in generation 1 after `step` steps. Its state is one weight,
// whose value is the number of steps.
inline Result<CheckpointInfo> write_small_checkpoint(const std::string& dir, Step step,
                                                     Lineage lineage = {}) {
  float weight = static_cast<float>(step);
  const StateTensor tensor{StateSection::kParameter,
                           "w",
                           DType::kF32,
                           {1},
                           reinterpret_cast<std::byte*>(&weight),
                           sizeof weight};
  Manifest manifest;
  manifest.resume.step = step;
  manifest.generation = manifest.member = 1;
  manifest.lineage = std::move(lineage);
  auto info = write_checkpoint(*posix_file_ops(), dir, std::span(&tensor, 1), std::move(manifest));
  EXPECT_TRUE(info.is_ok()) << info.status().message();
  return info;
}

}  // namespace lockstep
