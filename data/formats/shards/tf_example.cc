#include "data/formats/shards/tf_example.h"

#include <optional>

#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

Status no_example() {
  return bad("does not hold a tensorflow.train.Example");
}

// Field after field of a message.
class Fields {
 public:
  explicit Fields(std::span<const uint8_t> message) : rest_(message) {}

  bool at_end() const { return rest_.empty(); }

  Status next() {
    const auto key = varint();
    if (!key || *key >> 3 == 0 || *key >> 32 != 0) return no_example();
    field_ = static_cast<uint32_t>(*key >> 3);
    wire_ = static_cast<uint32_t>(*key & 7);
    return take_value() ? Status::ok() : no_example();
  }

  bool is(uint32_t field, Wire wire) const { return field_ == field && wire_ == wire; }
  std::span<const uint8_t> bytes() const { return bytes_; }  // of kBytes
  uint64_t number() const { return number_; }                // of kVarint

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const uint8_t byte = rest_.front();
      rest_ = rest_.subspan(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

 private:
  bool take_value() {
    if (wire_ == kVarint) {
      const auto value = varint();
      number_ = value.value_or(0);
      return value.has_value();
    }
    uint64_t size = 0;
    if (wire_ == kFixed64 || wire_ == kFixed32) {
      size = wire_ == kFixed64 ? 8 : 4;
    } else if (wire_ == kBytes) {
      const auto said = varint();
      if (!said) return false;
      size = *said;
    } else {
      return false;
    }
    if (size > rest_.size()) return false;
    bytes_ = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
  }

  std::span<const uint8_t> rest_;
  std::span<const uint8_t> bytes_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  uint32_t wire_ = 0;
};

void append_number(uint64_t value, TfFeature& feature) {
  if (feature.numbers++ == 0) feature.number = static_cast<int64_t>(value);
}

// Numbers one by one, or packed into one field: writers may do either.
Status read_numbers(std::span<const uint8_t> list, TfFeature& feature) {
  for (Fields fields(list); !fields.at_end();) {
    LOCKSTEP_RETURN_IF_ERROR(fields.next());
    if (fields.is(1, kVarint)) append_number(fields.number(), feature);
    if (!fields.is(1, kBytes)) continue;
    for (Fields packed(fields.bytes()); !packed.at_end();) {
      const auto value = packed.varint();
      if (!value) return no_example();
      append_number(*value, feature);
    }
  }
  return Status::ok();
}

Status read_texts(std::span<const uint8_t> list, TfFeature& feature) {
  for (Fields fields(list); !fields.at_end();) {
    LOCKSTEP_RETURN_IF_ERROR(fields.next());
    if (fields.is(1, kBytes) && feature.texts++ == 0) feature.text = fields.bytes();
  }
  return Status::ok();
}

Status read_feature(std::span<const uint8_t> bytes, TfFeature& feature) {
  for (Fields fields(bytes); !fields.at_end();) {
    LOCKSTEP_RETURN_IF_ERROR(fields.next());
    if (fields.is(1, kBytes)) LOCKSTEP_RETURN_IF_ERROR(read_texts(fields.bytes(), feature));
    if (fields.is(3, kBytes)) LOCKSTEP_RETURN_IF_ERROR(read_numbers(fields.bytes(), feature));
  }
  return Status::ok();
}

Status read_feature_entry(std::span<const uint8_t> bytes, TfFeature& feature) {
  for (Fields fields(bytes); !fields.at_end();) {
    LOCKSTEP_RETURN_IF_ERROR(fields.next());
    if (fields.is(1, kBytes))
      feature.name = {reinterpret_cast<const char*>(fields.bytes().data()), fields.bytes().size()};
    if (fields.is(2, kBytes)) LOCKSTEP_RETURN_IF_ERROR(read_feature(fields.bytes(), feature));
  }
  return Status::ok();
}

}  // namespace

Status walk_example(std::span<const uint8_t> example,
                    const std::function<Status(const TfFeature&)>& each) {
  for (Fields fields(example); !fields.at_end();) {
    LOCKSTEP_RETURN_IF_ERROR(fields.next());
    if (!fields.is(1, kBytes)) continue;
    for (Fields entries(fields.bytes()); !entries.at_end();) {
      LOCKSTEP_RETURN_IF_ERROR(entries.next());
      if (!entries.is(1, kBytes)) continue;
      TfFeature feature;
      LOCKSTEP_RETURN_IF_ERROR(read_feature_entry(entries.bytes(), feature));
      LOCKSTEP_RETURN_IF_ERROR(each(feature));
    }
  }
  return Status::ok();
}

}  // namespace lockstep::data
