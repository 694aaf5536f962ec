// Launches what follows the reduction of a step: totals, verdict, update, statistics; and the gate.
//
// All pointers are device memory, all work is enqueued on `stream` and nothing is waited for. A
// Status is about the launch; what goes wrong on the device shows at a later call (cuda_status.h).
//
// Thread-safety: any thread; operations on one ApplyState from one stream, but for launch_close().
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/apply_state.h"
#include "worker/cuda/tables.h"
#include "worker/optim/update_rules.h"

namespace lockstep::cuda {

// Totals of some blocks: as soon as the bucket that holds them is reduced.
Status launch_block_totals(const TotalsWork& work, cudaStream_t stream);

// The verdict of the step, from all blocks. `loss`: the element of the control section.
Status launch_decide(ApplyState* state, const StepRule& rule, const BlockTotals* totals,
                     uint32_t blocks, const float* loss, cudaStream_t stream);

// Unscale, clip and update in one pass, if the verdict says so.
Status launch_update(const Verdict* verdict, const UpdateChunk* chunks, uint32_t count,
                     const UpdateBuffers& buffers, const UpdateFactors& factors,
                     cudaStream_t stream);

// statistics[i] = sums[i] / slots, if the verdict says so.
Status launch_statistics(const Verdict* verdict, const float* sums, uint64_t n, uint32_t slots,
                         float* statistics, cudaStream_t stream);

// Closes the gate and writes its word as it was to `answer`. On a stream of highest priority, once
// at start too, so that its code is loaded: loading behind a spinning collective can deadlock.
Status launch_close(ApplyState* state, uint64_t* answer, cudaStream_t stream);

}  // namespace lockstep::cuda
