// pread on a pool of threads: works on every file system.
//
//   submit(): in the page cache? ──▶ done at once
//                └─ else ──▶ queue ──▶ one of the threads ──▶ done
//
// What the kernel has in memory is copied by the caller's own thread, without a thread to wake:
// only what would wait for a disk or a server goes to the pool.
//
// Thread-safety: as Reader.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/base/status.h"
#include "data/io/reader.h"

namespace lockstep::data {

// kInternal when the machine gives no more threads.
Result<std::unique_ptr<Reader>> make_pread_reader(uint32_t threads);

}  // namespace lockstep::data
