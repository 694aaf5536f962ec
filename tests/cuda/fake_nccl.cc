#include "tests/cuda/fake_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace {

// All ranks of one communicator.
struct Ring {
  explicit Ring(int ranks) : words(static_cast<size_t>(ranks)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> wire;
  std::vector<std::deque<std::vector<std::byte>>> words;  // by rank: of every all-reduce so far
};

std::mutex rings_mutex;
std::map<std::string, std::shared_ptr<Ring>> rings;  // by unique id, or by parent and generation
int ids_made = 0;

}  // namespace

struct ncclComm {
  std::shared_ptr<Ring> ring;
  std::string name;
  int rank = 0;
  int ranks = 0;
  int looks_left = 0;
  int shrunk = 0;
  size_t reduced = 0;  // all-reduces of this rank so far
};

namespace lockstep::testing {
namespace {

struct Op {
  std::function<void()> begin;
  std::function<void()> end;
};
thread_local std::vector<Op> group;
thread_local ncclComm_t group_comm = nullptr;

ncclResult_t in_progress(ncclComm_t comm) {
  comm->looks_left = FakeNccl::get().looks_until_ready;
  return ncclInProgress;
}

std::shared_ptr<Ring> ring_of(const std::string& name, int ranks) {
  std::lock_guard lock(rings_mutex);
  auto& ring = rings[name];
  if (!ring) ring = std::make_shared<Ring>(ranks);
  return ring;
}

ncclComm_t make_comm(const std::string& name, int rank, int ranks) {
  auto* comm = new ncclComm{ring_of(name, ranks), name, rank, ranks};
  comm->looks_left = FakeNccl::get().looks_until_ready;
  return comm;
}

ncclResult_t get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  if (FakeNccl::get().makes_no_id) return ncclSystemError;
  std::lock_guard lock(rings_mutex);
  std::snprintf(id->internal, sizeof id->internal, "id %d", ++ids_made);
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;
  FakeNccl::get().note(rank, std::string("init ") + id.internal);
  if (rank == FakeNccl::get().cannot_init) return ncclSystemError;
  *comm = make_comm(id.internal, rank, ranks);
  return ncclInProgress;
}

ncclResult_t shrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made,
                    ncclConfig_t* config, int flags) {
  if (config->blocking != 0) return ncclInvalidUsage;
  std::string what = flags == NCCL_SHRINK_ABORT ? "shrink abort" : "shrink";
  int rank = comm->rank;
  for (int i = 0; i < count; ++i) {
    what += " " + std::to_string(excluded[i]);
    rank -= excluded[i] < comm->rank ? 1 : 0;
  }
  FakeNccl::get().note(comm->rank, what);
  *made = make_comm(comm->name + "/" + std::to_string(++comm->shrunk), rank, comm->ranks - count);
  return in_progress(comm);
}

ncclResult_t finalize(ncclComm_t comm) {
  FakeNccl::get().note(comm->rank, "finalize");
  return in_progress(comm);
}

ncclResult_t destroy(ncclComm_t comm) {
  FakeNccl::get().note(comm->rank, "destroy");
  delete comm;
  return ncclSuccess;
}

