#include "tests/cuda/fake_nccl.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "tests/cuda/fake_nccl_comm.h"

namespace lockstep::testing {
namespace {

std::mutex rings_mutex;
std::map<std::string, std::shared_ptr<Ring>> rings;  // by unique id
int ids_made = 0;

constexpr int kChannels = 32;  // where the job names no bound

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
  FakeNccl& fake = FakeNccl::get();
  fake.note(rank, std::string("init ") + id.internal);
  fake.pass_block(rank, "init");
  if (rank == fake.cannot_init) return ncclSystemError;
  fake.count(1);
  auto side = std::make_shared<Side>();
  side->rank = rank;
  {
    std::lock_guard lock(rings_mutex);
    auto& ring = rings[id.internal];
    if (!ring) ring = std::make_shared<Ring>(ranks);
    side->ring = ring;
  }
  *made = new ncclComm{.side = std::move(side), .registered = {}, .peers = {}, .pending = {}};
  ncclComm_t const comm = *made;
  (void)cudaGetDevice(&comm->device);
  comm->made_in = fake.epoch();
  comm->channels = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? kChannels : config->maxCTAs;
  return in_progress(comm, [comm] {
    return take_memory(comm, FakeNccl::kInitBytes) ? ncclSuccess : ncclUnhandledCudaError;
  });
}

// Ends the communicator's kernels.
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
  FakeNccl::get().take(comm->side->rank, -static_cast<int64_t>(comm->bytes));
  FakeNccl::get().count(-1);
  delete comm;
}

ncclResult_t revoke(ncclComm_t comm, int flags) {
  if (flags != 0) return ncclInvalidArgument;
  FakeNccl::get().note(comm->side->rank, "revoke");
  if (comm->has_loose_group)
    (void)FakeNccl::get().misuse(comm->side->rank, "revoke reads the freed job of a group");
  comm->is_revoked = true;
  quiet(comm);
  return in_progress(comm);
}

// Refuses to destroy a communicator that failed. The group that the call began stays open, so the
// thread's later calls would only be queued.
ncclResult_t destroy(ncclComm_t comm) {
  FakeCuda::get().touch();
  FakeNccl& fake = FakeNccl::get();
  fake.note(comm->side->rank, "destroy");
  if (group_depth() > 0) return fake.misuse(comm->side->rank, "destroy in an open group");
  if (comm->looks_left != 0 || comm->pending)
    return fake.misuse(comm->side->rank, "destroy of a communicator in progress");
  if (const ncclResult_t failed = fake.outcome_of(comm->side->rank, comm->failed, comm->made_in);
      failed != ncclSuccess) {
    ++group_depth();
    (void)fake.misuse(comm->side->rank, "destroy of a communicator that has failed");
    return failed;
  }
  free_comm(comm);
  return ncclSuccess;
}

ncclResult_t abort_comm(ncclComm_t comm) {
  FakeNccl::get().note(comm->side->rank, "abort");
  quiet(comm);
  free_comm(comm);
  return ncclSuccess;
}

