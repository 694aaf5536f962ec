// The columns of Parquet files that hold samples, decoded into Arrow IPC files, which `lockstep
// data pack` then reads as any others. lockstep-parquet does it, a process for each file and
// several at a time.
//
//   DIRECTORY/STAMP/NAME.arrow   for each NAME.parquet, in the directories where these lie; STAMP
//                                says which files, with their sizes and times
//
// INVARIANTS
//  U1 A file is whole once it has its name, and stays: a second call makes what is missing.
//  U2 What is made of other files, or of files that changed, has another STAMP.
//
// Thread-safety: the main thread; one process at a time has the directory, others are refused.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/index/dataset.h"

namespace lockstep {

// What to name instead of `path`. kBadData, naming the file, where one is damaged or has no column
// of samples; kNoInput; kUsage where another process is at it; kConfig where lockstep-parquet is
// not there; kInternal when it cannot be written.
Result<std::string> unpack_parquet(const std::string& path, const std::string& directory,
                                   uint32_t threads, const data::ProgressFn& progress);

}  // namespace lockstep
