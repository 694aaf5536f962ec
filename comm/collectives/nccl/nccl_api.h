// The functions of NCCL that we call, as a table. Lockstep opens the library only when it uses a
// GPU, so the same program starts on machines without NCCL. A test can put its own functions into
// the table.
//
// Thread-safety: a value. NCCL documents the thread-safety of its functions.
#pragma once

#include <nccl.h>

#include <string>

#include "comm/base/status.h"

namespace lockstep::nccl {

struct NcclApi {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  // ncclCommRevoke, of NCCL 2.28.7 and newer; null in an older library.
  ncclResult_t (*revoke)(ncclComm_t, int) = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) release = nullptr;
  decltype(&ncclCommWindowRegister) register_window = nullptr;
  decltype(&ncclCommWindowDeregister) deregister_window = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  std::string version;  // "2.28.9"
};

// "2.28.9" for 22809, the number that ncclGetVersion() gives.
std::string version_text(int version);

inline constexpr int kOldestNccl = 22700;  // 2.27: older ones have not been read

// `library`: a path, or a name that the loader finds, such as libnccl.so.2. It stays open. kConfig
// if it is not there, lacks a function, or is too old.
Result<NcclApi> open_nccl(const std::string& library);

}  // namespace lockstep::nccl
