// Which files of a path hold the tokens of a split, and what a file of each format looks like.
//
//   tokens      *.bin: uint16 or uint32 token ids, little-endian, behind llm.c's header of 1,024
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
// A path is a directory, or one file, which serves the split that the caller asks for. In a
// directory, files with "val", "valid", "validation", "test" or "eval" as a word of their name
// ("fineweb_val_000000.bin") are for evaluation, the others for training. Files follow each other
// in the order of their names.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"
#include "data/files/mapped_file.h"
#include "data/formats/tokens/token_range.h"

namespace lockstep::data {

// True if `file` begins with llm.c's header.
bool has_token_header(std::span<const uint8_t> file);

// True if `path` is one file of a Megatron-LM pair, or the prefix of a pair, and both files exist.
bool is_megatron_file(const std::string& path);

// The files, never empty. For Megatron-LM: the *.bin of each pair. kNoInput if there is no file, or
// if one file of a pair is missing. REQUIRES: is_token_format(format).
Result<std::vector<std::string>> find_token_files(const std::string& path,
                                                  const std::string& format, Split split);

// kBadData for an empty, truncated or too long file; messages do not name the file. REQUIRES:
// format is not "megatron", whose *.bin does not state its range, nor "arrow_tokens", which may lie
// in pieces.
Result<TokenRange> token_range(std::span<const uint8_t> file, const std::string& format);

// The same for any format of tokens but arrow_tokens, for the file mapped from `path`. Messages
// name the file that is wrong.
Result<TokenRange> token_range_of(const std::string& path, const MappedFile& file,
                                  const std::string& format);

// Where the documents of a Megatron-LM *.bin end (megatron_index.h). `tokens`: the number of tokens
// in the *.bin.
Result<std::vector<uint64_t>> megatron_documents_of(const std::string& path, uint64_t tokens);

// The name of the format for people. Formats that differ only in the bytes of a token have the same
// name: their tokens are the same.
std::string shown_token_format(const std::string& format);

}  // namespace lockstep::data
