// Which files of a path hold the tokens of a split, and what a file of them looks like.
//
//   tokens      *.bin: uint16 or uint32 token ids, little-endian, behind llm.c's header of 1,024
//               bytes (github.com/karpathy/llm.c, dev/data/data_common.py), which says how many
//               bytes an id has and how many ids there are; without that header uint16
//   tokens_u32  *.bin without a header, uint32
//   text        *.txt: every byte is a token
//
// A path is one file, which serves the split that is asked for, or a directory. Of a directory's
// files those with "val", "test" or "eval" as a word of their name ("fineweb_val_000000.bin") are
// for evaluation, the others for training; they follow each other in the order of their names.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"

namespace lockstep::data {

// "tokens", "text" or "idx": a directory with a pair of IDX files is that, whatever else lies in
// it; else the endings of the names decide, and of a file with another ending "tokens" where
// llm.c's header says so. kUsage where nothing tells, kNoInput when the path is not there.
Result<std::string> detect_format(const std::string& path);

bool is_token_format(const std::string& format);

// Not empty, or kNoInput. REQUIRES: is_token_format(format).
Result<std::vector<std::string>> find_token_files(const std::string& path,
                                                  const std::string& format, Split split);

// Where the tokens of a file lie in it.
struct TokenRange {
  uint64_t offset = 0;
  uint64_t tokens = 0;
  uint32_t token_bytes = 0;
};
// kBadData for an empty, truncated or too long file; messages do not name it.
Result<TokenRange> token_range(std::span<const uint8_t> file, const std::string& format);

}  // namespace lockstep::data
