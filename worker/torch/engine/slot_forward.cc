#include "worker/torch/engine/slot_forward.h"

#include "worker/torch/engine/precision.h"
#include "worker/torch/engine/sample_loss.h"

namespace lockstep {

SlotForward::SlotForward(const Model& model, Device& device,
                         const std::vector<at::Tensor>& parameters,
                         const std::vector<at::Tensor>& buffers, const Arithmetic& arithmetic,
                         const LossSettings& loss, GradientSink& sink)
    : model_(model),
      device_(device),
      parameters_(parameters),
      buffers_(buffers),
      arithmetic_(arithmetic),
      loss_(loss.kind),
      label_smoothing_(loss.label_smoothing),
      sink_(sink) {}

Result<ModelOutput> SlotForward::train(uint64_t dropout_key,
                                       const ForwardMode::Observer* observer) {
  LOCKSTEP_RETURN_IF_ERROR(device_.reset_statistics());
  return run({.training = true,
              .dropout_key = dropout_key,
              .dropout_key_at = device_.dropout_key_at(),
              .is_fast = arithmetic_.is_fast,
              .observer = observer,
              .kernels = observer == nullptr ? device_.kernels() : LayerKernels{},
              .sink = &sink_,
              .varlen = device_.varlen_attention(),
              .most_documents = device_.most_documents(),
              .is_fp8 = arithmetic_.trains_in_fp8,
              .fp8 = device_.kernels().fp8});
}

Result<ModelOutput> SlotForward::evaluate(std::span<const int64_t> counters) {
  return run({.is_fast = arithmetic_.is_fast,
              .counters = counters,
              .kernels = device_.kernels(),
              .varlen = device_.varlen_attention(),
              .most_documents = device_.most_documents()});
}

Result<ModelOutput> SlotForward::run(const ForwardMode& mode) {
  LOCKSTEP_ASSIGN_OR_RETURN(const at::Tensor x, device_.inputs());
  const auto& own_loss = model_.layout().own_loss;
  const bool takes_labels = own_loss && own_loss->takes_labels;
  const FieldTensors fields = device_.fields();
  ModelOutput output;
  {
    const AutocastScope autocast(device_.where().type(), arithmetic_.compute_type);
    output = model_.forward(
        {.x = x, .labels = takes_labels ? device_.labels() : at::Tensor(), .fields = fields},
        parameters_, buffers_, mode);
    if (!own_loss && loss_ == LossKind::kCrossEntropy)
      output.logits = output.logits.to(device_.loss_type(output.logits.scalar_type()));
  }
  if (own_loss) output.losses = output.losses.to(at::kFloat);
  finish_losses(loss_, own_loss.has_value(), fields, device_.labels(),
                mode.training ? label_smoothing_ : 0, &output);
  return output;
}

}  // namespace lockstep
