#include "tests/cuda/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/cuda/fake_cuda.h"

namespace {

// All ranks of one communicator.
struct Ring {
  explicit Ring(int ranks) : words(static_cast<size_t>(ranks)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> wire;
  std::vector<std::deque<std::vector<std::byte>>> words;  // by rank: of every all-reduce so far
  std::set<size_t> torn;   // all-reduces from which a rank returned before all were there
  size_t windows = 0;      // ranks that registered one
  bool is_broken = false;  // a rank has ended
};

std::mutex rings_mutex;
std::map<std::string, std::shared_ptr<Ring>> rings;  // by unique id
int ids_made = 0;

// What kernels need of a communicator: they may outlast it.
struct Side {
  std::shared_ptr<Ring> ring;
  int rank = 0;
  std::atomic<bool> is_aborted{false};
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Side> side;
  int looks_left = 0;
  size_t reduced = 0;  // all-reduces of this rank so far
  cudaStream_t stream = nullptr;
  uint64_t posted = 0;                    // its end on the stream
  std::function<ncclResult_t()> pending;  // of what waits for peers; empty: nothing
};

namespace lockstep::testing {
namespace {

struct Op {
  std::function<void()> begin;
  std::function<void()> end;
};
thread_local std::vector<Op> group;
thread_local ncclComm_t group_comm = nullptr;
thread_local cudaStream_t group_stream = nullptr;

void add_to_group(ncclComm_t comm, cudaStream_t stream, Op op) {
  group_comm = comm;
  group_stream = stream;
  group.push_back(std::move(op));
}

ncclResult_t in_progress(ncclComm_t comm) {
  comm->looks_left = FakeNccl::get().looks_until_ready;
  return ncclInProgress;
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

ncclResult_t init(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;
  FakeCuda::get().touch();
  FakeNccl::get().note(rank, std::string("init ") + id.internal);
  FakeNccl::get().pass_block(rank, "init");
  if (rank == FakeNccl::get().cannot_init) return ncclSystemError;
  FakeNccl::get().count(1);
  auto side = std::make_shared<Side>();
  side->rank = rank;
  {
    std::lock_guard lock(rings_mutex);
    auto& ring = rings[id.internal];
    if (!ring) ring = std::make_shared<Ring>(ranks);
    side->ring = ring;
  }
  *made = new ncclComm{.side = std::move(side), .pending = {}};
  return in_progress(*made);
}

// Ends its kernels.
void quiet(ncclComm_t comm) {
  FakeCuda::get().touch();
  FakeNccl::get().pass_hang();
  {
    std::lock_guard lock(comm->side->ring->mutex);
    comm->side->is_aborted = true;
    comm->pending = nullptr;
    comm->side->ring->is_broken = true;
    comm->side->ring->changed.notify_all();
  }
  if (comm->stream != nullptr) comm->stream->progress()->wait_for(comm->posted);
}

void free_comm(ncclComm_t comm) {
  FakeNccl::get().count(-1);
  delete comm;
}

ncclResult_t revoke(ncclComm_t comm, int flags) {
  if (flags != 0) return ncclInvalidArgument;
  FakeNccl::get().note(comm->side->rank, "revoke");
  quiet(comm);
  return in_progress(comm);
}

ncclResult_t destroy(ncclComm_t comm) {
  FakeCuda::get().touch();
  FakeNccl::get().note(comm->side->rank, "destroy");
  free_comm(comm);
  return ncclSuccess;
}

ncclResult_t abort_comm(ncclComm_t comm) {
  FakeNccl::get().note(comm->side->rank, "abort");
  quiet(comm);
  free_comm(comm);
  return ncclSuccess;
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t* state) {
  if (comm == nullptr) return ncclInvalidArgument;
  FakeNccl& fake = FakeNccl::get();
  if (comm->looks_left > 0 && comm->side->rank != fake.never_ready) --comm->looks_left;
  *state = comm->looks_left == 0 ? fake.outcome : ncclInProgress;
  if (*state != ncclSuccess || !comm->pending) return ncclSuccess;
  *state = comm->pending();
  if (*state != ncclInProgress) comm->pending = nullptr;
  return ncclSuccess;
}

ncclResult_t mem_alloc(void** memory, size_t bytes) {
  FakeCuda::get().touch();
  *memory = FakeNccl::get().allocate(bytes);
  return ncclSuccess;
}

ncclResult_t mem_free(void* memory) {
  FakeNccl::get().release(memory);
  return ncclSuccess;
}

// The handle comes when all ranks are there. A rank that ends leaves the others waiting, or they
// notice.
ncclResult_t register_window(ncclComm_t comm, void* data, size_t bytes, ncclWindow_t* window,
                             int flags) {
  FakeCuda::get().touch();
  FakeNccl& fake = FakeNccl::get();
  fake.note(comm->side->rank, "map");
  if (flags != NCCL_WIN_COLL_SYMMETRIC || !fake.has_allocated(data, bytes))
    return ncclInvalidArgument;
  if (comm->side->rank == fake.cannot_map) return ncclUnhandledCudaError;
  {
    std::lock_guard lock(comm->side->ring->mutex);
    ++comm->side->ring->windows;
  }
  comm->pending = [side = comm->side, window, data] {
    const FakeNccl& now = FakeNccl::get();
    std::lock_guard lock(side->ring->mutex);
    if (side->ring->windows == side->ring->words.size()) {
      *window = now.has_windows ? static_cast<ncclWindow_t>(data) : nullptr;
      return ncclSuccess;
    }
    return side->ring->is_broken && now.notices_end ? ncclRemoteError : ncclInProgress;
  };
  return in_progress(comm);
}

ncclResult_t deregister_window(ncclComm_t comm, ncclWindow_t window) {
  if (!FakeNccl::get().has_allocated(window, 1)) return ncclInvalidArgument;
  FakeNccl::get().note(comm->side->rank, "unmap");
  return ncclSuccess;
}

ncclResult_t register_buffer(ncclComm_t comm, void* data, size_t, void** handle) {
  FakeNccl::get().note(comm->side->rank, "register");
  *handle = data;
  return ncclSuccess;
}

ncclResult_t deregister_buffer(ncclComm_t comm, void*) {
  FakeNccl::get().note(comm->side->rank, "deregister");
  return ncclSuccess;
}

std::vector<std::byte> bytes_of(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

ncclResult_t send(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  const auto begin = [side = comm->side, data, count, peer] {
    if (side->rank == FakeNccl::get().loses_data) return;
    std::lock_guard lock(side->ring->mutex);
    side->ring->wire[{side->rank, peer}].push_back(bytes_of(data, count * 4));
    side->ring->changed.notify_all();
  };
  add_to_group(comm, stream, {begin, [] {}});
  return ncclSuccess;
}

ncclResult_t receive(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  const auto end = [side = comm->side, data, count, peer] {
    std::unique_lock lock(side->ring->mutex);
    auto& queue = side->ring->wire[{peer, side->rank}];
    side->ring->changed.wait(lock, [&] { return !queue.empty() || side->is_aborted; });
    if (queue.empty()) return;
    if (side->rank == FakeNccl::get().gets_wrong_bit) queue.front()[0] ^= std::byte{1};
    std::memcpy(data, queue.front().data(), std::min(count * 4, queue.front().size()));
    queue.pop_front();
  };
  add_to_group(comm, stream, {[] {}, end});
  return ncclSuccess;
}

void reduce_end(Side& side, size_t turn, float* out, size_t count) {
  Ring& ring = *side.ring;
  std::unique_lock lock(ring.mutex);
  const auto is_whole = [&] {
    return std::all_of(ring.words.begin(), ring.words.end(),
                       [&](const auto& words) { return words.size() > turn; });
  };
  ring.changed.wait(lock,
                    [&] { return is_whole() || side.is_aborted || ring.torn.contains(turn); });
  if (!is_whole() || ring.torn.contains(turn)) {
    ring.torn.insert(turn);
    return ring.changed.notify_all();
  }
  std::fill_n(out, count, 0.0f);
  for (const auto& words : ring.words) {
    for (size_t i = 0; i < count; ++i) {
      float x;
      std::memcpy(&x, words[turn].data() + i * sizeof x, sizeof x);
      out[i] += x;
    }
  }
}

ncclResult_t all_reduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat32 || op != ncclSum) return ncclInvalidArgument;
  const auto begin = [side = comm->side, in, count] {
    std::lock_guard lock(side->ring->mutex);
    side->ring->words[static_cast<size_t>(side->rank)].push_back(bytes_of(in, count * 4));
    side->ring->changed.notify_all();
  };
  const auto end = [side = comm->side, out, count, turn = comm->reduced++] {
    reduce_end(*side, turn, static_cast<float*>(out), count);
  };
  add_to_group(comm, stream, {begin, end});
  return ncclSuccess;
}

ncclResult_t group_start() {
  group.clear();
  group_comm = nullptr;
  return ncclSuccess;
}

ncclResult_t group_end() {
  FakeCuda::get().touch();
  if (group_comm == nullptr) return ncclSuccess;
  FakeNccl::get().pass_block(group_comm->side->rank, "group_end");
  group_stream->post([ops = std::exchange(group, {})] {
    for (const Op& op : ops) op.begin();
    for (const Op& op : ops) op.end();
  });
  group_comm->stream = group_stream;
  group_comm->posted = group_stream->posted();
  return in_progress(group_comm);
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
          .revoke = revoke,
          .destroy = destroy,
          .abort = abort_comm,
          .async_error = async_error,
          .register_buffer = register_buffer,
          .deregister_buffer = deregister_buffer,
          .allocate = mem_alloc,
          .release = mem_free,
          .register_window = register_window,
          .deregister_window = deregister_window,
          .all_reduce = all_reduce,
          .send = send,
          .receive = receive,
          .group_start = group_start,
          .group_end = group_end,
          .error_string = error_string,
          .last_error = last_error,
          .version = "2.28.9"};
}

nccl::NcclApi FakeNccl::api_without_revoke() {
  nccl::NcclApi older = api();
  older.revoke = nullptr;
  return older;
}

void forget_rings() {
  std::lock_guard lock(rings_mutex);
  rings.clear();
  ids_made = 0;
}

}  // namespace lockstep::testing
