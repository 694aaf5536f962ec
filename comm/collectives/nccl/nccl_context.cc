#include "comm/collectives/nccl/nccl_context.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "comm/base/limits.h"

namespace lockstep::nccl {
namespace {

Tag setup_tag(Generation generation, uint64_t bytes) {
  return {.generation = generation, .bytes = bytes};
}

void pause() {
  std::this_thread::sleep_for(std::chrono::microseconds(limits::kNcclPollUs));
}

}  // namespace

std::optional<std::vector<int>> left_out(const std::vector<MemberId>& before,
                                         const std::vector<MemberId>& now) {
  std::vector<int> out;
  size_t next = 0;
  for (size_t r = 0; r < before.size(); ++r) {
    if (next < now.size() && before[r] == now[next]) {
      ++next;
    } else {
      out.push_back(static_cast<int>(r));
    }
  }
  if (next != now.size() || out.empty()) return std::nullopt;
  return out;
}

NcclContext::NcclContext(NcclApi api, const Clock& clock, DeviceQueue& queue,
                         GradientBuffer& buffer, Numerics numerics)
    : api_(api), clock_(clock), queue_(queue), buffer_(buffer), numerics_(numerics) {}

NcclContext::~NcclContext() {
  retire(last_deadline_ms_);
}

Result<std::unique_ptr<DeviceCollective>> NcclContext::connect(DeviceGeneration next) {
  const Closed closed{.by_session = std::move(next.is_closed)};
  last_deadline_ms_ = next.deadline_ms;
  auto made = make(next, closed);
  retire(next.deadline_ms);
  LOCKSTEP_RETURN_IF_ERROR(made.status());
  std::shared_ptr<Communicator> communicator = std::move(made).value();
  const size_t bytes = buffer_.layout().elements * sizeof(float);
  for (uint32_t region = 0; region < buffer_.regions(); ++region)
    communicator->register_buffer(buffer_.partial(region), bytes);
  communicator->register_buffer(buffer_.result(), bytes);
  current_ = Current{std::move(next.members), next.generation, communicator, closed};
  return std::unique_ptr<DeviceCollective>(std::make_unique<NcclCollective>(
      NcclParts{next.generation, numerics_, std::move(next.node_of_rank), next.control,
                std::move(communicator), closed, pause, api_, &queue_, &buffer_}));
}

Result<std::unique_ptr<Communicator>> NcclContext::make(DeviceGeneration& next,
                                                        const Closed& closed) {
  const Wait wait = wait_for(closed, next.deadline_ms);
  const auto excluded = current_ ? left_out(current_->members, next.members) : std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool shrinks, all_can_shrink(next, excluded.has_value()));
  if (shrinks) return current_->communicator->shrink(*excluded, current_->closed(), wait);
  ncclUniqueId id = {};
  const bool makes_id = next.control->rank() == 0;
  const ncclResult_t result = makes_id ? api_.get_unique_id(&id) : ncclSuccess;
  if (result != ncclSuccess) id = {};  // nobody waits for an id that will not come
  const auto bytes = std::as_writable_bytes(std::span(&id, 1));
  LOCKSTEP_RETURN_IF_ERROR(
      next.control->broadcast(setup_tag(next.generation, bytes.size()), bytes, 0));
  if (result != ncclSuccess)
    return Status(Code::kInternal, std::string("make an NCCL id: ") + api_.error_string(result));
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return Status(Code::kAborted, "rank 0 could not make an NCCL id");
  return Communicator::init(api_, id, next.control->rank(), next.control->world_size(), wait);
}

Result<bool> NcclContext::all_can_shrink(DeviceGeneration& next, bool can) const {
  const uint64_t mine = can ? current_->generation : 0;
  std::vector<uint64_t> all(next.control->world_size());
  LOCKSTEP_RETURN_IF_ERROR(next.control->all_gather(setup_tag(next.generation, sizeof mine),
                                                    std::as_bytes(std::span(&mine, 1)),
                                                    std::as_writable_bytes(std::span(all))));
  return mine != 0 &&
         std::all_of(all.begin(), all.end(), [&](uint64_t each) { return each == mine; });
}

void NcclContext::retire(int deadline_ms) {
  if (!current_) return;
  side_.run([old = std::move(*current_), wait = wait_for({}, deadline_ms)] {
    if (old.closed() || !old.communicator->finalize(wait).is_ok()) old.communicator->abort();
  });
  current_.reset();
}

Wait NcclContext::wait_for(const Closed& closed, int deadline_ms) const {
  return {clock_, deadline_ms, closed, pause};
}

}  // namespace lockstep::nccl
