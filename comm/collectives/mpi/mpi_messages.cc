#include "comm/collectives/mpi/mpi_messages.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"

namespace lockstep::mpi {
namespace {

using host::OpDescriptor;
using host::OpKind;

// MPI promises tags up to 32767. Each generation takes two.
constexpr Generation kGenerationsApart = 16'000;

int description_tag(Generation generation) {
  return static_cast<int>(generation % kGenerationsApart) * 2;
}
int data_tag(Generation generation) {
  return description_tag(generation) + 1;
}

// MPI counts with int.
constexpr size_t kMessageBytes = kGib;

// After this many polls a wait offers the processor to others, which may be the awaited ranks.
constexpr uint32_t kPollsInARow = 200;

std::string error_text(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

}  // namespace

void World::make_sums(uint64_t elements) {
  constexpr size_t kPage = 4096;
  const size_t bytes = (elements * sizeof(float) + kPage - 1) / kPage * kPage;
  sums.reset(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
  LOCKSTEP_CHECK(sums != nullptr, "memory for the sums");
}

Messages::Messages(std::shared_ptr<World> world, std::vector<int> mpi_ranks, uint32_t rank,
                   Generation generation)
    : world_(std::move(world)),
      mpi_ranks_(std::move(mpi_ranks)),
      rank_(rank),
      generation_(generation),
      listening_(mpi_ranks_.size(), MPI_REQUEST_NULL),
      inbox_(mpi_ranks_.size()),
      arrived_(mpi_ranks_.size()) {
  listen();
}

void Messages::listen() {
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r == rank_) continue;
    start(MPI_Irecv(&inbox_[r], sizeof(OpDescriptor), MPI_BYTE, mpi_ranks_[r],
                    description_tag(generation_), world_->comm, &listening_[r]));
  }
}

void Messages::start(int error) {
  if (error == MPI_SUCCESS) return;
  failure_ = error_text(error);
  abort();
}

Status Messages::meet(const OpDescriptor& mine) {
  LOCKSTEP_RETURN_IF_ERROR(check());
  outgoing_ = mine;
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r == rank_) continue;
    start(MPI_Isend(&outgoing_, sizeof outgoing_, MPI_BYTE, mpi_ranks_[r],
                    description_tag(generation_), world_->comm, &pending_.emplace_back()));
  }
  while (!all_arrived()) {
    LOCKSTEP_RETURN_IF_ERROR(check());
    pause();
  }
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r == rank_ || inbox_[r] == mine) continue;
    abort();
    say_goodbye();
    return Status(Code::kInternal, "mpi: rank " + std::to_string(rank_) + " is in operation " +
                                       std::to_string(static_cast<uint32_t>(mine.kind)) +
                                       " of step " + std::to_string(mine.step) + ", bucket " +
                                       std::to_string(mine.bucket) + "; rank " + std::to_string(r) +
                                       " in another one");
  }
  listen();
  return Status::ok();
}

bool Messages::all_arrived() const {
  return std::all_of(listening_.begin(), listening_.end(),
                     [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
}

void Messages::send(uint32_t to, std::span<const std::byte> data) {
  for (size_t at = 0; at < data.size(); at += kMessageBytes) {
    const auto part = data.subspan(at, std::min(kMessageBytes, data.size() - at));
    start(MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, mpi_ranks_[to],
                    data_tag(generation_), world_->comm, &pending_.emplace_back()));
  }
}

void Messages::receive(uint32_t from, std::span<std::byte> data) {
  for (size_t at = 0; at < data.size(); at += kMessageBytes) {
    const auto part = data.subspan(at, std::min(kMessageBytes, data.size() - at));
    start(MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, mpi_ranks_[from],
                    data_tag(generation_), world_->comm, &pending_.emplace_back()));
  }
}

void Messages::all_reduce(std::span<float> data) {
  constexpr size_t kMost = kMessageBytes / sizeof(float);
  for (size_t at = 0; at < data.size(); at += kMost) {
    const auto part = data.subspan(at, std::min(kMost, data.size() - at));
    start(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                         MPI_SUM, world_->comm, &pending_.emplace_back()));
  }
}

Status Messages::wait() {
  while (true) {
    int done = 0;
    start(MPI_Testall(static_cast<int>(pending_.size()), pending_.data(), &done,
                      MPI_STATUSES_IGNORE));
    if (done != 0 && !is_aborted()) break;
    // Only now: after an operation is over, a peer may already have said goodbye.
    LOCKSTEP_RETURN_IF_ERROR(check());
    pause();
  }
  pending_.clear();
  return Status::ok();
}

Status Messages::check() {
  int count = 0;
  start(MPI_Testsome(static_cast<int>(listening_.size()), listening_.data(), &count,
                     arrived_.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < count; ++i) {  // MPI_UNDEFINED, for none at all, is negative
    if (inbox_[static_cast<size_t>(arrived_[static_cast<size_t>(i)])].kind == OpKind::kNone)
      abort();
  }
  if (!is_aborted()) return Status::ok();
  say_goodbye();
  return aborted_status();
}

void Messages::say_goodbye() {
  if (!goodbyes_.empty()) return;
  goodbyes_.assign(mpi_ranks_.size(), MPI_REQUEST_NULL);
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r == rank_) continue;
    // A peer that cannot hear it hears of it from the coordinator.
    (void)MPI_Isend(&goodbye_, sizeof goodbye_, MPI_BYTE, mpi_ranks_[r],
                    description_tag(generation_), world_->comm, &goodbyes_[r]);
  }
}

void Messages::pause() {
  if (++polls_ % kPollsInARow == 0) std::this_thread::yield();
}

float* Messages::staging(uint64_t elements) {
  if (staging_.size() < elements) staging_.resize(elements);
  return staging_.data();
}

void Messages::abort() noexcept {
  world_->over.store(true, std::memory_order_release);
  aborted_.store(true, std::memory_order_release);
}

Status Messages::aborted_status() const {
  return Status(Code::kAborted, failure_.empty()
                                    ? "mpi: the generation was aborted; wait for the next one"
                                    : "mpi: " + failure_);
}

void Messages::close() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;
  if (is_aborted()) {
    say_goodbye();
    world_->kept.push_back(shared_from_this());  // with the world itself, and so for good (M3)
  }
  for (MPI_Request& request : listening_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // local: cancelled, or a small message that has come
  }
}

}  // namespace lockstep::mpi
