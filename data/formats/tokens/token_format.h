// The formats of tokens, one row each: what differs between them once a path's format is known.
//
//   tokens      *.bin: uint16 or uint32 token ids, little-endian, after llm.c's header of 1,024
//               bytes (github.com/karpathy/llm.c, dev/data/data_common.py). The header says how
//               many bytes an id has and how many ids there are; without it, ids are uint16.
//               If there is no *.bin, *.npy: NumPy arrays of one dimension of uint16, uint32 or
//               int32 (npy_header.h).
//               If there is neither, *.safetensors, each of one tensor of one dimension
//               (safetensors_files.h)
//   tokens_u32  *.bin without a header, uint32
//   megatron    pairs of *.bin and *.idx, of uint16 or int32 (megatron_index.h); either file, or
//               the prefix that both share, names a single pair
//   text        *.txt: every byte is a token; with a tokenizer, the tokenizer's tokens
//               (tokenized_text.h)
//   arrow_tokens  *.arrow, *.feather, *.ipc: a column of lists of whole numbers, or of whole
//               numbers (arrow_file.h)
//
// Lockstep reads int32 and int64 without their sign: a negative number is beyond every vocabulary.
//
// Thread-safety: constants and free functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/formats/tokens/token_range.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

struct TokenFormat {
  std::string_view name;
  // For people. Formats that differ only in the bytes of a token have the same name: their tokens
  // are the same.
  std::string_view shown;
  // In fingerprints. Formats whose tokens are the same have the same one.
  std::string_view hashed;

  // The files of a split (token_files.h).
  Result<std::vector<std::string>> (*find)(const std::string& path, Split split);

  // Each file is a stream of its own. Where its tokens lie in `file`, which is mapped from `path`;
  // kBadData names the file that is wrong. Null: see `open`.
  Result<TokenRange> (*range)(const std::string& path, std::span<const uint8_t> file) = nullptr;
  // Where the documents of such a file with so many tokens end; the end of the file needs no entry.
  // Null: the files say nothing of documents.
  Result<std::vector<uint64_t>> (*document_ends)(const std::string& path,
                                                 uint64_t tokens) = nullptr;

  // The streams of files whose tokens lie in pieces; null: by `range`.
  Result<std::vector<TokenStream>> (*open)(const std::vector<std::string>& paths,
                                           const ColumnNames& columns, const std::string& cache_dir,
                                           const ProgressFn& progress,
                                           bool with_documents) = nullptr;
};

// REQUIRES: is_token_format(name).
const TokenFormat& token_format(std::string_view name);

}  // namespace lockstep::data
