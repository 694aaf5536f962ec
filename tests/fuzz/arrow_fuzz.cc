// Any bytes as an Arrow file: refused, or columns and samples that lie within it, also after it was
// inflated.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/base/limits.h"
#include "data/arrow/column.h"
#include "data/arrow/file_layout.h"
#include "data/arrow/inflate.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/arrow/arrow_images.h"
#include "tests/fuzz/samples_within.h"

namespace lockstep::data {
namespace {

void check_layout(const ArrowLayout& layout, std::span<const uint8_t> file) {
  for (const ArrowBatch& batch : layout.batches) {
    LOCKSTEP_CHECK(batch.nodes.size() == layout.schema.nodes(), "a batch has all columns");
    for (const ArrowBuffer& buffer : batch.buffers)
      LOCKSTEP_CHECK(buffer.offset <= file.size() && buffer.bytes <= file.size() - buffer.offset,
                     "a buffer lies within its file");
  }
}

// Reads every byte that it is given.
void touch(const ArrowLayout& layout, const ArrowChoice& choice, std::span<const uint8_t> file) {
  uint64_t sum = 0;
  for (const ArrowBatch& batch : layout.batches) {
    if (batch.codec != ArrowCodec::kNone) continue;
    for (const ArrowPart& part : parts_of(layout.schema, batch, choice.samples)) {
      if (part.field->kind != ArrowKind::kInt) continue;
      const auto values = fixed_values(file, part);
      for (uint64_t i = 0; values.is_ok() && i < part.node.rows; ++i)
        sum += static_cast<uint64_t>(arrow_integer(*part.field, *values, i));
    }
  }
  LOCKSTEP_CHECK(sum + 1 != 0 || sum == UINT64_MAX, "what was read is used");
}

void try_inflated(const ArrowLayout& layout, const ArrowChoice& choice,
                  std::span<const uint8_t> file) {
  std::vector<size_t> columns = {choice.samples};
  if (choice.use != ArrowUse::kTokens) columns.push_back(choice.label);
  std::sort(columns.begin(), columns.end());
  std::vector<uint8_t> plain;
  constexpr uint64_t kMost = 1 << 20;
  const Status status =
      inflate_arrow(file, layout, columns, [&](std::span<const uint8_t> piece, uint64_t bytes) {
        if (bytes > kMost) return Status(Code::kUsage, "more than this looks at");
        plain.insert(plain.end(), piece.begin(), piece.end());
        return Status::ok();
      });
  if (!status.is_ok()) return;
  const auto again = parse_arrow(plain);
  LOCKSTEP_CHECK(again.is_ok() && !again->is_compressed(), "what was inflated is a file");
  if (choice.use == ArrowUse::kEncoded) check_samples_within(samples_of_arrow(plain), plain);
}

void try_file(std::span<const uint8_t> file) {
  check_samples_within(samples_of_arrow(file), file);
  const auto layout = parse_arrow(file);
  if (!layout.is_ok()) return;
  check_layout(*layout, file);
  const auto choice = choose_columns(layout->schema);
  if (!choice.is_ok()) return;
  touch(*layout, *choice, file);
  try_inflated(*layout, *choice, file);
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::data::try_file({data, size});
  return 0;
}
