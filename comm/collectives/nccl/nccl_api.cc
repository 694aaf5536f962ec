#include "comm/collectives/nccl/nccl_api.h"

#include <dlfcn.h>

namespace lockstep::nccl {
namespace {

// Looks up one function after the other, and remembers the first that is missing.
class Lookup {
 public:
  explicit Lookup(void* library) : library_(library) {}

  template <typename Function>
  void find(const char* name, Function* function) {
    void* found = dlsym(library_, name);
    if (found == nullptr && missing_.empty()) missing_ = name;
    *function = reinterpret_cast<Function>(found);
  }

  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<NcclApi> open_nccl(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Status(Code::kConfig, "cannot open NCCL: " + std::string(dlerror()) +
                                     "; install NCCL 2.27 or newer, or use one GPU");
  Lookup lookup(handle);
  NcclApi api;
  lookup.find("ncclGetVersion", &api.get_version);
  lookup.find("ncclGetUniqueId", &api.get_unique_id);
  lookup.find("ncclCommInitRankConfig", &api.init);
  lookup.find("ncclCommDestroy", &api.destroy);
  lookup.find("ncclCommAbort", &api.abort);
  lookup.find("ncclCommGetAsyncError", &api.async_error);
  lookup.find("ncclMemAlloc", &api.allocate);
  lookup.find("ncclMemFree", &api.release);
  lookup.find("ncclCommWindowRegister", &api.register_window);
  lookup.find("ncclCommWindowDeregister", &api.deregister_window);
  lookup.find("ncclAllReduce", &api.all_reduce);
  lookup.find("ncclSend", &api.send);
  lookup.find("ncclRecv", &api.receive);
  lookup.find("ncclGroupStart", &api.group_start);
  lookup.find("ncclGroupEnd", &api.group_end);
  lookup.find("ncclGetErrorString", &api.error_string);
  lookup.find("ncclGetLastError", &api.last_error);
  api.revoke = reinterpret_cast<decltype(api.revoke)>(dlsym(handle, "ncclCommRevoke"));
  if (!lookup.missing().empty())
    return Status(Code::kConfig,
                  library + " has no " + lookup.missing() + "; NCCL 2.27 or newer is needed");
  int version = 0;
  if (api.get_version(&version) != ncclSuccess || version < kOldestNccl)
    return Status(Code::kConfig, library + " is NCCL version " + std::to_string(version) +
                                     "; 2.27 (22700) or newer is needed");
  api.version = version_text(version);
  return api;
}

}  // namespace lockstep::nccl
