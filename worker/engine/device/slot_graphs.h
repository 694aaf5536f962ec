// Slots as CUDA graphs: forward, loss and backward of one slot, recorded once for each of the two
// commonest slot sizes and enqueued in one call from then on. What a recording must not hold lies
// where it reads it: values and batch in a place of its own (device_inputs.h), to which they are
// copied before each replay. What is written lies in fixed places as well: gradients and statistics
// in place(), losses where DeviceLoss expects them. Merges, sums, gate and apply are not recorded,
// so neither a new generation nor another plan of buckets needs a new recording: it sets marks
// where buckets of the plan it was made under were complete, and a bucket of another plan leaves
// with the first mark behind all of its gradients.
//
// INVARIANTS
//  G1 A size is recorded only after kGraphWarmUps eager slots of it: libraries have chosen their
//     algorithms, and our memory has been reserved.
//  G2 A recording that fails is the last that is tried: everything runs eagerly from then on, and
//     why() says once what happened. The slot in which it failed is computed eagerly, whole.
//
// Errors: those of the DeviceModule. Thread-safety: as Device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/wire/job.pb.h"
#include "worker/cuda/device_module.h"
#include "worker/engine/core/flat_layout.h"
#include "worker/engine/device/device_gradients.h"
#include "worker/engine/device/device_inputs.h"
#include "worker/engine/device/device_loss.h"

namespace lockstep {

inline constexpr uint32_t kGraphWarmUps = 3;
inline constexpr uint32_t kMostGraphs = 2;

// Whether slots of the job are to be graphs (train.graph); if not, but somebody asked for it, why.
struct GraphChoice {
  bool wanted = false;
  std::string why_not;
};
GraphChoice choose_graphs(const wire::JobSpec& job, const TorchQueue* queue);

class SlotGraphs {
 public:
  using OnReady = std::function<void(uint32_t parameter)>;
  // Enqueues a slot from what DeviceInputs holds to its gradients and statistics, which go to the
  // given place, and calls back after each parameter's gradient. Takes nothing else from the host
  // that is another for the next slot.
  using Body = std::function<Status(float* place, const OnReady&)>;

  // All outlive the graphs.
  SlotGraphs(DeviceModule& module, const FlatLayout& layout, DeviceInputs& inputs,
             DeviceGradients& gradients, DeviceLoss& loss, GraphChoice choice);

  // Computes the slot of `samples` samples that DeviceInputs has sent, by a graph; false: nothing
  // was enqueued, and it has to be computed eagerly. `bounds`: of the generation's buckets.
  Result<bool> launch(uint64_t samples, const std::vector<uint64_t>& bounds, const Body& body);
  // Calls `on_ready` (may be empty) for the gradients of the slot launched last, in the order of
  // its backward. What is asked of DeviceGradients meanwhile follows the marks inside the graph.
  void announce(const OnReady& on_ready);
  // Where the gradients and statistics are of what was launched.
  float* place() const { return place_; }

  // Memory of the device that they take besides what LibTorch has for a slot.
  uint64_t bytes() const { return is_on_ ? layout_.buffer.statistics * sizeof(float) : 0; }

  // What is to be said about it, once; else empty.
  std::string why() { return std::exchange(why_, {}); }

 private:
  struct Graph {
    std::unique_ptr<Recording> recording;
    std::byte* inputs = nullptr;
    size_t rows = 0;                           // of its loss
    std::vector<uint64_t> bounds;              // of the buckets under which it was recorded
    std::vector<std::vector<uint32_t>> ready;  // parameters, by the mark behind their gradients
    // While it is recorded.
    std::vector<uint32_t> missing;  // by bucket: gradients that have not come
    size_t left = 0;                // gradients that have not come
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
  std::map<uint64_t, Size> sizes_;  // by samples: at most four in a run
  uint32_t recorded_ = 0;
  const Graph* launched_ = nullptr;
};

}  // namespace lockstep
