// Runs an exported program in a plain loop on one thread. exported_models.py compares it with
// PyTorch.
//
//   bench_exported MODEL.pt2 [--eval EVAL.pt2] --inputs FILE --labels FILE --shape 3,64,64
//       --classes 10 --steps 20 [--lr 0.05] [--tokens] [--logits FILE] [--repeat 0]
//
// Inputs are float32 or int64, labels int64, in the order of memory; one batch, used in each step.
// Steps are SGD; before step i LibTorch's generator is seeded with 100 + i. --repeat: then times so
// many forwards and backwards, each. Prints one JSON object.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "worker/engine/step_memory.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/model.h"

namespace lockstep::bench {
namespace {

constexpr uint64_t kFirstSeed = 100;

struct ExportedOptions {
  std::string path;
  std::string eval_path;
  std::string inputs;
  std::string labels;
  std::string logits;
  std::vector<int64_t> shape;
  uint32_t classes = 0;
  uint64_t steps = 0;
  uint64_t repeat = 0;
  double lr = 0.05;
  bool is_text = false;
};

at::Tensor read_all(const std::string& path, at::ScalarType type) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<int64_t>(in.tellg());
  at::Tensor out =
      at::empty({bytes / static_cast<int64_t>(c10::elementSize(type))}, at::dtype(type));
  in.seekg(0);
  in.read(static_cast<char*>(out.mutable_data_ptr()), bytes);
  return out;
}

struct ExportedLoop {
  std::unique_ptr<Model> model;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  at::Tensor x;
  at::Tensor labels;

  double forward_and_backward(uint64_t seed) {
    for (at::Tensor& p : parameters) p.mutable_grad().reset();
    const ForwardMode mode{.training = true, .dropout_key = seed};
    const at::Tensor logits = model->forward({.x = x}, parameters, buffers, mode).logits;
    const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, -2), labels);
    torch::autograd::backward({loss}, {});
    return loss.item<double>();
  }
};

Result<ExportedLoop> open_loop(const ExportedOptions& options) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(options.path);
  spec.set_eval_path(options.eval_path);
  data::SampleShape shape;
  if (options.is_text) {
    shape = {.tokens = static_cast<uint32_t>(options.shape.at(0)), .token_bytes = 4};
  } else {
    shape = {static_cast<uint32_t>(options.shape.at(0)), static_cast<uint32_t>(options.shape.at(1)),
             static_cast<uint32_t>(options.shape.at(2))};
  }
  ExportedLoop loop;
  LOCKSTEP_ASSIGN_OR_RETURN(loop.model, make_model(spec, shape, options.classes));
  InitialTensors initial = initial_tensors(loop.model->layout());
  loop.parameters = std::move(initial.parameters);
  loop.buffers = std::move(initial.buffers);
  std::vector<int64_t> sizes = {-1};
  sizes.insert(sizes.end(), options.shape.begin(), options.shape.end());
  loop.x = read_all(options.inputs, options.is_text ? at::kLong : at::kFloat).view(sizes);
  loop.labels = read_all(options.labels, at::kLong);
  return loop;
}

Status write_logits(const ExportedLoop& loop, const std::string& path) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits =
      loop.model->forward({.x = loop.x}, loop.parameters, loop.buffers, {}).logits.contiguous();
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(logits.const_data_ptr()),
            static_cast<std::streamsize>(logits.nbytes()));
  return out.good() ? Status::ok() : Status(Code::kInternal, "cannot write " + path);
}

Status run_exported(const ExportedOptions& options) {
  at::set_num_threads(1);
  keep_freed_memory();
  LOCKSTEP_ASSIGN_OR_RETURN(ExportedLoop loop, open_loop(options));
  nlohmann::json report;
  for (uint64_t i = 0; i < options.steps; ++i) {
    report["losses"].push_back(loop.forward_and_backward(kFirstSeed + i));
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : loop.parameters)
      if (p.grad().defined()) p.add_(p.grad(), -options.lr);
  }
  if (!options.logits.empty()) LOCKSTEP_RETURN_IF_ERROR(write_logits(loop, options.logits));
  for (uint64_t i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop.forward_and_backward(kFirstSeed);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    report["ms"].push_back(spent.count());
  }
  std::printf("%s\n", report.dump().c_str());
  return Status::ok();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) try {
  lockstep::bench::ExportedOptions options;
  CLI::App app("An exported program in a plain loop.");
  app.add_option("path", options.path)->required();
  app.add_option("--eval", options.eval_path);
  app.add_option("--inputs", options.inputs)->required();
  app.add_option("--labels", options.labels)->required();
  app.add_option("--logits", options.logits);
  app.add_option("--shape", options.shape)->delimiter(',')->required();
  app.add_option("--classes", options.classes)->required();
  app.add_option("--steps", options.steps);
  app.add_option("--repeat", options.repeat);
  app.add_option("--lr", options.lr);
  app.add_flag("--tokens", options.is_text);
  CLI11_PARSE(app, argc, argv);
  const lockstep::Status status = lockstep::bench::run_exported(options);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return lockstep::exit_code(status);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 70;
}
