#include "comm/collectives/mpi/mpi_over_host.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/forwarding.h"

namespace lockstep {
namespace {

// The message of a rank to its peers.
struct Standing {
  uint64_t world = 0;  // 0: in no world, or in one that is over
  uint64_t rank = 0;   // in that world
};

// Each rank's place in the one open world that all are in. Nothing if there is no such world.
std::optional<std::vector<int>> ranks_in_one_world(const std::vector<Standing>& all) {
  std::vector<int> ranks;
  std::set<uint64_t> seen;
  for (const Standing& each : all) {
    const bool is_same = each.world != 0 && each.world == all.front().world;
    if (!is_same || !seen.insert(each.rank).second) return std::nullopt;
    ranks.push_back(static_cast<int>(each.rank));
  }
  return ranks;
}

// The rank whose absence sends a generation over the host: the first rank in no open world, or in
// another than rank 0's.
uint32_t first_outside(const std::vector<Standing>& all) {
  for (uint32_t r = 0; r < all.size(); ++r)
    if (all[r].world == 0 || all[r].world != all.front().world) return r;
  return 0;
}

// The host's connections live as long as the generation, so no rank sees them end early.
class OverMpi final : public Forwarding<Collective> {
 public:
  OverMpi(std::unique_ptr<Collective> mpi, std::unique_ptr<Collective> host)
      : Forwarding(std::move(mpi)), host_(std::move(host)) {}

  void abort() noexcept override {
    inner().abort();
    host_->abort();
  }

 private:
  const std::unique_ptr<Collective> host_;
};

class MpiOverHost final : public HostContext {
 public:
  MpiOverHost(std::unique_ptr<HostContext> host, std::unique_ptr<MpiLane> lane, Logger& logger)
      : host_(std::move(host)), lane_(std::move(lane)), logger_(logger) {}

  HostAddress address() const override { return host_->address(); }

  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                      uint32_t regions) override {
    auto made = host_->make_buffer(layout, regions);
    if (made.is_ok()) buffer_ = made->get();
    return made;
  }

  Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t rank, MemberId member,
                                              const std::vector<PeerAddress>& peers,
                                              int deadline_ms) override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Collective> host,
                              host_->connect(generation, rank, member, peers, deadline_ms));
    if (peers.size() == 1) return host;  // no peer to send to
    const std::vector<Standing> mine = {standing()};
    std::vector<Standing> all(peers.size());
    LOCKSTEP_RETURN_IF_ERROR(host->all_gather({.generation = generation, .bytes = sizeof(Standing)},
                                              std::as_bytes(std::span(mine)),
                                              std::as_writable_bytes(std::span(all))));
    auto mpi_ranks = ranks_in_one_world(all);
    tell(generation, all, mpi_ranks.has_value());
    if (!mpi_ranks) return host;
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Collective> mpi,
                              lane_->open(generation, rank, std::move(*mpi_ranks), buffer_));
    return std::unique_ptr<Collective>(std::make_unique<OverMpi>(std::move(mpi), std::move(host)));
  }

  int64_t unreachable_rank() const override { return host_->unreachable_rank(); }

  void close(Generation through) noexcept override {
    host_->close(through);
    if (lane_) lane_->close(through);
  }

 private:
  Standing standing() const {
    return lane_ && lane_->is_open() ? Standing{lane_->world(), lane_->rank()} : Standing{};
  }

  void tell(Generation generation, const std::vector<Standing>& all, bool is_over_mpi) {
    const LogFields fields = {{"generation", generation}};
    if (is_over_mpi)
      return logger_.info("mpi", "gradients go over MPI, which neither authenticates nor encrypts",
                          fields);
    logger_.warn("mpi_left",
                 "gradients go over shared memory and TCP: rank " +
                     std::to_string(first_outside(all)) +
                     " is no longer in the MPI world of rank 0; with the next mpirun, gradients go "
                     "over MPI again",
                 fields);
  }

  const std::unique_ptr<HostContext> host_;
  const std::unique_ptr<MpiLane> lane_;
  Logger& logger_;
  GradientBuffer* buffer_ = nullptr;  // the caller's; null if there is none
};

}  // namespace

std::unique_ptr<HostContext> prefer_mpi(std::unique_ptr<HostContext> host,
                                        std::unique_ptr<MpiLane> lane, Logger& logger) {
  return std::make_unique<MpiOverHost>(std::move(host), std::move(lane), logger);
}

}  // namespace lockstep
