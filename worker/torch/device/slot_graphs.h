// Slots as CUDA graphs. A graph records forward, loss and backward of one slot. There is one for
// each of the two commonest sizes of slots, and one call enqueues it from then on.
//
// A recording must not hold values that change from slot to slot. Values and batch lie in a place
// of their own (device_inputs.h), and are copied there before each replay. Results lie in fixed
// places as well: gradients and statistics in place(), losses where DeviceLoss expects them.
//
// Merges, sums, gate and apply are not recorded, so neither a new generation nor another plan of
// buckets needs a new recording. A recording sets a mark wherever a bucket of its own plan is
// complete. A bucket of another plan leaves with the first mark after all of its gradients.
//
// INVARIANTS
//  G1 A size is recorded only after kGraphWarmUps eager slots of the same size. By then libraries
//     have chosen their algorithms, and our memory is reserved.
//  G2 After a recording fails, or there is no memory for it, no other is tried: everything runs
//     eagerly from then on, and why() says once what happened. The slot whose recording failed is
//     computed eagerly as a whole.
//
// Errors: the errors of the DeviceModule. Thread-safety: as Device.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "worker/cuda/device_module.h"
#include "worker/device/device_gradients.h"
#include "worker/engine/flat_layout.h"
#include "worker/torch/device/device_inputs.h"
#include "worker/torch/device/device_loss.h"

namespace lockstep {

inline constexpr uint32_t kGraphWarmUps = 3;
inline constexpr uint32_t kMostGraphs = 2;

// Whether slots of the job become graphs (train.graph). If they do not although graphs were asked
// for, the reason.
struct GraphChoice {
  bool wanted = false;
  std::string why_not;
};
GraphChoice choose_graphs(const wire::JobSpec& job, const TorchQueue* queue);

// Slots share a graph only if these are equal.
struct SlotSize {
  uint64_t samples = 0;
  uint32_t most_documents = 0;  // Device::most_documents()
  auto operator<=>(const SlotSize&) const = default;
};

class SlotGraphs {
 public:
  using OnReady = std::function<void(uint32_t parameter)>;
  // Enqueues a slot, from the inputs in DeviceInputs to gradients and statistics in `place`. Calls
  // back after each parameter's gradient. Takes nothing else from the host that differs from slot
  // to slot.
  using Body = std::function<Status(float* place, const OnReady&)>;

  // All arguments outlive the graphs.
  SlotGraphs(DeviceModule& module, const FlatLayout& layout, DeviceInputs& inputs,
             DeviceGradients& gradients, DeviceLoss& loss, GraphChoice choice);

  // Computes the slot of this size that DeviceInputs has sent, by a graph. False: nothing was
  // enqueued, and the caller must compute the slot eagerly. `bounds`: of the generation's buckets.
  Result<bool> launch(const SlotSize& of, const std::vector<uint64_t>& bounds, const Body& body);
  // Calls `on_ready` (may be empty) for the gradients of the last launched slot, in the order of
  // backward. Requests to DeviceGradients during the call follow the marks inside the graph.
  void announce(const OnReady& on_ready);
  // Where the gradients and statistics of the last launched slot lie.
  float* place() const { return place_; }

  // Bytes of the device's memory that graphs take besides LibTorch's memory for a slot.
  uint64_t bytes() const { return is_on_ ? layout_.buffer.statistics * sizeof(float) : 0; }

  // A note about graphs for the user. Returned once; afterwards empty.
  std::string why() { return std::exchange(why_, {}); }

 private:
  struct Graph {
    std::unique_ptr<Recording> recording;
    std::byte* inputs = nullptr;
    size_t rows = 0;                           // of its loss
    std::vector<uint64_t> bounds;              // of the plan under which it was recorded
    std::vector<std::vector<uint32_t>> ready;  // parameters, by the mark after their gradients
    // While recording.
    std::vector<uint32_t> missing;  // by bucket: gradients that have not come
    size_t left = 0;                // gradients that have not come, over all buckets
    Status marked;
  };
  struct Size {
    uint32_t eager_slots = 0;
    std::unique_ptr<Graph> graph;
  };

  Status record(Graph& graph, const Body& body);
  Status reserve(Graph& graph);
  Status run(Graph& graph, const Body& body);
  void came(Graph& graph, uint32_t parameter);

  DeviceModule& module_;
  const FlatLayout& layout_;
  DeviceInputs& inputs_;
  DeviceGradients& gradients_;
  DeviceLoss& loss_;
  bool is_on_;
  std::string why_;
  float* place_ = nullptr;
  std::map<SlotSize, Size> sizes_;  // few in a run: four by samples, and some by documents
  uint32_t recorded_ = 0;
  const Graph* launched_ = nullptr;
};

}  // namespace lockstep
