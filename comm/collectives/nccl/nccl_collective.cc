#include "comm/collectives/nccl/nccl_collective.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/check_generation.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep::nccl {
namespace {

cudaStream_t stream_of(DeviceQueue& queue) {
  return static_cast<cudaStream_t>(queue.stream());
}

}  // namespace

NcclCollective::NcclCollective(NcclParts parts) : parts_(std::move(parts)) {
  LOCKSTEP_CHECK(parts_.node_of_rank.size() == world_size(), "one node per rank");
  reduced_ = parts_.buffer->result();
}

Status NcclCollective::begin_step(const Tag& tag, const StepMerge& merge) {
  LOCKSTEP_CHECK(merge.ranks.size() == world_size(), "one schedule per rank");
  const CallWatch::Call call(*parts_.watch, "begin a step");
  LOCKSTEP_RETURN_IF_ERROR(check(tag));
  LOCKSTEP_RETURN_IF_ERROR(finish(parts_.queue->hold_compute()));
  step_ = tag.step;
  merge_ = merge;
  operations_.begin_step(hash_of(merge));
  const std::vector<Leaf>& leaves = merge.gradients.leaves;
  alone_ = world_size() == 1 && leaves.size() == 1 && merge.control.leaves.size() == 1;
  reduced_ = alone_ ? parts_.buffer->partial(leaves[0].region) : parts_.buffer->result();
  return Status::ok();
}

Status NcclCollective::all_reduce(const Tag& tag, const ElementRange& range) {
  LOCKSTEP_CHECK(range.begin <= range.end && range.end <= parts_.buffer->layout().elements &&
                     range.begin % kCutElements == 0 && range.end % kCutElements == 0,
                 "an operation's range is cut at multiples of kCutElements");
  LOCKSTEP_CHECK(tag.step == step_ && !merge_.ranks.empty(), "all_reduce of a step not begun");
  const CallWatch::Call call(*parts_.watch, "enqueue a bucket");
  LOCKSTEP_RETURN_IF_ERROR(check(tag));
  LOCKSTEP_RETURN_IF_ERROR(finish(parts_.queue->follow_gradients()));
  operations_.add(tag, range);
  if (alone_) return Status::ok();
  return finish(parts_.numerics == Numerics::kExact ? reduce_exact(range) : reduce_fast(range));
}

Status NcclCollective::reduce_exact(const ElementRange& range) {
  const ExactPlan plan = make_exact_plan(merge_, parts_.node_of_rank, rank(), range,
                                         parts_.buffer->layout().statistics);
  LOCKSTEP_ASSIGN_OR_RETURN(float* stage, parts_.queue->stage(plan.stage_elements));
  for (const ExchangePhase& phase : plan.phases) {
    LOCKSTEP_RETURN_IF_ERROR(exchange(phase, stage));
    for (const PlannedSum& sum : phase.sums) LOCKSTEP_RETURN_IF_ERROR(add(sum, stage));
  }
  return Status::ok();
}

Status NcclCollective::exchange(const ExchangePhase& phase, float* stage) {
  const cudaStream_t stream = stream_of(*parts_.queue);
  return parts_.communicator->group([&](ncclComm_t comm) {
    ncclResult_t result = ncclSuccess;
    const auto go_on = [&] { return result == ncclSuccess || result == ncclInProgress; };
    for (const Transfer& t : phase.sends) {
      if (!go_on()) return result;
      result = parts_.api.send(at(t.place, stage), t.elements, ncclFloat32,
                               static_cast<int>(t.peer), comm, stream);
    }
    for (const Transfer& t : phase.receives) {
      if (!go_on()) return result;
      result = parts_.api.receive(at(t.place, stage), t.elements, ncclFloat32,
                                  static_cast<int>(t.peer), comm, stream);
    }
    return result;
  });
}

Status NcclCollective::add(const PlannedSum& planned, float* stage) {
  std::vector<const float*> leaves;
  for (const BufferPlace& leaf : planned.leaves) leaves.push_back(at(leaf, stage));
  return enqueue_sum(planned.ops, leaves, at(planned.out, stage), planned.elements);
}

