#include "comm/collectives/mpi/mpi_context.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/collectives/mpi/mpi_collective.h"

namespace lockstep {
namespace {

using mpi::Messages;
using mpi::MpiCollective;
using mpi::World;

constexpr std::string_view kScheme = "mpi:";

// The engine's hold on the buffer; the world has another one, for messages under way.
class SharedBuffer final : public GradientBuffer {
 public:
  explicit SharedBuffer(std::shared_ptr<GradientBuffer> buffer) : buffer_(std::move(buffer)) {}
  const BufferLayout& layout() const override { return buffer_->layout(); }
  uint32_t regions() const override { return buffer_->regions(); }
  float* partial(uint32_t region) override { return buffer_->partial(region); }
  float* result() override { return buffer_->result(); }

 private:
  const std::shared_ptr<GradientBuffer> buffer_;
};

Result<int> parse_address(const std::string& address, int world_size) {
  int rank = -1;
  const std::string_view text = address;
  const bool has_scheme = text.substr(0, kScheme.size()) == kScheme;
  const char* end = text.data() + text.size();
  if (has_scheme) {
    const auto [rest, error] = std::from_chars(text.data() + kScheme.size(), end, rank);
    if (error != std::errc() || rest != end) rank = -1;
  }
  if (rank >= 0 && rank < world_size) return rank;
  return Status(Code::kConfig, "mpi: '" + address + "' is no rank of this MPI world of " +
                                   std::to_string(world_size) +
                                   "; all workers of a run need comm.backend: mpi and one mpirun");
}

class MpiContext final : public HostContext {
 public:
  MpiContext(std::shared_ptr<World> world, bool fast) : world_(std::move(world)), fast_(fast) {}

  HostAddress address() const override {
    return {"", "", std::string(kScheme) + std::to_string(world_->rank)};
  }

  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                      uint32_t regions) override {
    LOCKSTEP_CHECK(world_->buffer == nullptr, "one gradient buffer for the whole run");
    world_->buffer = make_plain_buffer(layout, regions);
    return std::unique_ptr<GradientBuffer>(std::make_unique<SharedBuffer>(world_->buffer));
  }

  // Nothing is sent yet: the first operation meets the peers. So there is nothing to wait for.
  Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t rank, MemberId,
                                              const std::vector<PeerAddress>& peers, int) override {
    LOCKSTEP_CHECK(rank < peers.size(), "the rank is one of the peers");
    std::vector<int> mpi_ranks;
    for (uint32_t r = 0; r < peers.size(); ++r) {
      int mpi_rank = world_->rank;
      if (r != rank) {
        LOCKSTEP_ASSIGN_OR_RETURN(mpi_rank, parse_address(peers[r].address.tcp, world_->size));
      }
      if (std::find(mpi_ranks.begin(), mpi_ranks.end(), mpi_rank) != mpi_ranks.end()) {
        return Status(Code::kConfig, "mpi: two members are rank " + std::to_string(mpi_rank) +
                                         " of the MPI world; they are not of one mpirun");
      }
      mpi_ranks.push_back(mpi_rank);
    }
    std::lock_guard lock(mutex_);
    if (generation <= closed_) {
      return Status(Code::kAborted, "generation " + std::to_string(generation) + " was closed");
    }
    if (world_->over.load(std::memory_order_acquire)) {
      return Status(Code::kCheckpointed,
                    "mpi: a generation of this MPI world was aborted, and no other can follow it; "
                    "a new mpirun goes on from the newest checkpoint");
    }
    auto messages = std::make_shared<Messages>(world_, std::move(mpi_ranks), rank, generation);
    newest_ = messages;
    return std::unique_ptr<Collective>(
        std::make_unique<MpiCollective>(std::move(messages), world_->buffer, fast_));
  }

  void close(Generation through) noexcept override {
    std::lock_guard lock(mutex_);
    closed_ = std::max(closed_, through);
    const auto newest = newest_.lock();
    if (newest != nullptr && newest->generation() <= through) newest->abort();
  }

 private:
  const std::shared_ptr<World> world_;
  const bool fast_;
  std::mutex mutex_;
  Generation closed_ = 0;
  std::weak_ptr<Messages> newest_;
};

}  // namespace

Result<std::unique_ptr<HostContext>> make_mpi_context(MPI_Comm comm, bool fast) {
  int begun = 0;
  int threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&begun);
  if (begun != 0) MPI_Query_thread(&threads);
  if (threads < MPI_THREAD_SERIALIZED) {
    return Status(Code::kConfig,
                  "mpi: MPI was not begun with MPI_THREAD_SERIALIZED; an Open MPI that was built "
                  "without threads cannot be used");
  }
  auto world = std::make_shared<World>();
  world->comm = comm;
  const bool works = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS &&
                     MPI_Comm_rank(comm, &world->rank) == MPI_SUCCESS &&
                     MPI_Comm_size(comm, &world->size) == MPI_SUCCESS;
  if (!works) return Status(Code::kConfig, "mpi: the communicator cannot be used");
  return std::unique_ptr<HostContext>(std::make_unique<MpiContext>(std::move(world), fast));
}

}  // namespace lockstep
