// io_uring: many reads in flight from one thread.
//
//   open (where the file is not open) ──▶ read, again where it was short ──▶ look at the file
//
// Where the data are larger than the machine's memory, large records that are not in the page cache
// are read around it (O_DIRECT), through a few buffers of this reader's own: they would push out
// what others use, and be gone before the next epoch.
//
// Thread-safety: as Reader.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "data/io/reader.h"

namespace lockstep::data {

struct UringOptions {
  bool around_cache = false;  // large cold records of files that are open
};

// After one real read, of the first byte of `probe`. kConfig, with the kernel's reason, where
// io_uring is forbidden (EPERM: a sandbox, kernel.io_uring_disabled), unknown (ENOSYS) or out of
// memory (ENOMEM), or its read fails.
Result<std::unique_ptr<Reader>> make_uring_reader(const FileExtent& probe,
                                                  const UringOptions& options = {});

}  // namespace lockstep::data
