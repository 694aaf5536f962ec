#include "worker/torch/plan/logits_program.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "comm/base/text/shell_word.h"
#include "worker/model/exported_program/evaluation.h"
#include "worker/model/exported_program/predict_roles.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"
#include "worker/torch/plan/program_parts.h"

namespace lockstep::exported {
namespace {

constexpr uint64_t kTriedKey = 1;
constexpr uint64_t kTriedSamples = 2;
constexpr uint32_t kTriedTokens = 1;  // token 0 is in every vocabulary

class LogitsProgram final : public Predictor {
 public:
  LogitsProgram(std::string path, BoundProgram program)
      : path_(std::move(path)), program_(std::move(program)) {}

  uint64_t fewest() const override { return batch_near(program_.program(), 1); }
  Status check_batch(uint64_t samples, const std::string& whose) const override {
    return check_batch_size(program_.program(), path_, samples, whose);
  }

  // The scope's lock makes the program this thread's, too.
  at::Tensor logits(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                    std::span<const at::Tensor> buffers,
                    std::span<const int64_t> counters) const override {
    const RandomScope random(kTriedKey, inputs.x.device());
    try {
      return program_.forward(copied(inputs), parameters, buffers, counters, nullptr).at(0);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error("the exported program " + shell_word(path_) + " fails in " +
                               error.what());
    }
  }

  // The error in the logits of some samples; empty: none.
  std::string tried(const data::SampleShape& shape, const ModelLayout& layout) const {
    const at::NoGradGuard no_grad;
    const auto samples = static_cast<int64_t>(batch_near(program_.program(), kTriedSamples));
    const InitialTensors tensors = initial_tensors(layout);
    const at::Tensor out =
        logits(sample_inputs(shape, static_cast<uint64_t>(samples), kTriedTokens),
               tensors.parameters, tensors.buffers, first_counters(layout));
    if (!out.defined() || !at::isFloatingType(out.scalar_type()) || out.dim() < 2 ||
        out.size(0) != samples)
      return "does not give floats for each sample, (batch, classes) or (batch, classes, height, "
             "width): let forward return the logits";
    if (!at::isfinite(out).all().item<bool>())
      return "gives infinite or NaN values for samples in [-1, 1) with its initial parameters";
    if (const std::string changed = program_.changed_tensor(); !changed.empty())
      return "changes its buffer " + changed + ": export the module after model.eval()";
    return "";
  }

 private:
  const std::string path_;
  const BoundProgram program_;
};

// Everything but the name of the file.
Result<BoundProgram> bound(std::shared_ptr<const Program> program, const data::SampleShape& shape,
                           const SourcesFn& sources_of) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramRoles roles,
                            predict_roles(*program, shape.is_sequence(), field_names(shape)));
  LOCKSTEP_RETURN_IF_ERROR(check_signature(*program, roles, shape, kTriedTokens));
  LOCKSTEP_ASSIGN_OR_RETURN(auto sources, sources_of(*program, roles));
  ProgramPlan::Options options;
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramPlan plan, ProgramPlan::compile(std::move(program), options));
  for (const Instruction& instruction : plan.instructions())
    if (!evaluation_switches(*instruction.node).empty())
      return Status(Code::kConfig, "calls " + text_of(*instruction.node) +
                                       " in training mode: export the module after model.eval()");
  return BoundProgram(std::move(plan), std::move(options), std::move(sources));
}

}  // namespace

Result<std::unique_ptr<Predictor>> open_logits_program(const wire::ModelSpec& spec,
                                                       const data::SampleShape& shape,
                                                       const ModelLayout& layout,
                                                       const SourcesFn& sources_of) {
  const std::string& path = spec.predict_path();
  if (path.empty()) return std::unique_ptr<Predictor>();
  const std::string who = "the exported program " + shell_word(path) + " ";
  LOCKSTEP_ASSIGN_OR_RETURN(auto program, read_program(path));
  auto made = bound(std::move(program), shape, sources_of);
  if (!made.is_ok()) return Status(made.status().code(), who + made.status().message());
  auto predictor = std::make_unique<LogitsProgram>(path, *std::move(made));
  std::string wrong;
  try {
    wrong = predictor->tried(shape, layout);
  } catch (const std::exception& error) {
    return Status(Code::kConfig, one_line(error));  // names the program already
  }
  if (!wrong.empty()) return Status(Code::kConfig, who + wrong);
  return std::unique_ptr<Predictor>(std::move(predictor));
}

}  // namespace lockstep::exported
