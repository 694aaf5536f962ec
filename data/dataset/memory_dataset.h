// A data set in memory, for tests and benchmarks.
// Thread-safety: a free function.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

// `pixels` holds the samples one after another. kBadData if sizes do not fit, or without samples.
Result<std::unique_ptr<Dataset>> make_memory_dataset(SampleShape shape, std::vector<uint8_t> pixels,
                                                     std::vector<uint32_t> labels);

}  // namespace lockstep::data
