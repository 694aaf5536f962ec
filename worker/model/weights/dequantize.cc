#include "worker/model/weights/dequantize.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "worker/model/int8/int8_values.h"

namespace lockstep {
namespace {

bool is_of(const FileTensor& tensor, std::string_view type) {
  return tensor.type->name == type;
}

// The dimension of the channels: the only one that the scales have, too. Empty: they do not fit.
std::optional<size_t> channel_dim_of(const FileTensor& numbers, const FileTensor& scales) {
  if (numbers.shape.size() != scales.shape.size() || numbers.shape.empty()) return std::nullopt;
  size_t dim = 0;
  for (size_t d = 0; d < scales.shape.size(); ++d)
    if (scales.shape[d] != 1) dim = d;
  for (size_t d = 0; d < scales.shape.size(); ++d)
    if (scales.shape[d] != (d == dim ? numbers.shape[d] : 1)) return std::nullopt;
  return dim;
}

}  // namespace

Result<FloatTensors> dequantized(const WeightFiles& files) {
  FloatTensors out{.tensors = files.tensors(), .floats = {}};
  std::set<std::string> scale_names;
  for (FileTensor& tensor : out.tensors) {
    if (!is_of(tensor, "I8")) continue;
    const std::string name = tensor.name + kScaleEnding;
    const auto scales = std::ranges::find(out.tensors, name, &FileTensor::name);
    const Status bad(Code::kBadData,
                     "the weights " + tensor.name + " are in 8 bits, and their scales " + name +
                         " are missing or of another shape; export the model again");
    if (scales == out.tensors.end() || !is_of(*scales, "F32")) return bad;
    const auto dim = channel_dim_of(tensor, *scales);
    if (!dim) return bad;
    const ChannelExtents extents = extents_along(tensor.shape, *dim);
    std::vector<float> by_channel(extents.channels);
    std::memcpy(by_channel.data(), scales->data, by_channel.size() * sizeof(float));
    std::vector<float>& floats = out.floats.emplace_back(extents.elements());
    from_int8({reinterpret_cast<const int8_t*>(tensor.data), floats.size()}, by_channel, extents,
              floats);
    tensor.type = scales->type;
    tensor.data = reinterpret_cast<const uint8_t*>(floats.data());
    scale_names.insert(name);
  }
  std::erase_if(out.tensors,
                [&](const FileTensor& tensor) { return scale_names.contains(tensor.name); });
  return out;
}

}  // namespace lockstep
