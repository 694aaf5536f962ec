// The fields of a sample, besides its input and its label: further inputs, targets of other kinds
// than a class, and a weight (data.inputs, data.targets, data.weight).
//
// The fields of a sample lie one after another in its record, each at a multiple of 8 bytes. A
// batch has its records after its labels, so code that carries labels carries fields:
//
//   labels (B x SampleShape::labels()), int64 │ record 0 │ record 1 │ ... │ record B-1
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::data {

enum class FieldType : uint8_t { kU8, kI64, kF32 };

constexpr uint64_t bytes_of(FieldType type) {
  if (type == FieldType::kU8) return 1;
  return type == FieldType::kI64 ? 8 : 4;
}
constexpr const char* name_of(FieldType type) {
  if (type == FieldType::kU8) return "uint8";
  return type == FieldType::kI64 ? "int64" : "float32";
}

enum class FieldRole : uint8_t { kInput, kTarget, kWeight };

struct FieldSpec {
  std::string name;  // as the job says
  FieldRole role = FieldRole::kTarget;
  FieldType type = FieldType::kF32;
  std::vector<uint32_t> dims = {};  // of one sample, row-major; empty: one value
  // The target is the label of the sample (SampleShape::labels()). It has no bytes in the record.
  bool is_label = false;
  // An image that is cut, turned and mirrored as the sample's own image is.
  bool follows_image = false;

  uint64_t elements() const {
    uint64_t n = 1;
    for (const uint32_t dim : dims) n *= dim;
    return n;
  }
  uint64_t bytes() const { return is_label ? 0 : elements() * bytes_of(type); }
  bool operator==(const FieldSpec&) const = default;
};

// All that a job names, in its order: inputs after the first, targets, the weight. Empty for
// samples without a label.
class FieldList {
 public:
  explicit FieldList(std::vector<FieldSpec> specs) : specs_(std::move(specs)) {
    for (const FieldSpec& spec : specs_) {
      offsets_.push_back(record_bytes_);
      record_bytes_ += (spec.bytes() + 7) / 8 * 8;
    }
  }

  const std::vector<FieldSpec>& specs() const { return specs_; }
  uint64_t offset(size_t field) const { return offsets_[field]; }  // in the record, in bytes
  uint64_t record_bytes() const { return record_bytes_; }          // a multiple of 8

  // The first of this role; empty: there is none.
  std::optional<size_t> find(FieldRole role) const {
    const auto found = std::find_if(specs_.begin(), specs_.end(),
                                    [&](const FieldSpec& spec) { return spec.role == role; });
    if (found == specs_.end()) return std::nullopt;
    return static_cast<size_t>(found - specs_.begin());
  }
  bool has_label() const {
    return std::any_of(specs_.begin(), specs_.end(),
                       [](const FieldSpec& spec) { return spec.is_label; });
  }

  bool operator==(const FieldList& other) const { return specs_ == other.specs_; }

 private:
  std::vector<FieldSpec> specs_;
  std::vector<uint64_t> offsets_;
  uint64_t record_bytes_ = 0;
};

// "depth (float32 1x28x28), price (float32)", for messages; "no label" if it is empty.
std::string text_of(const FieldList& fields);

// The fingerprint of a data set with these fields, from `content`: the fingerprint of the rest, and
// of what the fields hold, in their order.
std::string fingerprint_of(const FieldList& fields, const std::vector<std::string>& content);

}  // namespace lockstep::data
