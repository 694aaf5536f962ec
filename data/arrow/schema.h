// The columns of an Arrow file, as far as Lockstep needs them. Lockstep describes possible samples
// and labels in full. For any other column it keeps only the number of buffers, to pass over them.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::data {

enum class ArrowKind {
  kInt,
  kFloat,
  kBinary,       // offsets of 4 bytes
  kLargeBinary,  // offsets of 8 bytes
  kFixedBinary,
  kList,
  kLargeList,
  kFixedList,
  kStruct,
  kOther,
};

struct ArrowField {
  std::string name;
  ArrowKind kind = ArrowKind::kOther;
  uint32_t width = 0;  // bytes of a number or of fixed binary; entries of a fixed list
  bool is_signed = false;
  bool is_dictionary = false;  // the buffer holds indices into a dictionary elsewhere
  bool is_view = false;        // each batch says how many more buffers the view has
  uint32_t buffers = 0;        // without the buffers of children
  std::string type_text;       // "fixed_size_list[784] of uint8", for messages
  std::vector<ArrowField> children;
  std::map<std::string, std::string> metadata;
};

// True for lists of any length and of a fixed length. The only child holds the values.
inline bool is_list(const ArrowField& field) {
  return field.kind == ArrowKind::kList || field.kind == ArrowKind::kLargeList ||
         field.kind == ArrowKind::kFixedList;
}

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::map<std::string, std::string> metadata;

  // Counts the fields and all their descendants.
  size_t nodes() const;
};

// "image (binary), label (int64)", for messages; at most a dozen columns.
std::string columns_text(const ArrowSchema& schema);

// An integer of this type, or a float32, without metadata.
ArrowField arrow_int(std::string name, uint32_t bytes, bool is_signed);
ArrowField arrow_float32(std::string name);
// Lists of any length, with offsets of 4 bytes.
ArrowField arrow_list(std::string name, ArrowField value);

}  // namespace lockstep::data
