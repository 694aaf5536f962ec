// Data in safetensors files (comm/run/checkpoint/safetensors_header.h): images and labels, or
// tokens.
//
// The names of tensors or of their files say which hold images and labels (array_choice.h). Two
// examples: x_train, y_train, x_test and y_test in one file; or images and labels in
// train.safetensors and in test.safetensors. Images are U8 in (N, H, W), (N, C, H, W) or (N, H, W,
// C). Labels are whole numbers.
//
// Tokens are the only tensor of a file: one dimension of U16, U32, I32 or I64. Lockstep reads both
// kinds in place.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/safetensors_header.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/formats/arrays/listed_array.h"

namespace lockstep::data {

struct TensorPlace {
  std::string path;  // of the file
  uint64_t data_begin = 0;
  safetensors::Entry tensor;
};

struct TensorPair {
  TensorPlace images;
  TensorPlace labels;
  bool serves_both = false;
};

// `path`: a directory with *.safetensors, or one such file. kNoInput if a tensor is missing,
// kBadData if several tensors would do or a file is damaged.
Result<TensorPair> find_tensor_pair(const std::string& path, Split split);

// All tensors of the files.
Result<std::vector<ListedArray>> list_tensor_arrays(const std::string& path);

bool is_safetensors_name(const std::string& name);

// Parses the header of a file. kBadData: the message goes on after the file's name.
Result<safetensors::Header> safetensors_header(std::span<const uint8_t> file);

// True if `path` is a safetensors file by its name, or a directory with safetensors files.
bool has_safetensors(const std::string& path);

// "safetensors" if tensors are images or labels by their names, else "tokens". REQUIRES:
// has_safetensors(path).
std::string kind_of_tensors(const std::string& path);

// `axes`: which axis the channels are (npy_dataset.h).
Result<std::unique_ptr<Dataset>> open_tensor_dataset(const TensorPair& pair,
                                                     const std::string& axes,
                                                     const std::string& cache_dir,
                                                     const ProgressFn& progress);

}  // namespace lockstep::data
