#include <string_view>

#include "comm/base/nearest.h"
#include "worker/model/builtin.h"
#include "worker/model/model.h"

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {"mlp", "cnn", "resnet18", "resnet50"};

}  // namespace

Result<std::unique_ptr<Model>> make_model(const wire::ModelSpec& spec,
                                          const data::SampleShape& shape, uint32_t classes) {
  if (!(spec.dropout() >= 0 && spec.dropout() < 1)) {
    return Status(Code::kUsage, "model.dropout must be at least 0 and below 1, not " +
                                    std::to_string(spec.dropout()));
  }
  if (spec.name() == "mlp") return make_mlp(spec, shape, classes);
  if (spec.name() == "cnn") return make_cnn(spec, shape, classes);
  if (spec.name() == "resnet18") return make_resnet(spec, shape, classes, 18);
  if (spec.name() == "resnet50") return make_resnet(spec, shape, classes, 50);
  return Status(Code::kUsage, "model.name is '" + spec.name() +
                                  "', which is not known; it can be " + join_names(kNames) +
                                  did_you_mean(spec.name(), kNames));
}

}  // namespace lockstep