Status NcclCollective::enqueue_sum(std::span<const int32_t> ops,
                                   std::span<const float* const> leaves, float* out,
                                   uint64_t elements) {
  DeviceSum sum;
  LOCKSTEP_RETURN_IF_ERROR(make_device_sum(ops, leaves, out, elements, &sum));
  return parts_.queue->sum(sum);
}

Status NcclCollective::reduce_fast(const ElementRange& range) {
  LOCKSTEP_RETURN_IF_ERROR(sum_own(range));
  return parts_.communicator->group([&](ncclComm_t comm) {
    float* data = parts_.buffer->result() + range.begin;
    return parts_.api.all_reduce(data, data, range.size(), ncclFloat32, ncclSum, comm,
                                 stream_of(*parts_.queue));
  });
}

// Adds this rank's partials into its result: those with a sample; in the control section, all.
Status NcclCollective::sum_own(const ElementRange& range) {
  const uint64_t cut = std::clamp(parts_.buffer->layout().statistics, range.begin, range.end);
  for (const bool is_control : {false, true}) {
    const ElementRange part =
        is_control ? ElementRange{cut, range.end} : ElementRange{range.begin, cut};
    if (part.size() == 0) continue;
    std::vector<int32_t> ops;
    std::vector<const float*> leaves;
    for (const FinalPartial& partial : merge_.ranks[rank()].partials) {
      if (partial.empty && !is_control) continue;
      ops.push_back(static_cast<int32_t>(leaves.size()));
      if (!leaves.empty()) ops.push_back(SumProgram::kAdd);
      leaves.push_back(parts_.buffer->partial(partial.region) + part.begin);
    }
    LOCKSTEP_RETURN_IF_ERROR(
        enqueue_sum(ops, leaves, parts_.buffer->result() + part.begin, part.size()));
  }
  return Status::ok();
}

float* NcclCollective::at(const BufferPlace& place, float* stage) const {
  switch (place.buffer) {
    case PlanBuffer::kPartial:
      return parts_.buffer->partial(place.region) + place.begin;
    case PlanBuffer::kStage:
      return stage + place.begin;
    case PlanBuffer::kResult:
      break;
  }
  return parts_.buffer->result() + place.begin;
}

Status NcclCollective::broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) {
  LOCKSTEP_RETURN_IF_ERROR(check(tag));
  return finish(parts_.control->broadcast(tag, data, root));
}

Status NcclCollective::all_gather(const Tag& tag, std::span<const std::byte> mine,
                                  std::span<std::byte> all) {
  LOCKSTEP_RETURN_IF_ERROR(check(tag));
  return finish(parts_.control->all_gather(tag, mine, all));
}

Status NcclCollective::barrier(const Tag& tag) {
  LOCKSTEP_RETURN_IF_ERROR(check(tag));
  return finish(parts_.control->barrier(tag));
}

Status NcclCollective::check(const Tag& tag) const {
  LOCKSTEP_RETURN_IF_ERROR(check_health());
  return check_generation(tag, parts_.generation);
}

Status NcclCollective::check_health() const {
  if (parts_.closed())
    return {Code::kAborted, "nccl: the generation was closed; wait for the next one"};
  return parts_.communicator->health();
}

Result<uint64_t> NcclCollective::wait_for_sums() {
  const CallWatch::Call call(*parts_.watch, "wait for the sums");
  LOCKSTEP_RETURN_IF_ERROR(finish(parts_.queue->mark_end()));
  const int64_t begin_ns = parts_.clock->monotonic_ns();
  for (;;) {
    const Result<bool> is_there = parts_.queue->reached_end();
    LOCKSTEP_RETURN_IF_ERROR(finish(is_there.status()));
    // Also after the work has run, and after looking: an aborted or failed transfer returns as if
    // it had finished, and a rank that aborts has closed before.
    LOCKSTEP_RETURN_IF_ERROR(finish(check_health()));
    if (*is_there) return operations_.value();
    parts_.pause(parts_.clock->monotonic_ns() - begin_ns);
  }
}

// A failed operation ends the generation for all: no rank may wait for data that will not come.
Status NcclCollective::finish(Status status) {
  if (!status.is_ok()) abort();
  return status;
}

void NcclCollective::abort() noexcept {
  parts_.closed.aborted->store(true);
  parts_.control->abort();
}

}  // namespace lockstep::nccl
