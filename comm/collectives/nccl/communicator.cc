#include "comm/collectives/nccl/communicator.h"

#include <string>
#include <utility>

namespace lockstep::nccl {
namespace {

constexpr int kRevokeDefault = 0;  // NCCL_REVOKE_DEFAULT, which older headers lack

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = limits::kNcclBlocks;
  return config;
}

// Whether only this worker can have caused the result. A peer that dies while ranks connect, at
// init or at the first operation with it, may look like everything else: its socket breaks (system
// error), its answer is no answer (internal error), or NCCL finds out (remote error).
bool is_own(ncclResult_t result) {
  return result == ncclUnhandledCudaError || result == ncclInvalidArgument ||
         result == ncclInvalidUsage;
}

}  // namespace

Communicator::~Communicator() {
  stop();
  free();
}

Status Communicator::init(const ncclUniqueId& id, uint32_t rank, uint32_t world) {
  ncclConfig_t config = non_blocking();
  const ncclResult_t result =
      api_.init(&comm_, static_cast<int>(world), id, static_cast<int>(rank), &config);
  LOCKSTEP_RETURN_IF_ERROR(settle(result, "connect the GPUs"));
  state_ = State::kReady;
  return Status::ok();
}

// NCCL writes the window's handle while the call is in progress.
Status Communicator::register_window(void* data, size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(health());
  has_loose_group_ = true;
  const Status status =
      settle(api_.register_window(comm_, data, bytes, &window_, NCCL_WIN_COLL_SYMMETRIC),
             "map the memory for sums on all GPUs of a node");
  has_loose_group_ = !status.is_ok();
  return status;
}

Status Communicator::group(const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
  LOCKSTEP_RETURN_IF_ERROR(health());
  ncclResult_t result = api_.group_start();
  if (result != ncclSuccess) return error(result, "begin a group of transfers");
  has_loose_group_ = true;
  const ncclResult_t inside = enqueue(comm_);
  result = api_.group_end();  // also after an error: a group is open
  if (inside != ncclSuccess && inside != ncclInProgress) return error(inside, "enqueue a transfer");
  const Status status = settle(result, "enqueue transfers");
  has_loose_group_ = !status.is_ok();
  return status;
}

Status Communicator::health() {
  if (state_ != State::kReady) return {Code::kAborted, "the GPUs' connection has ended"};
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.async_error(comm_, &state);
  if (result != ncclSuccess) return error(result, "ask for the state of the GPUs' connection");
  if (state == ncclSuccess || state == ncclInProgress) return Status::ok();
  has_broken_ = true;
  if (state == ncclSystemError) broke_here_ = true;
  return error(state, "exchange between GPUs");
}

// Revoking keeps what peers may have mapped until all ranks of the node have stopped. Aborting
// frees it at once; the driver keeps what a peer has mapped until the peer unmaps it.
void Communicator::stop() noexcept {
  if (comm_ == nullptr || state_ == State::kStopped || state_ == State::kBroken) return;
  if (state_ != State::kReady || api_.revoke == nullptr || has_loose_group_) {
    state_ = State::kStopped;
    (void)api_.abort(std::exchange(comm_, nullptr));
    return;
  }
  ncclResult_t state = api_.revoke(comm_, kRevokeDefault);
  const int64_t begin_ns = wait_.clock.monotonic_ns();
  while (state == ncclInProgress && api_.async_error(comm_, &state) == ncclSuccess) {
    if (state == ncclInProgress) wait_.pause(wait_.clock.monotonic_ns() - begin_ns);
  }
  state_ = state == ncclSuccess ? State::kStopped : State::kBroken;
}

// NCCL refuses to destroy a communicator in which something has failed.
void Communicator::free() noexcept {
  if (comm_ == nullptr) return;
  if (state_ == State::kStopped) {
    if (window_ != nullptr) (void)api_.deregister_window(comm_, std::exchange(window_, nullptr));
    (void)api_.destroy(std::exchange(comm_, nullptr));
  } else {
    (void)api_.abort(std::exchange(comm_, nullptr));
  }
}

Status Communicator::settle(ncclResult_t result, const char* what) const {
  const int64_t begin_ns = wait_.clock.monotonic_ns();
  while (result == ncclInProgress) {
    if (wait_.is_closed())
      return {Code::kAborted, std::string(what) + ": the generation was closed"};
    const ncclResult_t asked = api_.async_error(comm_, &result);
    if (asked != ncclSuccess) return error(asked, what);
    if (result != ncclInProgress) break;
    const int64_t waited_ns = wait_.clock.monotonic_ns() - begin_ns;
    if (waited_ns >= int64_t{wait_.deadline_ms} * 1'000'000)
      return {Code::kTimeout, std::string(what) + ": not done after " +
                                  std::to_string(wait_.deadline_ms) +
                                  " ms; a peer is missing, or its GPU cannot be reached"};
    wait_.pause(waited_ns);
  }
  return result == ncclSuccess ? Status::ok() : error(result, what);
}

Status Communicator::error(ncclResult_t result, const char* what) const {
  std::string said = std::string(what) + ": " + api_.error_string(result);
  const char* more = comm_ == nullptr ? nullptr : api_.last_error(comm_);
  if (more != nullptr && *more != '\0') said += " (" + std::string(more) + ")";
  return {is_own(result) ? Code::kInternal : Code::kAborted, said};
}

}  // namespace lockstep::nccl
