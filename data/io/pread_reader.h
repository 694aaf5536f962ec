// pread on a pool of threads: works on every file system.
//
//   submit(): in the page cache? ──▶ done at once
//                └─ else ──▶ queue ──▶ one of the threads ──▶ done
//
// The caller's own thread copies what the page cache has, without waking a thread. Only reads that
// would wait for a disk or a server go to the pool.
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