ncclResult_t run_on_own_thread(ncclComm_t comm) {
  ncclResult_t result = ncclSuccess;
  std::thread([&] {
    (void)cudaSetDevice(comm->device);
    result = comm->pending();
  }).join();
  return result;
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t* state) {
  if (comm == nullptr) return ncclInvalidArgument;
  FakeNccl& fake = FakeNccl::get();
  if (comm->looks_left > 0 && comm->side->rank != fake.never_ready) --comm->looks_left;
  *state = comm->looks_left == 0 ? fake.outcome_of(comm->side->rank, comm->failed, comm->made_in)
                                 : ncclInProgress;
  if (*state == ncclInProgress || !comm->pending) return ncclSuccess;
  if (*state == ncclSuccess) *state = run_on_own_thread(comm);
  if (*state == ncclInProgress) return ncclSuccess;
  comm->pending = nullptr;
  comm->has_loose_group = *state != ncclSuccess;
  comm->failed = *state;
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

// The handle comes when all ranks are there. If a rank ends, the others wait for good, or notice.
ncclResult_t register_window(ncclComm_t comm, void* data, size_t bytes, ncclWindow_t* window,
                             int flags) {
  FakeCuda::get().touch();
  FakeNccl& fake = FakeNccl::get();
  fake.note(comm->side->rank, "map");
  if (const ncclResult_t refused = may_use(comm, "map"); refused != ncclSuccess) return refused;
  if (flags != NCCL_WIN_COLL_SYMMETRIC || !fake.has_allocated(data, bytes))
    return ncclInvalidArgument;
  if (comm->side->rank == fake.cannot_map) return ncclUnhandledCudaError;
  {
    std::lock_guard lock(comm->side->ring->mutex);
    ++comm->side->ring->windows;
  }
  return in_progress(comm, [comm, window, data, bytes] {
    const FakeNccl& now = FakeNccl::get();
    const Side& side = *comm->side;
    std::lock_guard lock(side.ring->mutex);
    if (side.ring->windows == side.ring->words.size()) {
      *window = now.has_windows ? static_cast<ncclWindow_t>(data) : nullptr;
      comm->window = now.has_windows ? static_cast<std::byte*>(data) : nullptr;
      comm->window_bytes = bytes;
      return ncclSuccess;
    }
    return side.ring->is_broken && now.notices_end ? ncclRemoteError : ncclInProgress;
  });
}

// Needs no other rank, so it also works after revoke.
ncclResult_t deregister_window(ncclComm_t comm, ncclWindow_t window) {
  if (!FakeNccl::get().has_allocated(window, 1)) return ncclInvalidArgument;
  FakeNccl::get().note(comm->side->rank, "unmap");
  return ncclSuccess;
}

}  // namespace

ncclResult_t fake_register(ncclComm_t comm, void* data, size_t bytes, void** handle) {
  FakeNccl::get().note(comm->side->rank, "register");
  if (const ncclResult_t refused = may_use(comm, "register"); refused != ncclSuccess)
    return refused;
  comm->registered[static_cast<std::byte*>(data)] = bytes;
  *handle = data;
  return ncclSuccess;
}

// Revoking has ended the threads that would tell the peers, so these keep what they have mapped.
ncclResult_t fake_deregister(ncclComm_t comm, void* handle) {
  FakeNccl::get().note(comm->side->rank, "deregister");
  if (comm->is_revoked) {
    (void)FakeNccl::get().misuse(comm->side->rank, "deregister after revoke");
    return ncclSystemError;
  }
  comm->registered.erase(static_cast<std::byte*>(handle));
  return ncclSuccess;
}

namespace {

const char* error_string(ncclResult_t) {
  return "unhandled system error";
}

const char* last_error(ncclComm_t) {
  return "connection reset by peer";
}

}  // namespace

ncclResult_t may_use(ncclComm_t comm, const char* call) {
  FakeNccl& fake = FakeNccl::get();
  if (comm->is_revoked) {
    (void)fake.misuse(comm->side->rank, std::string(call) + " after revoke");
    return ncclInvalidUsage;
  }
  if (comm->looks_left == 0 && !comm->pending) return ncclSuccess;
  return fake.misuse(comm->side->rank, std::string(call) + " on a communicator in progress");
}

ncclResult_t in_progress(ncclComm_t comm, std::function<ncclResult_t()> work) {
  comm->looks_left = FakeNccl::get().looks_until_ready;
  if (work) comm->has_loose_group = true;
  comm->pending = std::move(work);
  return ncclInProgress;
}

bool take_memory(ncclComm_t comm, uint64_t bytes) {
  if (!FakeNccl::get().take(comm->side->rank, static_cast<int64_t>(bytes))) return false;
  comm->bytes += bytes;
  return true;
}

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
          .allocate = mem_alloc,
          .release = mem_free,
          .register_window = register_window,
          .deregister_window = deregister_window,
          .all_reduce = fake_all_reduce,
          .send = fake_send,
          .receive = fake_receive,
          .group_start = fake_group_start,
          .group_end = fake_group_end,
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
  group_depth() = 0;
}

}  // namespace lockstep::testing
