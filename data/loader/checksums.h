// Compares the content of data files with the checksums in the files, where opening does not
// because it would have to read everything.
//
//   tfrecord  CRC-32C of every record
//   npz       CRC-32 of the arrays of images and labels, deflated or not
//   idx       CRC-32 at the end of gzipped files
//
// Reading compares other checksums anyhow (the chunks of PNG, Arrow's LZ4 and Zstandard). The other
// formats have none.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/base/thread_team.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

struct ChecksumReport {
  // Wrong records, by rising sample, with file and place.
  std::vector<std::pair<uint64_t, std::string>> samples;
  std::vector<std::string> files;  // files and arrays that are wrong as a whole
  uint64_t bytes = 0;              // compared
};

// Checks records with images: several files at a time, mapped and not copied. kBadData if a file
// changed since it was indexed.
Result<ChecksumReport> check_record_sums(const ExtentIndex& index, const EncodedSource& source,
                                         ThreadTeam& team, const ProgressFn& progress);

// For stored images: one file or array a thread. REQUIRES: `format` is resolved.
Result<ChecksumReport> check_file_sums(const std::string& path, const std::string& format,
                                       Split split, ThreadTeam& team, const ProgressFn& progress);

}  // namespace lockstep::data
