#include "data/loader/cut_padding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace lockstep::data {
namespace {

// Rows move to the front, so none is overwritten before it has moved.
void narrow_rows(int64_t* rows, uint64_t count, uint64_t from, uint64_t to) {
  for (uint64_t i = 1; i < count; ++i)
    std::memmove(rows + i * to, rows + i * from, to * sizeof(int64_t));
}

}  // namespace

void cut_padding(const As<Sequences>& sequences, std::span<const uint64_t> samples,
                 std::byte* inputs, int64_t* labels, SampleShape* shape) {
  uint64_t longest = 1;
  for (const uint64_t i : samples) {
    const auto [from, number] = sequences.at(i);
    longest = std::max(longest, from.counted_labels(number));
  }
  const uint64_t whole_steps = (longest + kWidthStep - 1) / kWidthStep * kWidthStep;
  const uint64_t width = std::min<uint64_t>(whole_steps, shape->tokens);
  if (width == shape->tokens) return;
  narrow_rows(reinterpret_cast<int64_t*>(inputs), samples.size(), shape->tokens, width);
  narrow_rows(labels, samples.size(), shape->tokens, width);
  shape->tokens = static_cast<uint32_t>(width);
}

void cut_padding(const Dataset& data, uint64_t begin, uint64_t end, std::byte* inputs,
                 int64_t* labels, SampleShape* shape) {
  if (!shape->is_padded) return;
  std::vector<uint64_t> samples(end - begin);
  std::iota(samples.begin(), samples.end(), begin);
  cut_padding(*data.as<Sequences>(), samples, inputs, labels, shape);
}

}  // namespace lockstep::data
