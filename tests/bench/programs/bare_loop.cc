#include "tests/bench/programs/bare_loop.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <chrono>
#include <optional>

#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_shape.h"
#include "data/loader/sample_reader.h"
#include "worker/engine/step_memory.h"
#include "worker/torch/engine/precision.h"
#include "worker/torch/model/model.h"

namespace lockstep::bench {
namespace {

constexpr double kFixedScale = 1024;  // overflows nowhere, so no code has to look for overflows

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

struct BareLoop {
  std::unique_ptr<Model> model;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  std::vector<at::Tensor> exp_avg;
  std::vector<at::Tensor> exp_avg_sq;
  std::vector<at::Tensor> steps;
  std::vector<at::Tensor> inputs;  // by batch
  std::vector<at::Tensor> labels;
  at::Tensor grad_scale;  // fp16: the divisor of _fused_adamw_
  at::Tensor found_inf;
  wire::OptimizerSpec optimizer;
  at::ScalarType compute = at::kFloat;
  at::Device where = at::kCPU;

  void make_parameters();
  Status make_batches(const data::Dataset& dataset, uint64_t batch, uint64_t batches);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) const;
  at::Tensor step(uint64_t i);  // the loss, without waiting for it
};

void BareLoop::make_parameters() {
  for (uint32_t i = 0; i < model->layout().parameters.size(); ++i) {
    const ParameterSpec& spec = model->layout().parameters[i];
    at::Tensor p = at::empty(spec.shape);
    init_parameter(spec, 1, i, p.mutable_data_ptr<float>());
    parameters.push_back(p.to(where).set_requires_grad(true));
    exp_avg.push_back(at::zeros(spec.shape, where));
    exp_avg_sq.push_back(at::zeros(spec.shape, where));
    steps.push_back(at::zeros({}, where));
  }
  for (const BufferSpec& spec : model->layout().buffers)
    buffers.push_back(at::full({spec.size}, spec.initial, where));
}

Status BareLoop::make_batches(const data::Dataset& dataset, uint64_t batch, uint64_t batches) {
  const data::SampleShape s = dataset.shape();
  std::vector<std::string> transforms;
  if (!s.is_sequence()) transforms.push_back("normalize");
  const auto reader = data::SampleReader::create(dataset, transforms, dataset.statistics());
  for (uint64_t i = 0; i < batches; ++i) {
    const auto n = static_cast<int64_t>(batch);
    inputs.push_back(s.is_sequence() ? at::empty({n, s.tokens}, at::kLong)
                                     : at::empty({n, s.channels, s.height, s.width}));
    labels.push_back(at::empty({n * static_cast<int64_t>(s.labels())}, at::kLong));
    const uint64_t begin = i * batch % (dataset.samples() - batch);
    LOCKSTEP_RETURN_IF_ERROR(reader.value().read_range(
        begin, begin + batch, static_cast<std::byte*>(inputs.back().mutable_data_ptr()),
        labels.back().mutable_data_ptr<int64_t>()));
    inputs.back() = inputs.back().to(where);
    labels.back() = labels.back().to(where);
  }
  return Status::ok();
}

at::Tensor BareLoop::forward(const at::Tensor& x, const at::Tensor& y) const {
  const AutocastScope autocast(where.type(), compute);
  const at::Tensor logits =
      model->forward({.x = x}, parameters, buffers, {true, 0}).logits.to(at::kFloat);
  return at::cross_entropy_loss(logits.flatten(0, -2), y);
}

at::Tensor BareLoop::step(uint64_t i) {
  at::Tensor loss = forward(inputs[i % inputs.size()], labels[i % labels.size()]);
  torch::autograd::backward({grad_scale.defined() ? loss.mul(grad_scale) : loss}, {});
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (at::Tensor& p : parameters) gradients.push_back(std::move(p.mutable_grad()));
  for (at::Tensor& s : steps) s.add_(1);
  at::_fused_adamw_(parameters, gradients, exp_avg, exp_avg_sq, {}, steps, optimizer.lr(),
                    optimizer.beta1(), optimizer.beta2(), optimizer.weight_decay(), optimizer.eps(),
                    /*amsgrad=*/false, /*maximize=*/false, optional(grad_scale),
                    optional(found_inf));
  return loss;
}

}  // namespace

Result<TrainReport> run_bare_loop(const TrainOptions& options, const DeviceModule* gpu) {
  const wire::JobSpec job = make_job(options);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<data::Dataset> dataset,
                            open_training_data(options, job));
  at::set_num_threads(1);
  keep_freed_memory();
  BareLoop loop;
  loop.optimizer = job.optimizer();
  loop.compute = compute_type(job.train());
  if (gpu != nullptr) loop.where = at::Device(gpu->torch_device());
  if (loop.compute == at::kHalf) {
    loop.grad_scale = at::full({}, kFixedScale, loop.where);
    loop.found_inf = at::zeros({}, loop.where);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(loop.model,
                            make_model(job.model(), dataset->shape(), dataset->classes()));
  loop.make_parameters();
  LOCKSTEP_RETURN_IF_ERROR(loop.make_batches(*dataset, options.global_batch, 100));
  at::Tensor loss = at::zeros({}, loop.where);
  for (uint64_t i = 0; i < options.warmup_steps; ++i) loss = loop.step(i);
  (void)loss.item<double>();  // waits until a device has done them
  TrainReport report;
  const auto start = std::chrono::steady_clock::now();
  for (; report.steps < options.steps; ++report.steps) loss = loop.step(report.steps);
  report.loss = loss.item<double>();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace lockstep::bench
