// FakeNccl's groups of transfers.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "tests/cuda/fake_nccl_comm.h"

namespace lockstep::testing {
namespace {

struct Op {
  std::function<void()> begin;
  std::function<void()> end;
};
struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Op> ops;
  std::set<int> peers;
};
thread_local Group group;

void add_to_group(ncclComm_t comm, cudaStream_t stream, std::vector<int> peers, Op op) {
  group.comm = comm;
  group.stream = stream;
  group.peers.insert(peers.begin(), peers.end());
  group.ops.push_back(std::move(op));
}

std::vector<std::byte> bytes_of(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

std::string named(int rank) {
  return "rank " + std::to_string(rank);
}

// The real kernel would never end: `side`'s kernel waits until its communicator is ended.
void wait_for_ever(Side& side, std::unique_lock<std::mutex>& lock, const std::string& why) {
  FakeNccl::get().hang_for_ever(why);
  side.ring->changed.wait(lock, [&] { return side.is_aborted.load(); });
}

// Each side looks only at its own memory.
bool is_registered(ncclComm_t comm, const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  auto next = comm->registered.upper_bound(begin);
  if (next == comm->registered.begin()) return false;
  const auto& [from, size] = *--next;
  return begin + bytes <= from + size;
}

const char* kind_of(bool is_registered) {
  return is_registered ? "registered" : "unregistered";
}

void receive_end(Side& side, void* data, size_t bytes, int peer, bool is_registered) {
  std::unique_lock lock(side.ring->mutex);
  auto& queue = side.ring->wire[{peer, side.rank}];
  side.ring->changed.wait(lock, [&] { return !queue.empty() || side.is_aborted; });
  if (queue.empty()) return;
  Message& message = queue.front();
  if (message.bytes.size() != bytes)
    return wait_for_ever(side, lock,
                         named(peer) + " sends " + std::to_string(message.bytes.size()) +
                             " bytes, " + named(side.rank) + " receives " + std::to_string(bytes));
  if (message.is_registered != is_registered)
    return wait_for_ever(side, lock,
                         named(peer) + " sends " + std::to_string(bytes) + " bytes from " +
                             kind_of(message.is_registered) + " memory, " + named(side.rank) +
                             " receives them into " + kind_of(is_registered) + " memory");
  if (side.rank == FakeNccl::get().gets_wrong_bit && bytes >= FakeNccl::get().wrong_from_bytes)
    message.bytes[0] ^= std::byte{1};
  std::memcpy(data, message.bytes.data(), bytes);
  queue.pop_front();
}

// One element, added around the ring, so the order depends on the element's place.
float sum_around(const Ring& ring, size_t turn, size_t i, size_t count) {
  const size_t ranks = ring.words.size();
  const size_t first = i * ranks / count + 1;
  float sum = 0;
  for (size_t r = 0; r < ranks; ++r) {
    float x;
    std::memcpy(&x, ring.words[(first + r) % ranks][turn].bytes.data() + i * sizeof x, sizeof x);
    sum = r == 0 ? x : sum + x;
  }
  return sum;
}

// With windows a rank adds its slice of all inputs, writes it to the memory of all ranks, and ends
// when all have done so.
void reduce_windows(Side& side, size_t turn, size_t count, std::unique_lock<std::mutex>& lock) {
  Ring& ring = *side.ring;
  const size_t ranks = ring.words.size();
  const auto mine = static_cast<size_t>(side.rank);
  for (size_t i = mine * count / ranks; i < (mine + 1) * count / ranks; ++i)
    for (const auto& words : ring.words) words[turn].out[i] = sum_around(ring, turn, i, count);
  ++ring.left[turn];
  ring.changed.notify_all();
  ring.changed.wait(lock, [&] {
    return ring.left[turn] == ranks || side.is_aborted || ring.torn.contains(turn);
  });
  if (ring.left[turn] != ranks) ring.torn.insert(turn);
  ring.changed.notify_all();
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
  const Word& first = ring.words[0][turn];
  for (const auto& words : ring.words) {
    if (words[turn].bytes.size() != first.bytes.size())
      return wait_for_ever(side, lock, "ranks all-reduce different numbers of elements");
    if (words[turn].is_window != first.is_window)
      return wait_for_ever(side, lock, "some ranks all-reduce in a window, and some do not");
  }
  if (first.is_window) return reduce_windows(side, turn, count, lock);
  for (size_t i = 0; i < count; ++i) out[i] = sum_around(ring, turn, i, count);
}

// The group's thread connects to new peers, and hands the kernel to the stream.
ncclResult_t launch(ncclComm_t comm, const Group& of) {
  for (const int peer : of.peers) {
    if (!comm->peers.insert(peer).second) continue;
    if (!take_memory(comm, comm->channels * FakeNccl::kChannelBytes)) return ncclUnhandledCudaError;
  }
  of.stream->post([ops = of.ops] {
    for (const Op& op : ops) op.begin();
    for (const Op& op : ops) op.end();
  });
  comm->stream = of.stream;
  comm->posted = of.stream->posted();
  return ncclSuccess;
}

}  // namespace

int& group_depth() {
  return group.depth;
}

ncclResult_t fake_send(const void* data, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  if (const ncclResult_t refused = may_use(comm, "send"); refused != ncclSuccess) return refused;
  const bool mine = is_registered(comm, data, count * 4);
  const auto begin = [side = comm->side, data, count, peer, mine] {
    if (side->rank == FakeNccl::get().loses_data) return;
    std::lock_guard lock(side->ring->mutex);
    side->ring->wire[{side->rank, peer}].push_back({bytes_of(data, count * 4), mine});
    side->ring->changed.notify_all();
  };
  add_to_group(comm, stream, {peer}, {begin, [] {}});
  return ncclSuccess;
}

ncclResult_t fake_receive(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  if (const ncclResult_t refused = may_use(comm, "receive"); refused != ncclSuccess) return refused;
  const bool mine = is_registered(comm, data, count * 4);
  const auto end = [side = comm->side, data, count, peer, mine] {
    receive_end(*side, data, count * 4, peer, mine);
  };
  add_to_group(comm, stream, {peer}, {[] {}, end});
  return ncclSuccess;
}

ncclResult_t fake_all_reduce(const void* in, void* out, size_t count, ncclDataType_t type,
                             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat32 || op != ncclSum) return ncclInvalidArgument;
  if (const ncclResult_t refused = may_use(comm, "all-reduce"); refused != ncclSuccess)
    return refused;
  auto* const to = static_cast<float*>(out);
  const auto* const from = static_cast<const std::byte*>(in);
  const bool is_window = comm->window != nullptr && in == out && from >= comm->window &&
                         from + count * 4 <= comm->window + comm->window_bytes;
  const auto begin = [side = comm->side, in, to, count, is_window] {
    std::lock_guard lock(side->ring->mutex);
    side->ring->words[static_cast<size_t>(side->rank)].push_back(
        {bytes_of(in, count * 4), to, is_window});
    side->ring->changed.notify_all();
  };
  const auto end = [side = comm->side, to, count, turn = comm->reduced++] {
    reduce_end(*side, turn, to, count);
  };
  std::vector<int> neighbours;
  const int ranks = static_cast<int>(comm->side->ring->words.size());
  if (ranks > 1)
    neighbours = {(comm->side->rank + 1) % ranks, (comm->side->rank + ranks - 1) % ranks};
  add_to_group(comm, stream, std::move(neighbours), {begin, end});
  return ncclSuccess;
}

ncclResult_t fake_group_start() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t fake_group_end() {
  FakeCuda::get().touch();
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;  // a group around this one is still open
  Group ended = std::exchange(group, {});
  if (ended.comm == nullptr) return ncclSuccess;
  ncclComm_t const comm = ended.comm;
  FakeNccl::get().pass_block(comm->side->rank, "group_end");
  return in_progress(comm, [comm, ended = std::move(ended)] { return launch(comm, ended); });
}

}  // namespace lockstep::testing
