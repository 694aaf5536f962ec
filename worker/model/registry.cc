#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "comm/base/text/nearest.h"
#include "worker/model/builtin.h"
#include "worker/model/model.h"

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {"mlp",  "cnn",         "resnet18", "resnet50",
                                       "gpt2", "torchscript", "plugin"};

bool is_known(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const wire::ModelSpec& spec,
                                          const data::SampleShape& shape, uint32_t classes) {
  if (!(spec.dropout() >= 0 && spec.dropout() < 1)) {
    return Status(Code::kUsage, "model.dropout must be at least 0 and below 1, not " +
                                    std::to_string(spec.dropout()));
  }
  if (shape.has_positions && spec.name() != "gpt2") {
    return Status(Code::kUsage,
                  "data.documents is pack, whose sequences only gpt2 can tell apart; "
                  "use pad with model.name " +
                      spec.name());
  }
  if (spec.name() == "torchscript") return make_torchscript(spec, shape, classes);
  if (spec.name() == "plugin") return make_plugin(spec, shape, classes);
  if (is_known(spec.name()) && shape.is_sequence() != (spec.name() == "gpt2")) {
    return Status(Code::kUsage, "model.name is " + spec.name() + ", which does not fit the data: " +
                                    (shape.is_sequence() ? "these are tokens, for gpt2"
                                                         : "these are images, not for gpt2"));
  }
  if (spec.name() == "gpt2") return make_gpt2(spec, shape, classes);
  if (spec.name() == "mlp") return make_mlp(spec, shape, classes);
  if (spec.name() == "cnn") return make_cnn(spec, shape, classes);
  if (spec.name() == "resnet18") return make_resnet(spec, shape, classes, 18);
  if (spec.name() == "resnet50") return make_resnet(spec, shape, classes, 50);
  return Status(Code::kUsage, "model.name is '" + spec.name() +
                                  "', which is not known; it can be " + join_names(kNames) +
                                  did_you_mean(spec.name(), kNames));
}

at::Tensor model_input(const data::SampleShape& shape, const void* inputs, uint64_t batch,
                       at::Device where) {
  const auto n = static_cast<int64_t>(batch);
  const at::TensorOptions options(where);
  const auto view = [&](at::IntArrayRef sizes, at::ScalarType type) {
    return at::for_blob(const_cast<void*>(inputs), sizes)
        .options(options.dtype(type))
        .target_device(where)
        .make_tensor();
  };
  if (shape.is_sequence() && shape.has_positions) return view({n, 2, shape.tokens}, at::kLong);
  if (shape.is_sequence()) return view({n, shape.tokens}, at::kLong);
  if (shape.is_row) return view({n, shape.channels}, at::kFloat);
  return view({n, shape.channels, shape.height, shape.width}, at::kFloat);
}

}  // namespace lockstep
