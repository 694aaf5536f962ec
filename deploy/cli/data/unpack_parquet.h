// The columns of Parquet files that hold samples, decoded into Arrow IPC files, which `lockstep
// data pack` then reads as any others. lockstep-parquet does it, a process for each file and
// several at a time.
//
//   TO.unpacked/STAMP/NAME.arrow   for each NAME.parquet, in the directories where these lie;
//   beside
//                                  what is packed, whose disk has room for about as much. STAMP
//                                  says which files, with their sizes and times
//
// INVARIANTS
//  U1 A file is whole once it has its name, and stays: a second call makes what is missing.
//  U2 What is made of other files, or of files that changed, has another STAMP.
//  U3 Nothing goes but a STAMP of this object, and TO.unpacked where it is empty.
//
// Thread-safety: the main thread; one process at a time has TO.unpacked, others are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/read_at.h"

namespace lockstep {

class UnpackedParquet {
 public:
  // kBadData, naming the file, where one is damaged or has no column of samples; kNoInput where one
  // cannot be read; kUsage where `to` is no directory, or another process is at it; kConfig where
  // lockstep-parquet is not there; kInternal when it cannot be written.
  static Result<UnpackedParquet> make(const std::string& path, const std::string& to,
                                      uint32_t threads, const data::ProgressFn& progress);

  // What to name instead.
  const std::string& path() const { return path_; }
  void remove() const;

 private:
  std::string path_;
  std::string directory_;                    // TO.unpacked
  std::string root_;                         // in it, of STAMP
  std::unique_ptr<data::Descriptor> alone_;  // the lock goes with it
};

}  // namespace lockstep
