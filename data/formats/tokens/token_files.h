// Which files of a path hold the tokens of a split, and what a file of them looks like.
//
//   tokens      *.bin: uint16 or uint32 token ids, little-endian, behind llm.c's header of 1,024
//               bytes (github.com/karpathy/llm.c, dev/data/data_common.py), which says how many
//               bytes an id has and how many ids there are; without that header uint16. Or, where
//               there is no *.bin, *.npy: NumPy arrays of one dimension of uint16, uint32 or int32
//               (npy_header.h); or, where there is neither, *.safetensors, each of one tensor of
//               one dimension (safetensors_files.h)
//   tokens_u32  *.bin without a header, uint32
//   megatron    pairs of *.bin and *.idx, of uint16 or int32 (megatron_index.h); a single pair can
//               be named by either file, or by the prefix that they share
//   text        *.txt: every byte is a token, or with a tokenizer what that makes of them
//               (tokenized_text.h)
//   arrow_tokens  *.arrow, *.feather, *.ipc: a column of lists of whole numbers, or of these
//               (arrow_file.h)
//
// int32 and int64 are read without their sign: a negative number is beyond every vocabulary.
//
// A path is one file, which serves the split that is asked for, or a directory. Of a directory's
// files those with "val", "validation", "test" or "eval" as a word of their name
// ("fineweb_val_000000.bin") are for evaluation, the others for training; they follow each other in
// the order of their names.
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

// Whether it begins with llm.c's header.
bool has_token_header(std::span<const uint8_t> file);

// Whether `path` is one file of a pair of Megatron-LM's, or the prefix of one, and both are there.
bool is_megatron_file(const std::string& path);

// Not empty, or kNoInput; of Megatron-LM's pairs the *.bin, and kNoInput where one of a pair is
// missing. REQUIRES: is_token_format(format).
Result<std::vector<std::string>> find_token_files(const std::string& path,
                                                  const std::string& format, Split split);

// kBadData for an empty, truncated or too long file; messages do not name it. REQUIRES: format is
// not "megatron", whose files do not say it themselves, nor "arrow_tokens", which may lie in
// pieces.
Result<TokenRange> token_range(std::span<const uint8_t> file, const std::string& format);

// The same for any format of tokens but arrow_tokens, of the file at `path`, which is mapped;
// messages name the file that is wrong.
Result<TokenRange> token_range_of(const std::string& path, const MappedFile& file,
                                  const std::string& format);

// Where the documents of one of Megatron-LM's *.bin end (megatron_index.h), which has so many
// tokens.
Result<std::vector<uint64_t>> megatron_documents_of(const std::string& path, uint64_t tokens);

// Of all formats that only say how many bytes a token has the same: they are the same tokens.
std::string shown_token_format(const std::string& format);

}  // namespace lockstep::data
