#include "comm/collectives/mpi/mpi_world.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "comm/base/hash.h"
#include "comm/collectives/mpi/mpi_collective.h"

namespace lockstep {
namespace {

using mpi::Messages;
using mpi::MpiCollective;
using mpi::World;

class WorldLane final : public MpiLane {
 public:
  WorldLane(std::shared_ptr<World> world, uint64_t id, bool fast)
      : world_(std::move(world)), id_(id), fast_(fast) {}

  uint64_t world() const override { return id_; }
  uint32_t rank() const override { return static_cast<uint32_t>(world_->rank); }
  bool is_open() const override { return !world_->over.load(std::memory_order_acquire); }

  Result<std::unique_ptr<Collective>> open(Generation generation, uint32_t rank,
                                           std::vector<int> mpi_ranks,
                                           GradientBuffer* buffer) override {
    std::lock_guard lock(mutex_);
    if (generation <= closed_ || !is_open())
      return Status(Code::kAborted, "mpi: generation " + std::to_string(generation) +
                                        " was closed; wait for the next one");
    if (buffer != nullptr && !world_->sums) world_->make_sums(buffer->layout().elements);
    auto messages = std::make_shared<Messages>(world_, std::move(mpi_ranks), rank, generation);
    newest_ = messages;
    return std::unique_ptr<Collective>(
        std::make_unique<MpiCollective>(std::move(messages), buffer, fast_));
  }

  void close(Generation through) noexcept override {
    std::lock_guard lock(mutex_);
    closed_ = std::max(closed_, through);
    const auto newest = newest_.lock();
    if (newest != nullptr && newest->generation() <= through) newest->abort();
  }

 private:
  const std::shared_ptr<World> world_;
  const uint64_t id_;
  const bool fast_;
  std::mutex mutex_;
  Generation closed_ = 0;
  std::weak_ptr<Messages> newest_;
};

// The first rank's choice.
Result<uint64_t> agree_on_an_id(MPI_Comm comm) {
  uint64_t id = 0;
  std::memcpy(&id, random_bytes(sizeof id).data(), sizeof id);
  id = std::max<uint64_t>(id, 1);
  if (MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm) == MPI_SUCCESS) return id;
  return Status(Code::kConfig, "mpi: the ranks of this MPI world do not reach each other");
}

}  // namespace

Result<std::unique_ptr<MpiLane>> open_mpi_world(MPI_Comm comm, bool fast) {
  int begun = 0;
  int threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&begun);
  if (begun != 0) MPI_Query_thread(&threads);
  if (threads < MPI_THREAD_SERIALIZED) {
    return Status(Code::kConfig,
                  "mpi: MPI does not offer MPI_THREAD_SERIALIZED; install an Open MPI with "
                  "threads, or use comm.backend: host");
  }
  auto world = std::make_shared<World>();
  world->comm = comm;
  const bool works = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS &&
                     MPI_Comm_rank(comm, &world->rank) == MPI_SUCCESS &&
                     MPI_Comm_size(comm, &world->size) == MPI_SUCCESS;
  if (!works) return Status(Code::kConfig, "mpi: the communicator cannot be used");
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t id, agree_on_an_id(comm));
  return std::unique_ptr<MpiLane>(std::make_unique<WorldLane>(std::move(world), id, fast));
}

}  // namespace lockstep
