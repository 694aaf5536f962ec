#include "worker/torch/device/slot_graphs.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/run/job/graph_rule.h"
#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"

namespace lockstep {
namespace {

// The bucket b with the elements [bounds[b], bounds[b + 1]).
size_t bucket_of(uint64_t element, const std::vector<uint64_t>& bounds) {
  const auto after = std::upper_bound(bounds.begin(), bounds.end(), element);
  return static_cast<size_t>(after - bounds.begin()) - 1;
}

}  // namespace

GraphChoice choose_graphs(const wire::JobSpec& job, const TorchQueue* queue) {
  const std::string& asked = job.train().graph();
  const auto no = [&](const std::string& why) {
    return GraphChoice{false, asked == "on" ? "slots run without CUDA graphs: " + why : ""};
  };
  if (!wants_graphs(job)) return {};
  if (const std::string why = why_no_graphs(job); !why.empty()) return no(why);
  if (queue == nullptr || !queue->records()) return no("this device records no graphs");
  return {true, ""};
}

SlotGraphs::SlotGraphs(DeviceModule& module, const FlatLayout& layout, DeviceInputs& inputs,
                       DeviceGradients& gradients, DeviceLoss& loss, GraphChoice choice)
    : module_(module),
      layout_(layout),
      inputs_(inputs),
      gradients_(gradients),
      loss_(loss),
      is_on_(choice.wanted),
      why_(std::move(choice.why_not)) {}

Result<bool> SlotGraphs::launch(const SlotSize& of, const std::vector<uint64_t>& bounds,
                                const Body& body) {
  launched_ = nullptr;
  if (!is_on_) return false;
  Size& size = sizes_[of];
  if (size.graph == nullptr) {
    if (size.eager_slots < kGraphWarmUps) {
      ++size.eager_slots;
      return false;
    }
    if (recorded_ == kMostGraphs) return false;
    auto graph = std::make_unique<Graph>();
    graph->bounds = bounds;
    if (const Status status = record(*graph, body); !status.is_ok()) {
      is_on_ = false;
      why_ = "from now on, slots run without CUDA graphs: " + status.message();
      return false;
    }
    ++recorded_;
    size.graph = std::move(graph);
  } else {
    LOCKSTEP_RETURN_IF_ERROR(inputs_.move_to(size.graph->inputs));
  }
  LOCKSTEP_RETURN_IF_ERROR(size.graph->recording->replay());
  launched_ = size.graph.get();
  loss_.expect(launched_->rows);
  gradients_.from_graph(place_);
  return true;
}

// Before the recording, which may ask for no memory and make no events.
Status SlotGraphs::reserve(Graph& graph) {
  if (place_ == nullptr)
    LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &place_, layout_.buffer.statistics));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &graph.inputs, inputs_.bytes()));
  for (uint32_t i = 0; i < kRecordedMarks; ++i)
    LOCKSTEP_RETURN_IF_ERROR(module_.mark(kFirstRecorded + i, DeviceLane::kCompute));
  return Status::ok();
}

Status SlotGraphs::record(Graph& graph, const Body& body) {
  if (const Status status = reserve(graph); !status.is_ok()) {
    module_.release(graph.inputs);
    return status;
  }
  // From here on also an eager slot reads its inputs there, so a failed recording keeps the memory.
  LOCKSTEP_RETURN_IF_ERROR(inputs_.move_to(graph.inputs));
  LOCKSTEP_ASSIGN_OR_RETURN(graph.recording, module_.torch_queue()->record([this, &graph, body] {
    return run(graph, body);
  }));
  graph.rows = loss_.rows();
  return Status::ok();
}

// Runs the slot, with a mark after each bucket's last gradient.
Status SlotGraphs::run(Graph& graph, const Body& body) {
  graph.missing.assign(graph.bounds.size() - 1, 0);
  graph.left = 0;
  for (size_t i = 0; i < layout_.parameters.size(); ++i) {
    if (!layout_.is_trained(i)) continue;
    ++graph.missing[bucket_of(layout_.parameters[i].begin, graph.bounds)];
    ++graph.left;
  }
  graph.ready.assign(1, {});
  graph.marked = Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(body(place_, [this, &graph](uint32_t p) { came(graph, p); }));
  LOCKSTEP_CHECK(graph.left == 0, "a slot has every gradient");
  return graph.marked;
}

void SlotGraphs::came(Graph& graph, uint32_t parameter) {
  graph.ready.back().push_back(parameter);
  const size_t bucket = bucket_of(layout_.parameters[parameter].begin, graph.bounds);
  const bool ends_bucket = --graph.missing[bucket] == 0;
  const bool is_last = --graph.left == 0;
  // One mark is kept for the last gradient.
  if (!is_last && (!ends_bucket || graph.ready.size() == kRecordedMarks)) return;
  const auto mark = static_cast<uint32_t>(kFirstRecorded + graph.ready.size() - 1);
  if (graph.marked.is_ok()) graph.marked = module_.mark(mark, DeviceLane::kCompute);
  if (!is_last) graph.ready.emplace_back();
}

void SlotGraphs::announce(const OnReady& on_ready) {
  LOCKSTEP_CHECK(launched_ != nullptr, "nothing was launched");
  for (size_t i = 0; on_ready && i < launched_->ready.size(); ++i) {
    gradients_.reached(static_cast<uint32_t>(kFirstRecorded + i));
    for (const uint32_t parameter : launched_->ready[i]) on_ready(parameter);
  }
  gradients_.reached(std::nullopt);  // the statistics come after the gradients
}

}  // namespace lockstep
