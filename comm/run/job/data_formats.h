// The names of the data formats, as data.train.format and data.eval.format have them, and what can
// be said of each without opening a file. How each is found and opened: data/open/formats.h.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace lockstep {

enum class SampleKind : uint8_t {
  kUnknown,   // until the files are looked at
  kStored,    // pixels or rows, as they lie in the files
  kEncoded,   // JPEG, PNG, WebP or BMP images, decoded on use
  kSequence,  // of tokens
};

enum class FormatColumns : uint8_t {
  kNone,
  kInput,  // data.input chooses one
  kLabel,  // data.label does
  kBoth,
};

// Whether samples may have fields besides the input and the label (data/dataset/fields.h).
enum class FormatFields : uint8_t {
  kNone,
  kTargets,  // data.targets and data.weight; data.inputs lists the columns of the one input
  kAll,      // also data.inputs after the first
};

struct NamedFormat {
  std::string_view name;
  SampleKind kind = SampleKind::kUnknown;
  bool is_text = false;  // data.tokenizer makes tokens of it
  // Other formats that the files may turn out to be where a job says this one.
  std::array<std::string_view, 3> may_be = {};
  // Far away: endings, in lower case, of files whose samples are fetched one by one.
  std::array<std::string_view, 8> ranged = {};
  // Far away: whether a file of this name, in lower case, may be one whose first bytes tell if its
  // samples can be fetched one by one.
  bool (*is_told_by_head)(std::string_view leaf) = nullptr;
  // A file next to the others that says what is in them.
  std::string_view described_by = {};
  // Columns of tables and Arrow, features of TFRecord, files of a sample in WebDataset.
  FormatColumns columns = FormatColumns::kNone;
  FormatFields fields = FormatFields::kNone;
};

// Whether the name looks like a TFRecord file's: "cifar.tfrecord", "x.tfrec", "train.record", or
// "train-00000-of-01024".
inline bool may_be_tfrecord(std::string_view leaf) {
  if (leaf.find("tfrec") != std::string_view::npos) return true;
  if (leaf.ends_with(".record") || leaf.ends_with(".records")) return true;
  const size_t of = leaf.rfind("-of-");
  return of != std::string_view::npos && of + 4 < leaf.size() &&
         std::all_of(leaf.begin() + static_cast<std::ptrdiff_t>(of) + 4, leaf.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// In the order for people. data/FORMATS.md describes each.
inline constexpr NamedFormat kNamedFormats[] = {
    {.name = "auto"},
    {.name = "idx", .kind = SampleKind::kStored},
    {.name = "cifar10", .kind = SampleKind::kStored},
    {.name = "cifar100", .kind = SampleKind::kStored, .columns = FormatColumns::kLabel},
    {.name = "npy",
     .kind = SampleKind::kStored,
     .may_be = {"tokens"},
     .fields = FormatFields::kAll},
    {.name = "npy_nchw", .kind = SampleKind::kStored, .fields = FormatFields::kAll},
    {.name = "npy_nhwc", .kind = SampleKind::kStored, .fields = FormatFields::kAll},
    {.name = "npz", .kind = SampleKind::kStored, .fields = FormatFields::kAll},
    {.name = "safetensors",
     .kind = SampleKind::kStored,
     .may_be = {"tokens"},
     .fields = FormatFields::kAll},
    {.name = "image_folder",
     .kind = SampleKind::kEncoded,
     .ranged = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp"}},
    {.name = "image_mask",
     .kind = SampleKind::kEncoded,
     .ranged = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp"},
     .fields = FormatFields::kAll},
    {.name = "webdataset",
     .kind = SampleKind::kEncoded,
     .ranged = {".tar"},
     .columns = FormatColumns::kBoth,
     .fields = FormatFields::kAll},
    {.name = "tfrecord",
     .kind = SampleKind::kEncoded,
     .is_told_by_head = may_be_tfrecord,
     .columns = FormatColumns::kBoth},
    {.name = "mds",
     .kind = SampleKind::kEncoded,
     .ranged = {".mds"},
     .described_by = "index.json",
     .columns = FormatColumns::kBoth},
    {.name = "arrow",
     .kind = SampleKind::kStored,
     .may_be = {"arrow_images", "arrow_tokens", "tokens"},
     .columns = FormatColumns::kBoth,
     .fields = FormatFields::kTargets},
    {.name = "arrow_images", .kind = SampleKind::kEncoded, .columns = FormatColumns::kBoth},
    {.name = "arrow_tokens", .kind = SampleKind::kSequence, .columns = FormatColumns::kInput},
    {.name = "megatron", .kind = SampleKind::kSequence},
    {.name = "tokens", .kind = SampleKind::kSequence},
    {.name = "tokens_u32", .kind = SampleKind::kSequence},
    {.name = "text", .kind = SampleKind::kSequence, .is_text = true},
    {.name = "csv",
     .kind = SampleKind::kStored,
     .columns = FormatColumns::kBoth,
     .fields = FormatFields::kTargets},
};

inline constexpr auto kDataFormats = [] {
  std::array<std::string_view, std::size(kNamedFormats)> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kNamedFormats[i].name;
  return names;
}();

// Null if `name` is no name of a format.
inline const NamedFormat* named_format(std::string_view name) {
  const auto* found = std::find_if(std::begin(kNamedFormats), std::end(kNamedFormats),
                                   [&](const NamedFormat& format) { return format.name == name; });
  return found == std::end(kNamedFormats) ? nullptr : found;
}

inline bool is_data_format(std::string_view format) {
  return named_format(format) != nullptr;
}

inline SampleKind kind_of_format(std::string_view format) {
  const NamedFormat* named = named_format(format);
  return named == nullptr ? SampleKind::kUnknown : named->kind;
}

// REQUIRES for these two: the format is resolved, since `auto` and formats that may be another one
// leave the kind open (data/open/detect_format.h).
inline bool is_token_format(std::string_view format) {
  return kind_of_format(format) == SampleKind::kSequence;
}
inline bool is_encoded_format(std::string_view format) {
  return kind_of_format(format) == SampleKind::kEncoded;
}

inline FormatFields fields_of_format(std::string_view format) {
  const NamedFormat* named = named_format(format);
  return named == nullptr ? FormatFields::kNone : named->fields;
}

inline bool is_text_format(std::string_view format) {
  const NamedFormat* named = named_format(format);
  return named != nullptr && named->is_text;
}

// Whether the files at a path for which a job says `format` may be of another format.
inline bool is_open_format(std::string_view format) {
  const NamedFormat* named = named_format(format);
  return named != nullptr && !named->may_be[0].empty();
}
// Whether `other` is one of these formats.
inline bool may_be_format(std::string_view format, std::string_view other) {
  const NamedFormat* named = named_format(format);
  return named != nullptr && !other.empty() &&
         std::find(named->may_be.begin(), named->may_be.end(), other) != named->may_be.end();
}

// "a, b and c".
inline std::string known_data_formats() {
  std::string text;
  for (const std::string_view& format : kDataFormats) {
    if (!text.empty()) text += &format == &kDataFormats.back() ? " and " : ", ";
    text += format;
  }
  return text;
}

}  // namespace lockstep
