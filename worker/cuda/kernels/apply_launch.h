// Launches the kernels that follow the reduction of a step: totals, verdict, update, statistics;
// and the gate.
//
// All pointers are device memory. All work is enqueued on `stream`, and no call waits. A Status is
// about the launch; errors on the device show at a later call (cuda_status.h).
//
// Thread-safety: any thread. All operations on one ApplyState use one stream, except
// launch_close().
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/kernels/apply_state.h"
#include "worker/cuda/kernels/tables.h"
#include "worker/optim/update_rules.h"

namespace lockstep::cuda {

// Totals of some blocks. Launch it as soon as the bucket that holds the blocks is reduced.
Status launch_block_totals(const TotalsWork& work, cudaStream_t stream);

// The verdict of the step, from all blocks. `control`: the control section.
Status launch_decide(ApplyState* state, const StepRule& rule, const BlockTotals* totals,
                     uint32_t blocks, const float* control, cudaStream_t stream);

// Unscales, clips and updates in one pass, if the verdict says so. `keeps_zeros`:
// OptimizerStep::keeps_zeros.
Status launch_update(const StepVerdict* verdict, const UpdateChunk* chunks, uint32_t count,
                     const UpdateBuffers& buffers, const UpdateFactors& factors, bool keeps_zeros,
                     cudaStream_t stream);

// One step of the running average of `n` parameters (rules/average.h), if the verdict says so.
Status launch_average(const StepVerdict* verdict, const float* params, uint64_t n, float rate,
                      float* average, cudaStream_t stream);

// statistics[i] = sums[i] / slots, if the verdict says so.
Status launch_statistics(const StepVerdict* verdict, const float* sums, uint64_t n, uint32_t slots,
                         float* statistics, cudaStream_t stream);

// Closes the gate, and writes the gate's previous word to `answer`. Use a stream of highest
// priority. Launch it once at start too, so that its code is loaded: loading code while a
// collective spins can deadlock.
Status launch_close(ApplyState* state, uint64_t* answer, cudaStream_t stream);

}  // namespace lockstep::cuda
