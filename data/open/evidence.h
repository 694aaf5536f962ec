// Measures how much of a directory is data of one format or another, where the names of its files
// leave several formats open. A stray LICENSE.txt or mean.npy must not make a directory of images
// text.
//
// RULES for formats that were found in the order of their rows:
//   1. A probe that weighs nothing decides by itself: index files, or names that nothing else has.
//   2. Tables beside shards, images or Parquet, and text beside tokens, only describe these.
//   3. The first format wins, unless another one has at least twice its bytes. Then that one wins.
//   4. Directories of classes win over text and tables that have more bytes, but not twice as many.
//   5. If the first format has less than another, but more than half of it, the choice is open.
//
// Text whose name says that it describes data (LICENSE.txt, words.txt) weighs nothing.
//
// Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/format_row.h"

namespace lockstep::data {

struct Candidate {
  std::string format;  // as the probe says it, or "parquet"
  const DataFormat::DirectoryProbe* probe = nullptr;
};

// The format of the directory by these rules. kUsage, naming both formats and a file of each, if
// the choice is open. REQUIRES: candidates is not empty.
Result<std::string> strongest(const Listing& directory, const std::vector<Candidate>& candidates);

}  // namespace lockstep::data
