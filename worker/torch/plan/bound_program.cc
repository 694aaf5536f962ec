#include "worker/torch/plan/bound_program.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <utility>

#include "comm/base/check.h"

namespace lockstep::exported {

at::Tensor tensor_of(const ProgramTensor& tensor) {
  at::Tensor out = at::empty(tensor.shape, torch_type(tensor.dtype));
  if (out.numel() > 0) gather(tensor, static_cast<uint8_t*>(out.mutable_data_ptr()));
  return out;
}

at::Tensor input_of(const UserInput& input, const at::Tensor& x) {
  const bool is_last = input.is_channels_last && (x.dim() == 4 || x.dim() == 5);
  const at::MemoryFormat last =
      x.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  return is_last ? x.contiguous(last) : x;
}

at::Tensor labels_of(const UserInput& input, const at::Tensor& labels) {
  return labels.to(torch_type(input.dtype));
}

Status BoundProgram::move_to(at::Device where) {
  options_.where = where;
  auto plan = ProgramPlan::compile(plan_.shared_program(), options_);
  if (!plan.is_ok()) return plan.status();
  plan_ = *std::move(plan);
  for (InputSource& source : sources_)
    if (source.own.defined()) source.own = source.own.to(where);
  return Status::ok();
}

std::string BoundProgram::changed_tensor() const {
  for (size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].own.defined() && sources_[i].own._version() != versions_[i])
      return program().inputs[i].name;
  return "";
}

std::vector<at::Tensor> BoundProgram::forward(const ModelInputs& given,
                                              std::span<const at::Tensor> parameters,
                                              std::span<const at::Tensor> buffers,
                                              std::span<const int64_t> counters,
                                              const ForwardMode::Observer* observer) const {
  std::vector<at::Tensor> inputs;
  inputs.reserve(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) {
    const InputSource& source = sources_[i];
    switch (source.kind) {
      case InputSource::Kind::kNone:
        inputs.emplace_back();
        break;
      case InputSource::Kind::kParameter:
        inputs.push_back(parameters[source.index]);
        break;
      case InputSource::Kind::kStatistic:
        inputs.push_back(buffers[source.index].view(source.shape));
        break;
      case InputSource::Kind::kCounter:
        LOCKSTEP_CHECK(source.index < counters.size(), "a forward without the counters");
        inputs.push_back(plan_.uses_input(i)
                             ? at::full(source.shape, counters[source.index],
                                        at::TensorOptions(options_.where).dtype(at::kLong))
                             : at::Tensor());
        break;
      case InputSource::Kind::kOwn:
        inputs.push_back(source.own);
        break;
      case InputSource::Kind::kUser:
        inputs.push_back(input_of(program().user_inputs[source.user_input], given.x));
        break;
      case InputSource::Kind::kLabels:
        inputs.push_back(labels_of(program().user_inputs[source.user_input], given.labels));
        break;
      case InputSource::Kind::kField:
        LOCKSTEP_CHECK(source.index < given.fields.all.size(), "a forward without the fields");
        inputs.push_back(
            labels_of(program().user_inputs[source.user_input], given.fields.all[source.index]));
        break;
    }
  }
  return plan_.run(inputs, observer);
}

}  // namespace lockstep::exported
