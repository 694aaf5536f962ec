#include "comm/collectives/nccl/nccl_context.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "comm/base/limits.h"

namespace lockstep::nccl {
namespace {

constexpr uint8_t kMostBroken = 100;  // far above limits::kNcclSumFailures

Tag setup_tag(Generation generation, uint64_t bytes) {
  return {.generation = generation, .bytes = bytes};
}

void pause(int64_t waited_ns) {
  const int64_t sleep_us = sleep_before_next_look_us(waited_ns);
  if (sleep_us == 0) return std::this_thread::yield();  // NCCL's own threads may need this core
  std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
}

Result<bool> all_say(DeviceGeneration& next, bool mine) {
  const auto own = static_cast<std::byte>(mine);
  std::vector<std::byte> all(next.control->world_size());
  LOCKSTEP_RETURN_IF_ERROR(
      next.control->all_gather(setup_tag(next.generation, 1), std::span(&own, 1), all));
  return std::find(all.begin(), all.end(), std::byte{0}) == all.end();
}

}  // namespace

NcclContext::NcclContext(NcclApi api, const Clock& clock, DeviceQueue& queue,
                         GradientBuffer& buffer, Numerics numerics, bool may_map_result,
                         AdapterLinks links, const WatchOptions& watch)
    : api_(std::move(api)),
      clock_(clock),
      queue_(queue),
      buffer_(buffer),
      numerics_(numerics),
      may_map_result_(may_map_result && numerics == Numerics::kFast),
      links_(std::move(links)),
      watch_(std::make_shared<CallWatch>(watch)),
      side_([&queue] { (void)queue.use_device(); }),
      watching_(watch_, watch.told != nullptr) {}

NcclContext::~NcclContext() {
  if (!current_) return;
  side_.run([old = std::move(current_)] {
    old->stop();
    old->free();
  });
}

Result<std::unique_ptr<DeviceCollective>> NcclContext::connect(DeviceGeneration next) {
  const Closed closed{.by_session = std::move(next.is_closed)};
  const Wait wait{clock_, next.deadline_ms, closed, pause};
  watch_->begin_generation(closed.by_session);
  const CallWatch::Call call(*watch_, "connect the GPUs");
  Result<bool> is_made = false;
  count_broken_sums(next);
  while (is_made.is_ok() && !*is_made) is_made = make_and_map(next, wait);
  if (!is_made.is_ok()) {
    next.control->abort();  // peers wait there
    return is_made.status();
  }
  links_.begin();
  return std::unique_ptr<DeviceCollective>(std::make_unique<NcclCollective>(
      NcclParts{next.generation, numerics_, std::move(next.node_of_rank), next.control, current_,
                closed, &clock_, pause, api_, &queue_, &buffer_, watch_}));
}

// False: without a window it will do.
Result<bool> NcclContext::make_and_map(DeviceGeneration& next, const Wait& wait) {
  LOCKSTEP_RETURN_IF_ERROR(end_older(next, wait));
  LOCKSTEP_RETURN_IF_ERROR(make(next, wait));
  return map_result(next, wait);
}

// A rank whose window fails ends its communicator, which its peers may notice while they wait for
// theirs. Where they do not, their deadline ends connect(), and the next one wants no window.
Result<bool> NcclContext::map_result(DeviceGeneration& next, const Wait& wait) {
  if (numerics_ != Numerics::kFast) return true;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_wanted, all_say(next, may_map_result_));
  if (!is_wanted) return true;
  const Status status =
      current_->register_window(buffer_.result(), buffer_.layout().elements * sizeof(float));
  if (!status.is_ok()) {
    if (wait.is_closed()) return Status(Code::kAborted, status.message());
    may_map_result_ = false;
    LOCKSTEP_RETURN_IF_ERROR(run_aside([failed = current_] { failed->stop(); }, wait));
    if (status.code() == Code::kTimeout) return status;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_mapped, all_say(next, status.is_ok()));
  if (!is_mapped) may_map_result_ = false;
  return is_mapped;
}

// X5. A peer's death changes the members, and may look like an own failure, too.
void NcclContext::count_broken_sums(const DeviceGeneration& next) {
  if (next.members != std::exchange(summed_between_, next.members)) {
    broke_here_ = 0;
    return;
  }
  if (!current_ || broke_here_ == kMostBroken) return;
  (void)current_->health();  // a peer may have ended the wait before this rank's error was there
  std::optional<AdapterTrouble> trouble;
  if (current_->has_failed()) trouble = links_.trouble();
  if (!current_->broke_here() && !trouble) return;
  ++broke_here_;
  is_near_ = current_->broke_here() || trouble->is_near;
  trouble_ = trouble ? std::move(trouble->what) : "";
}

