// The messages between the ranks of one generation over MPI: for every operation a description to
// all (C4), then the data. Nothing here blocks in MPI: waits poll, and check the abort flag.
//
// INVARIANTS
//  M1 All ranks run operations in the same order, and one ends before the next begins. So there is
//     at most one description under way between any two ranks, and messages need no number.
//  M2 A generation has MPI tags of its own, so a leftover receive of an older generation never
//     takes a message of a newer one.
//  M3 MPI cannot take back operations under way. So it writes only into memory of the world and of
//     the generation, which stays allocated for good after an abort. It never writes into the
//     gradient buffer, which the run goes on with. After an abort the world makes no further
//     generation.
//
// Errors: kAborted after abort() was called, here or (seen while waiting) on a peer, or if MPI
// itself fails. kInternal for operations that do not match.
//
// Thread-safety: one thread at a time, which must be allowed to call MPI. abort() and is_aborted()
// from any thread.
#pragma once

// Uses MPI's C interface only. Its C++ one is deprecated and warns.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "comm/collectives/host/flags.h"

namespace lockstep::mpi {

struct FreeFloats {
  void operator()(float* data) const { std::free(data); }
};

// State that all generations of a process share.
struct World {
  void make_sums(uint64_t elements);

  MPI_Comm comm = MPI_COMM_NULL;  // used by nothing else
  int rank = 0;
  int size = 0;
  std::unique_ptr<float[], FreeFloats> sums;  // of all elements; null if there is no buffer
  std::atomic<bool> over{false};              // a generation was aborted (M3)
  std::vector<std::shared_ptr<void>> kept;    // of aborted generations
};

class Messages : public std::enable_shared_from_this<Messages> {
 public:
  // mpi_ranks[r]: the place of rank r of the generation in world->comm.
  Messages(std::shared_ptr<World> world, std::vector<int> mpi_ranks, uint32_t rank,
           Generation generation);
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t world_size() const { return static_cast<uint32_t>(mpi_ranks_.size()); }
  Generation generation() const { return generation_; }
  bool is_whole_world() const { return static_cast<int>(mpi_ranks_.size()) == world_->size; }

  // Takes the descriptions that have come. After an abort, says goodbye to all; a goodbye that has
  // come is also an abort.
  Status check();

  // Returns once all ranks are in this same operation.
  Status meet(const host::OpDescriptor& mine);

  // Data of the operation, in the same order on both sides. Done after the next wait().
  void send(uint32_t to, std::span<const std::byte> data);
  void receive(uint32_t from, std::span<std::byte> data);
  // Sums over all ranks of world->comm, in place, in MPI's order.
  // REQUIRES: is_whole_world().
  void all_reduce(std::span<float> data);
  Status wait();

  // The place for sums; null if the worker has no gradient buffer.
  float* sums() const { return world_->sums.get(); }

  // Memory for received data; valid until the next call.
  float* staging(uint64_t elements);

  void abort() noexcept;
  bool is_aborted() const { return aborted_.load(std::memory_order_acquire); }
  Status aborted_status() const;

  // Ends operations. The last call.
  void close();

 private:
  void listen();
  void start(int error);  // keeps the error of an MPI call that started something
  void say_goodbye();
  bool all_arrived() const;
  void pause();

  const std::shared_ptr<World> world_;
  const std::vector<int> mpi_ranks_;
  const uint32_t rank_;
  const Generation generation_;

  std::vector<MPI_Request> listening_;  // by rank; null once its description has come
  std::vector<host::OpDescriptor> inbox_;
  std::vector<int> arrived_;
  std::vector<MPI_Request> pending_;
  host::OpDescriptor outgoing_;
  const host::OpDescriptor goodbye_;  // kNone: the sender has aborted
  std::vector<MPI_Request> goodbyes_;
  std::vector<float> staging_;
  uint32_t polls_ = 0;

  std::atomic<bool> aborted_{false};
  std::string failure_;  // of MPI itself
};

}  // namespace lockstep::mpi
