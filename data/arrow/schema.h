// The columns of an Arrow file, as far as Lockstep has to know them: what can be a sample or a
// label in full, of anything else how many buffers it has, so that it can be passed over.
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
  kLargeBinary,  // of 8
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
  bool is_dictionary = false;  // its buffer has numbers of values that lie elsewhere
  bool is_view = false;        // has as many more buffers as each batch says
  uint32_t buffers = 0;        // of its own, without its children's
  std::string type_text;       // "fixed_size_list[784] of uint8", for messages
  std::vector<ArrowField> children;
  std::map<std::string, std::string> metadata;
};

// Of rows of any length, or of one; its one child has the values.
inline bool is_list(const ArrowField& field) {
  return field.kind == ArrowKind::kList || field.kind == ArrowKind::kLargeList ||
         field.kind == ArrowKind::kFixedList;
}

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::map<std::string, std::string> metadata;

  // Of fields and all that is below them.
  size_t nodes() const;
};

// "image (binary), label (int64)", for messages; at most a dozen.
std::string columns_text(const ArrowSchema& schema);

// An integer of this type, or a float32, without metadata.
ArrowField arrow_int(std::string name, uint32_t bytes, bool is_signed);
ArrowField arrow_float32(std::string name);
// Lists of any length, with offsets of 4 bytes.
ArrowField arrow_list(std::string name, ArrowField value);

}  // namespace lockstep::data
