// Shows remote data in the worker's metrics, and warns of a cache that is remote itself, or
// whose disk is full.
#pragma once

#include <string>

#include "data/dataset/dataset.h"
#include "worker/process/engine_maker.h"

namespace lockstep {

// Does nothing if both are local. `evaluation` may be null; both outlive the metrics' refreshes.
void watch_far_data(const data::Dataset& train, const data::Dataset* evaluation,
                    const std::string& cache, const EngineMakerHost& host);

}  // namespace lockstep