Status NcclContext::judge_broken_sums(const DeviceGeneration& next,
                                      std::span<const std::byte> counts) {
  const auto most = std::max_element(counts.begin(), counts.end());
  const uint32_t times = std::to_integer<uint32_t>(*most) / 2;
  if (times < limits::kNcclSumFailures) return Status::ok();
  broke_here_ = 0;
  const auto rank = static_cast<uint32_t>(most - counts.begin());
  const std::string what = "sums over NCCL failed " + std::to_string(times) +
                           " times between the same members, and each time first at rank " +
                           std::to_string(rank) + " (member " + std::to_string(next.members[rank]) +
                           ")";
  if (rank != next.control->rank()) return {Code::kAborted, what + ", which leaves"};
  return {
      Code::kInternal,
      what + ", which is this worker: it leaves; " + (trouble_.empty() ? "" : trouble_ + "; ") +
          "look at the network adapter and the kernel's log of its node; NCCL's warnings are in "
          "logs/*.nccl.txt of the run directory, or where NCCL_DEBUG_FILE says"};
}

// A worker without an older communicator comes to the barrier too.
Status NcclContext::end_older(DeviceGeneration& next, const Wait& wait) {
  if (current_) LOCKSTEP_RETURN_IF_ERROR(run_aside([old = current_] { old->stop(); }, wait));
  const auto own = static_cast<std::byte>(broke_here_ == 0 ? 0 : 2 * broke_here_ + is_near_);
  std::vector<std::byte> counts(next.control->world_size());  // and a barrier
  LOCKSTEP_RETURN_IF_ERROR(
      next.control->all_gather(setup_tag(next.generation, 1), std::span(&own, 1), counts));
  if (current_) LOCKSTEP_RETURN_IF_ERROR(run_aside([old = current_] { old->free(); }, wait));
  current_.reset();
  return judge_broken_sums(next, counts);
}

// Waits for everything that the side thread has to do.
Status NcclContext::run_aside(std::function<void()> work, const Wait& wait) {
  side_.run(std::move(work));
  const int64_t begin_ns = clock_.monotonic_ns();
  while (!side_.is_idle()) {
    const int64_t waited_ns = clock_.monotonic_ns() - begin_ns;
    if (wait.is_closed())
      return {Code::kAborted, "end the GPUs' older connection: the generation was closed"};
    if (waited_ns >= int64_t{wait.deadline_ms} * 1'000'000)
      return {Code::kInternal, "end the GPUs' older connection: NCCL has not ended it after " +
                                   std::to_string(wait.deadline_ms) +
                                   " ms; this worker has to start again"};
    wait.pause(waited_ns);
  }
  return Status::ok();
}

Status NcclContext::make(DeviceGeneration& next, const Wait& wait) {
  ncclUniqueId id = {};
  const bool makes_id = next.control->rank() == 0;
  const ncclResult_t result = makes_id ? api_.get_unique_id(&id) : ncclSuccess;
  if (result != ncclSuccess) id = {};  // no peer waits for an id that will not come
  const auto bytes = std::as_writable_bytes(std::span(&id, 1));
  LOCKSTEP_RETURN_IF_ERROR(
      next.control->broadcast(setup_tag(next.generation, bytes.size()), bytes, 0));
  if (result != ncclSuccess)
    return {Code::kInternal, std::string("make an NCCL id: ") + api_.error_string(result)};
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return {Code::kAborted, "rank 0 could not make an NCCL id"};
  current_ = std::make_shared<Communicator>(api_, wait);  // also if it fails: X3
  const Status status = current_->init(id, next.control->rank(), next.control->world_size());
  if (!status.is_ok() && !wait.is_closed()) return count_failure(next, status);
  failures_ = 0;
  return status;
}

// A peer's death changes the members. A failure that comes again and again between the same members
// (too little shared memory, an interface that is not there) would be taken for a peer's death
// every time, without end.
Status NcclContext::count_failure(const DeviceGeneration& next, const Status& why) {
  failures_ = next.members == failed_between_ ? failures_ + 1 : 1;
  failed_between_ = next.members;
  if (why.code() == Code::kInternal || failures_ < limits::kNcclConnects) return why;
  return {Code::kInternal, why.message() + "; this happened " + std::to_string(failures_) +
                               " times between the same members; NCCL's warnings in "
                               "logs/*.nccl.txt of the run directory (or where NCCL_DEBUG_FILE "
                               "says) tell the cause; or take comm.backend: host"};
}

}  // namespace lockstep::nccl