ncclResult_t abort_comm(ncclComm_t comm) {
  FakeNccl::get().note(comm->rank, "abort");
  delete comm;
  return ncclSuccess;
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t* state) {
  FakeNccl& fake = FakeNccl::get();
  if (comm->looks_left > 0 && comm->rank != fake.never_ready) --comm->looks_left;
  *state = comm->looks_left == 0 ? fake.outcome : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t register_buffer(ncclComm_t comm, void* data, size_t, void** handle) {
  FakeNccl::get().note(comm->rank, "register");
  *handle = data;
  return ncclSuccess;
}

ncclResult_t deregister_buffer(ncclComm_t comm, void*) {
  FakeNccl::get().note(comm->rank, "deregister");
  return ncclSuccess;
}

std::vector<std::byte> bytes_of(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

ncclResult_t send(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  group_comm = comm;
  group.push_back({[=] {
                     std::lock_guard lock(comm->ring->mutex);
                     comm->ring->wire[{comm->rank, peer}].push_back(bytes_of(data, count * 4));
                     comm->ring->changed.notify_all();
                   },
                   [] {}});
  return ncclSuccess;
}

ncclResult_t receive(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  group_comm = comm;
  group.push_back({[] {},
                   [=] {
                     std::unique_lock lock(comm->ring->mutex);
                     auto& queue = comm->ring->wire[{peer, comm->rank}];
                     comm->ring->changed.wait(lock, [&] { return !queue.empty(); });
                     if (comm->rank == FakeNccl::get().gets_wrong_bit)
                       queue.front()[0] ^= std::byte{1};
                     std::memcpy(data, queue.front().data(), count * 4);
                     queue.pop_front();
                   }});
  return ncclSuccess;
}

template <typename T>
void combine(T* out, const std::byte* in, size_t count, bool is_max) {
  for (size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, in + i * sizeof(T), sizeof x);
    out[i] = is_max ? std::max(out[i], x) : out[i] + x;
  }
}

ncclResult_t all_reduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  const bool is_max = type == ncclUint64 && op == ncclMax;
  if (!is_max && !(type == ncclFloat32 && op == ncclSum)) return ncclInvalidArgument;
  group_comm = comm;
  const size_t bytes = count * (is_max ? 8 : 4);
  const size_t turn = comm->reduced++;
  group.push_back({[=] {
                     std::lock_guard lock(comm->ring->mutex);
                     comm->ring->words[static_cast<size_t>(comm->rank)].push_back(
                         bytes_of(in, bytes));
                     comm->ring->changed.notify_all();
                   },
                   [=] {
                     Ring& ring = *comm->ring;
                     std::unique_lock lock(ring.mutex);
                     ring.changed.wait(lock, [&] {
                       return std::all_of(ring.words.begin(), ring.words.end(),
                                          [&](const auto& w) { return w.size() > turn; });
                     });
                     std::memset(out, 0, bytes);
                     for (const auto& words : ring.words) {
                       if (is_max)
                         combine(static_cast<uint64_t*>(out), words[turn].data(), count, true);
                       else
                         combine(static_cast<float*>(out), words[turn].data(), count, false);
                     }
                   }});
  return ncclSuccess;
}

ncclResult_t group_start() {
  group.clear();
  group_comm = nullptr;
  return ncclSuccess;
}

ncclResult_t group_end() {
  const std::vector<Op> ops = std::move(group);
  group.clear();
  for (const Op& op : ops) op.begin();
  for (const Op& op : ops) op.end();
  return group_comm == nullptr ? ncclSuccess : in_progress(group_comm);
}

const char* error_string(ncclResult_t) {
  return "unhandled system error";
}

const char* last_error(ncclComm_t) {
  return "connection reset by peer";
}

}  // namespace

FakeNccl& FakeNccl::get() {
  static FakeNccl fake;
  return fake;
}

nccl::NcclApi FakeNccl::api() {
  return {.get_version = get_version,
          .get_unique_id = get_unique_id,
          .init = init,
          .shrink = shrink,
          .finalize = finalize,
          .destroy = destroy,
          .abort = abort_comm,
          .async_error = async_error,
          .register_buffer = register_buffer,
          .deregister_buffer = deregister_buffer,
          .all_reduce = all_reduce,
          .send = send,
          .receive = receive,
          .group_start = group_start,
          .group_end = group_end,
          .error_string = error_string,
          .last_error = last_error};
}

void FakeNccl::reset() {
  std::lock_guard lock(mutex_);
  log_.clear();
  looks_until_ready = 2;
  outcome = ncclSuccess;
  cannot_init = never_ready = gets_wrong_bit = -1;
  makes_no_id = false;
  std::lock_guard rings_lock(rings_mutex);
  rings.clear();
  ids_made = 0;
}

std::vector<std::string> FakeNccl::log() {
  std::lock_guard lock(mutex_);
  return log_;
}

void FakeNccl::note(int rank, const std::string& what) {
  std::lock_guard lock(mutex_);
  log_.push_back("rank " + std::to_string(rank) + ": " + what);
}

}  // namespace lockstep::testing
