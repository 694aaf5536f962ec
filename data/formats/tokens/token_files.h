// Finds which files of a path hold the tokens of a split.
//
// A path is a directory, or one file, which serves the split that the caller asks for. In a
// directory, files whose name says so (is_for_evaluation() of list_files.h:
// "fineweb_val_000000.bin") are for evaluation, the others for training. Files follow each other in
// the order of their names. Endings count in any case. If no file has such an ending, Lockstep
// takes all files. It skips empty files.
//
// Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"

namespace lockstep::data {

// The files of each format (token_format.h), never empty. kNoInput if there is no file, or if one
// file of a pair is missing.
using TokenFiles = Result<std::vector<std::string>>;
TokenFiles find_token_bins(const std::string& path, Split split);  // or *.npy, or *.safetensors
TokenFiles find_bare_bins(const std::string& path, Split split);
TokenFiles find_text_files(const std::string& path, Split split);
TokenFiles find_megatron_bins(const std::string& path, Split split);  // the *.bin of each pair
TokenFiles find_arrow_tokens(const std::string& path, Split split);

// True for *.txt, and for *.bin, *.npy and *.safetensors.
bool is_text_name(const std::string& path);
bool is_token_name(const std::string& path);

// True if `path` is one file of a Megatron-LM pair, or the prefix of a pair, and both files exist.
bool is_megatron_file(const std::string& path);

// The index of the *.bin at `path`.
std::string megatron_index_of(const std::string& path);

}  // namespace lockstep::data
