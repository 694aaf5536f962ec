#include "comm/collectives/nccl/communicator.h"

#include <string>
#include <utility>

namespace lockstep::nccl {
namespace {

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::init(const NcclApi& api, const ncclUniqueId& id,
                                                         uint32_t rank, uint32_t world, Wait wait) {
  std::unique_ptr<Communicator> made(new Communicator(api, std::move(wait)));
  ncclConfig_t config = non_blocking();
  const ncclResult_t result =
      api.init(&made->comm_, static_cast<int>(world), id, static_cast<int>(rank), &config);
  LOCKSTEP_RETURN_IF_ERROR(made->settle(result, "connect the GPUs", made->comm_, made->wait_));
  return made;
}

Communicator::~Communicator() {
  abort();
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(std::vector<int> excluded,
                                                           bool was_aborted, Wait wait) {
  std::unique_ptr<Communicator> made(new Communicator(api_, std::move(wait)));
  ncclConfig_t config = non_blocking();
  const ncclResult_t result =
      api_.shrink(comm_, excluded.data(), static_cast<int>(excluded.size()), &made->comm_, &config,
                  was_aborted ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
  // Until the new one exists, the old one reports the progress.
  LOCKSTEP_RETURN_IF_ERROR(settle(result, "leave out GPUs", comm_, made->wait_));
  LOCKSTEP_RETURN_IF_ERROR(
      made->settle(ncclInProgress, "connect the remaining GPUs", made->comm_, made->wait_));
  return made;
}

void Communicator::register_buffer(void* data, size_t bytes) {
  void* handle = nullptr;
  if (api_.register_buffer(comm_, data, bytes, &handle) == ncclSuccess && handle != nullptr)
    registered_.push_back(handle);
}

Status Communicator::group(const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
  ncclResult_t result = api_.group_start();
  if (result != ncclSuccess) return error(result, "begin a group of transfers");
  const ncclResult_t inside = enqueue(comm_);
  result = api_.group_end();  // also after an error: a group is open
  if (inside != ncclSuccess && inside != ncclInProgress) return error(inside, "enqueue a transfer");
  return settle(result, "enqueue transfers", comm_, wait_);
}

Status Communicator::health() const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.async_error(comm_, &state);
  if (result != ncclSuccess) return error(result, "ask for the state of the GPUs' connection");
  if (state == ncclSuccess || state == ncclInProgress) return Status::ok();
  // Whatever NCCL calls it, a peer's end looks like this from here.
  return {Code::kAborted, error(state, "exchange between GPUs").message()};
}

Status Communicator::finalize(const Wait& wait) {
  if (comm_ == nullptr) return Status::ok();
  for (void* handle : registered_) (void)api_.deregister_buffer(comm_, handle);
  registered_.clear();
  LOCKSTEP_RETURN_IF_ERROR(settle(api_.finalize(comm_), "end the GPUs' connection", comm_, wait));
  const ncclResult_t result = api_.destroy(std::exchange(comm_, nullptr));
  return result == ncclSuccess ? Status::ok() : error(result, "free the GPUs' connection");
}

void Communicator::abort() noexcept {
  if (comm_ != nullptr) (void)api_.abort(std::exchange(comm_, nullptr));
}

Status Communicator::settle(ncclResult_t result, const char* what, ncclComm_t comm,
                            const Wait& wait) const {
  const int64_t end_ms = wait.clock.monotonic_ms() + wait.deadline_ms;
  while (result == ncclInProgress) {
    if (wait.is_closed())
      return {Code::kAborted, std::string(what) + ": the generation was closed"};
    ncclResult_t state = ncclInProgress;
    const ncclResult_t asked = api_.async_error(comm, &state);
    if (asked != ncclSuccess) return error(asked, what);
    result = state;
    if (result != ncclInProgress) break;
    if (wait.clock.monotonic_ms() >= end_ms)
      return {Code::kTimeout, std::string(what) + ": not done after " +
                                  std::to_string(wait.deadline_ms) +
                                  " ms; a peer is missing, or its GPU cannot be reached"};
    wait.pause();
  }
  return result == ncclSuccess ? Status::ok() : error(result, what);
}

Status Communicator::error(ncclResult_t result, const char* what) const {
  std::string said = std::string(what) + ": " + api_.error_string(result);
  const char* more = comm_ == nullptr ? nullptr : api_.last_error(comm_);
  if (more != nullptr && *more != '\0') said += " (" + std::string(more) + ")";
  // A peer is gone: the generation is over, and this worker is still healthy.
  return {result == ncclRemoteError ? Code::kAborted : Code::kInternal, said};
}

}  // namespace lockstep::nccl
