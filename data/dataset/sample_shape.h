// Thread-safety: a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "data/dataset/fields.h"

namespace lockstep::data {

// The common shape of all samples of a data set: an image of bytes or of floats, a volume of
// floats, a row of a table, a row of ids, or a sequence of tokens.
struct SampleShape {
  uint32_t channels = 0;  // of an image; 0 for a sequence
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t tokens = 0;       // of a sequence; 0 for an image
  uint32_t token_bytes = 0;  // as stored, little-endian: 1, 2, 4 or 8
  // Images are stored as (H, W, C). SampleReader (data/loader) turns them into (C, H, W)
  // for the model, so Lockstep can read large files in place.
  bool channels_last = false;
  // A row of a table: a 1 x 1 image whose channels are the columns, with float32 values.
  bool is_row = false;
  // A sequence of several documents. After the tokens come as many positions. Each position counts
  // from the first token of its document, so a model can tell the documents apart.
  bool has_positions = false;
  // A sequence of one document. A batch may leave out the padding at the end of all of its samples
  // (data/loader/cut_padding.h). Then the batch is shorter than `tokens`.
  bool is_padded = false;
  // Bytes of one float of an image of floats, as stored, little-endian: 2, 4 or 8. 0: an image of
  // bytes, or no image.
  uint32_t float_bytes = 0;
  uint32_t depth = 0;  // of a volume of floats, (C, D, H, W); 0: an image
  // Bytes of one id of a row of ids, as stored, little-endian: 1, 2, 4 or 8. Ids are whole numbers,
  // one a channel, that a model gets as int64. Unlike a sequence, a row of ids has a label of its
  // own. 0: other samples.
  uint32_t id_bytes = 0;
  bool has_signed_ids = false;  // as stored; those below 0 are refused
  // Fields of images and rows besides the input and the label (data.inputs, data.targets,
  // data.weight). Null: none.
  std::shared_ptr<const FieldList> fields = {};

  bool is_sequence() const { return tokens > 0; }
  bool has_ids() const { return id_bytes > 0; }
  // An image of bytes, which a device may transform by itself.
  bool has_bytes() const { return !is_sequence() && !is_row && float_bytes == 0 && id_bytes == 0; }
  // How many values a model gets for one sample: an image's floats, or token ids and positions.
  uint64_t elements() const {
    if (is_sequence()) return has_positions ? uint64_t{2} * tokens : tokens;
    return uint64_t{channels} * std::max(depth, 1U) * height * width;
  }
  // The dimensions of one image, volume or row, of a table or of ids, as a model gets it.
  std::vector<int64_t> model_sizes() const {
    if (is_row || has_ids()) return {channels};
    if (depth > 0) return {channels, depth, height, width};
    return {channels, height, width};
  }
  // How many predictions a model makes for one sample.
  uint64_t labels() const { return is_sequence() ? tokens : 1; }
  // False: all targets are fields, and every label is 0.
  bool has_label() const { return fields == nullptr || fields->has_label(); }
  uint64_t record_bytes() const { return fields == nullptr ? 0 : fields->record_bytes(); }
  // How many int64 a sample takes in the memory of labels: its labels and its record (fields.h).
  uint64_t label_words() const { return labels() + record_bytes() / sizeof(int64_t); }
  // The bytes of one stored sample. A sequence has one more token, the last label. At most
  // limits::kSampleBytes.
  uint64_t stored_bytes() const {
    if (is_sequence()) return (uint64_t{tokens} + 1) * token_bytes;
    if (is_row) return elements() * sizeof(float);
    return elements() * std::max({float_bytes, id_bytes, 1U});
  }
  bool operator==(const SampleShape& other) const {
    const auto plain = [](const SampleShape& s) {
      return std::tie(s.channels, s.height, s.width, s.tokens, s.token_bytes, s.channels_last,
                      s.is_row, s.has_positions, s.is_padded, s.float_bytes, s.depth, s.id_bytes,
                      s.has_signed_ids);
    };
    if (plain(*this) != plain(other)) return false;
    if (fields == nullptr || other.fields == nullptr) return fields == other.fields;
    return *fields == *other.fields;
  }
};

// The records of a batch of `samples`, after its labels. Null: there are none.
inline std::byte* records_of(const SampleShape& shape, int64_t* labels, uint64_t samples) {
  if (shape.record_bytes() == 0) return nullptr;
  return reinterpret_cast<std::byte*>(labels + samples * shape.labels());
}

}  // namespace lockstep::data
