// The names of the data formats, as data.train.format and data.eval.format have them.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace lockstep {

// In the order for people. data/open/open_dataset.h describes each.
inline constexpr std::string_view kDataFormats[] = {
    "auto",       "idx",   "cifar10",      "cifar100",     "npy",        "npy_nchw",
    "npy_nhwc",   "npz",   "safetensors",  "image_folder", "webdataset", "tfrecord",
    "mds",        "arrow", "arrow_images", "arrow_tokens", "megatron",   "tokens",
    "tokens_u32", "text",  "csv",
};

// True if a sample is a sequence of tokens, else it is an image. REQUIRES: the format is resolved:
// `auto`, `npy`, `safetensors` and `arrow` may turn out to be either (data/open/detect_format.h).
inline bool is_token_format(std::string_view format) {
  return format == "megatron" || format == "tokens" || format == "tokens_u32" || format == "text" ||
         format == "arrow_tokens";
}

// True if a sample is a JPEG or PNG image, decoded on use. REQUIRES: the format is resolved.
inline bool is_encoded_format(std::string_view format) {
  return format == "image_folder" || format == "webdataset" || format == "tfrecord" ||
         format == "mds" || format == "arrow_images";
}

inline bool is_data_format(std::string_view format) {
  return std::find(std::begin(kDataFormats), std::end(kDataFormats), format) !=
         std::end(kDataFormats);
}

// "a, b and c".
inline std::string known_data_formats() {
  std::string text;
  for (const std::string_view& format : kDataFormats) {
    if (!text.empty()) text += &format == std::end(kDataFormats) - 1 ? " and " : ", ";
    text += format;
  }
  return text;
}

}  // namespace lockstep
