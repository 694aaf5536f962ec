// Shows remote data in the worker's metrics.
#pragma once

#include "data/dataset/dataset.h"
#include "metrics/probes/far_data_probe.h"

namespace lockstep {

// Does nothing if both are local. `evaluation` may be null; both outlive the probe's refreshes.
void watch_far_data(const data::Dataset& train, const data::Dataset* evaluation,
                    FarDataProbe& probe);

}  // namespace lockstep
