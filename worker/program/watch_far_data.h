// Data that are far away, as the worker's metrics show them.
#pragma once

#include "data/dataset/dataset.h"
#include "metrics/probes/far_data_probe.h"

namespace lockstep {

// Nothing where neither is far. `evaluation` may be null; both must outlive the probe's refreshes.
void watch_far_data(const data::Dataset& train, const data::Dataset* evaluation,
                    FarDataProbe& probe);

}  // namespace lockstep
