#include "worker/torch/model/foreign.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "comm/base/prng.h"
#include "comm/run/job/loss_kind.h"
#include "data/loader/cut_padding.h"

namespace lockstep {
namespace {

std::string text(at::IntArrayRef sizes) {
  std::ostringstream out;
  out << '(';
  for (size_t i = 0; i < sizes.size(); ++i) out << (i > 0 ? ", " : "") << sizes[i];
  out << ')';
  return out.str();
}

std::string tried(const Model& model, const InitialTensors& tensors, const ModelInputs& inputs,
                  bool training) {
  std::vector<at::Tensor> before;
  for (const at::Tensor& t : tensors.buffers) before.push_back(t.clone());
  const ModelOutput output =
      model.forward(inputs, tensors.parameters, tensors.buffers, {.training = training});
  const at::Tensor out = output.losses.defined() ? output.losses : output.logits;
  if (!at::isfinite(out.detach()).all().item<bool>())
    return "gives infinite or NaN values for samples in [-1, 1) with its initial parameters";
  if (output.weights.defined() &&
      !at::isfinite(output.weights).logical_and(output.weights.ge(0)).all().item<bool>())
    return "gives a weight that is negative, infinite or NaN; a sample counts with a weight of 0 "
           "or "
           "more";
  if (training && !out.requires_grad())
    return "gives an output that does not depend on its parameters, so it could learn nothing";
  for (size_t i = 0; !training && i < before.size(); ++i) {
    if (same_bits(tensors.buffers[i], before[i])) continue;
    return "changes its buffer " + model.layout().buffers[i].name +
           " in evaluation; it may change buffers in training only";
  }
  return "";
}

}  // namespace

InitialTensors initial_tensors(const ModelLayout& layout) {
  constexpr uint64_t kAnySeed = 1;
  InitialTensors out;
  for (uint32_t i = 0; i < layout.parameters.size(); ++i) {
    at::Tensor t = at::empty(layout.parameters[i].shape);
    init_parameter(layout.parameters[i], kAnySeed, i, t.mutable_data_ptr<float>());
    out.parameters.push_back(t.set_requires_grad(true));
  }
  for (const BufferSpec& spec : layout.buffers) {
    out.buffers.push_back(at::empty({spec.size}));
    init_buffer(spec, out.buffers.back().mutable_data_ptr<float>());
  }
  return out;
}

at::Tensor sample_input(const data::SampleShape& shape, uint64_t batch, uint32_t classes) {
  const auto n = static_cast<int64_t>(batch);
  const auto count = static_cast<int64_t>(batch * shape.elements());
  if (shape.is_sequence()) {
    at::Tensor tokens = at::empty({n, shape.tokens}, at::kLong);
    auto* out = tokens.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<int64_t>(mix64(static_cast<uint64_t>(i)) % classes);
    return tokens;
  }
  std::vector<int64_t> sizes = shape.model_sizes();
  sizes.insert(sizes.begin(), n);
  // Ids that every table of at least two has.
  if (shape.has_ids()) {
    at::Tensor ids = at::empty(sizes, at::kLong);
    for (int64_t i = 0; i < count; ++i) ids.mutable_data_ptr<int64_t>()[i] = i % 2;
    return ids;
  }
  at::Tensor image = at::empty(sizes);
  auto* out = image.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(mix64(static_cast<uint64_t>(i)) >> 40) * 0x1p-23f - 1;
  return image;
}

at::Tensor sample_labels(const data::SampleShape& shape, uint64_t batch, uint32_t classes) {
  const auto n = static_cast<int64_t>(batch);
  at::Tensor labels =
      shape.is_sequence() ? at::empty({n, shape.tokens}, at::kLong) : at::empty({n}, at::kLong);
  auto* out = labels.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    out[i] = static_cast<int64_t>(mix64(~static_cast<uint64_t>(i)) % classes);
  return labels;
}

ModelInputs sample_inputs(const data::SampleShape& shape, uint64_t batch, uint32_t classes) {
  std::vector<int64_t> memory(batch * shape.label_words());
  const at::Tensor labels = sample_labels(shape, batch, classes);
  std::byte* record = records_of(shape, memory.data(), batch);
  for (uint64_t i = 0; record != nullptr && i < batch; ++i, record += shape.record_bytes()) {
    for (size_t f = 0; f < shape.fields->specs().size(); ++f) {
      const data::FieldSpec& field = shape.fields->specs()[f];
      std::byte* const out = record + shape.fields->offset(f);
      for (uint64_t e = 0; !field.is_label && e < field.elements(); ++e) {
        const uint64_t random = mix64(i * field.elements() + e + (f << 32));
        const auto number = static_cast<float>(random >> 40) * 0x1p-24f;
        const auto whole = static_cast<int64_t>(random % 2);
        if (field.type == data::FieldType::kU8) out[e] = static_cast<std::byte>(whole);
        if (field.type == data::FieldType::kI64) std::memcpy(out + 8 * e, &whole, sizeof whole);
        if (field.type == data::FieldType::kF32) std::memcpy(out + 4 * e, &number, sizeof number);
      }
    }
  }
  return {.x = sample_input(shape, batch, classes),
          .labels = labels,
          .fields = field_inputs(shape, memory.data(), batch)};
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

std::string wrong_output(const at::Tensor& output, const at::Tensor& x,
                         const data::SampleShape& shape, uint32_t classes) {
  std::vector<int64_t> wanted = {x.size(0), classes};
  if (shape.is_sequence())
    wanted.insert(wanted.begin() + 1, shape.is_padded ? x.size(1) : int64_t{shape.tokens});
  const char* what = shape.is_row || shape.has_ids() ? "rows" : "images";
  const std::string needed = std::string(shape.is_sequence() ? "tokens" : what) + " need logits " +
                             text(wanted) + " for " + std::to_string(x.size(0)) + " samples";
  if (!output.defined()) return "gives no tensor; " + needed;
  if (!at::isFloatingType(output.scalar_type()) || output.device() != x.device())
    return std::string("gives values of type ") + c10::toString(output.scalar_type()) + " on " +
           output.device().str() + "; " + needed + ", of floats on " + x.device().str();
  if (output.sizes() == at::IntArrayRef(wanted)) return "";
  // One value for each element of a target that is no class, in any shape.
  const int64_t values = wanted[0] * static_cast<int64_t>(classes);
  if (!shape.has_label() && output.dim() > 0 && output.size(0) == wanted[0] &&
      output.numel() == values)
    return "";
  if (!shape.has_label())
    return "gives " + text(output.sizes()) + " for " + std::to_string(wanted[0]) +
           " samples; with the targets " + text_of(*shape.fields) +
           " it must give losses, or with train.loss " + losses_that(&LossRow::is_by_sample) +
           " a value for each element of the target: export a module that takes the targets, or "
           "set train.loss";
  return "gives " + text(output.sizes()) + "; " + needed + ": change its last layer, or " +
         (shape.is_sequence() ? "set model.vocab" : "take data with as many classes");
}

ModelOutput own_output(OwnOutputs given, const at::Tensor& x, const std::string& who,
                       const std::vector<std::string>& names) {
  const int64_t samples = x.size(0);
  const auto by_sample = [&](const at::Tensor& t, const std::string& what) {
    const bool is_fine = t.defined() && at::isFloatingType(t.scalar_type()) &&
                         t.device() == x.device() &&
                         (t.dim() == 0 || (t.dim() == 1 && t.size(0) == samples));
    if (is_fine) return t.dim() == 0 ? t.expand({samples}) : t;
    throw std::runtime_error(
        who + " gives " + what + " of type " +
        (t.defined() ? std::string(c10::toString(t.scalar_type())) + " and shape " + text(t.sizes())
                     : "nothing") +
        " for " + std::to_string(samples) + " samples; it needs floats, one a sample: " +
        text(at::IntArrayRef({samples})) + ", such as the mean over the other dimensions");
  };
  ModelOutput output;
  output.losses = by_sample(given.losses, "a loss");
  if (given.weights.defined()) output.weights = by_sample(given.weights, "a weight").detach();
  for (size_t i = 0; i < given.metrics.size(); ++i)
    output.metrics.push_back(by_sample(given.metrics[i], "the metric " + names[i]).detach());
  return output;
}

ModelInputs copied(const ModelInputs& inputs) {
  ModelInputs copy = inputs;
  copy.x = inputs.x.clone();
  if (inputs.labels.defined()) copy.labels = inputs.labels.clone();
  return copy;
}

ModelOutput LentInputs::with(const ModelInputs& inputs, const std::string& who,
                             const Forward& forward) const {
  ModelInputs lent = inputs;
  std::array<uint32_t, std::tuple_size_v<decltype(lent_)>> versions{};
  for (size_t i = 0; i < lent_.size(); ++i) {
    at::Tensor& tensor = lent.*lent_[i].tensor;
    if (!tensor.defined()) continue;
    if (is_trial_ || lent_[i].is_written) tensor = tensor.clone();
    versions[i] = tensor._version();
  }
  ModelOutput output = forward(lent);
  for (size_t i = 0; i < lent_.size(); ++i) {
    const at::Tensor& tensor = lent.*lent_[i].tensor;
    if (!tensor.defined() || lent_[i].is_written) continue;
    const bool is_written = tensor._version() != versions[i] ||
                            // A plug-in may write by a pointer, which counts as no version.
                            (is_trial_ && !same_bits(tensor, inputs.*lent_[i].tensor));
    if (is_written && !is_trial_)
      throw std::runtime_error(who + " writes to its " + lent_[i].name +
                               ", to which it did not write in the trial at the start; it must "
                               "write to it in every forward or never");
    lent_[i].is_written = is_written;
  }
  return output;
}

std::string one_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  std::istringstream lines(torch != nullptr ? torch->what_without_backtrace() : error.what());
  std::string first;
  std::string last;
  bool is_script = false;
  for (std::string line; std::getline(lines, line);) {
    is_script = is_script || line.find("TorchScript") != std::string::npos;
    if (line.find_first_not_of(" ~^\t") == std::string::npos) continue;
    if (first.empty()) first = line;
    last = line;
  }
  const std::string& line = is_script ? last : first;  // its own words come after where it happened
  const size_t words = line.find(" does not have a deterministic implementation");
  if (words == std::string::npos) return line;
  return line.substr(0, words) +
         " does not give the same bits each time on several threads or on a GPU; set "
         "comm.numerics: fast, or on a CPU train.threads_per_worker: 1";
}

namespace {

Status check_one_width(const Model& model, const std::string& who, const data::SampleShape& shape,
                       uint32_t classes, const TrialBatches& batches) {
  const auto refused = [&who](const std::string& what) {
    return Status(Code::kConfig, who + what);
  };
  try {
    const InitialTensors tensors = initial_tensors(model.layout());
    for (const bool training : {false, true}) {
      const uint64_t batch = training ? batches.training : batches.evaluation;
      // A loss of one dimension may be one a sample by chance: it is looked at twice.
      const bool is_twice =
          training && model.layout().own_loss && model.training_batches().max > batch;
      const at::AutoGradMode grad_mode(training);
      for (uint64_t samples = batch; samples <= batch + (is_twice ? 1 : 0); ++samples) {
        const std::string wrong =
            tried(model, tensors, sample_inputs(shape, samples, classes), training);
        if (!wrong.empty()) return refused(" " + wrong);
      }
    }
    return Status::ok();
  } catch (const std::exception& error) {
    const std::string line = one_line(error);  // what a forward throws may name the model already
    return refused(line.starts_with(who)
                       ? line.substr(who.size())
                       : " fails on samples " +
                             text(sample_input(shape, batches.training, classes).sizes()) + ": " +
                             line);
  }
}

}  // namespace

Status check_start(const Model& model, const std::string& who, const data::SampleShape& shape,
                   uint32_t classes, const TrialBatches& batches) {
  LOCKSTEP_RETURN_IF_ERROR(check_one_width(model, who, shape, classes, batches));
  if (!shape.is_padded || shape.tokens <= data::kWidthStep) return Status::ok();
  data::SampleShape narrow = shape;
  narrow.tokens = data::kWidthStep;
  Status tried = check_one_width(model, who, narrow, classes, batches);
  if (tried.is_ok()) return tried;
  return {tried.code(), tried.message() + ". With data.documents: pad batches have from " +
                            std::to_string(data::kWidthStep) +
                            " tokens to model.block: script the model instead of tracing it, so "
                            "that it takes any number, or set data.documents to stream"};
}

}  // namespace lockstep
