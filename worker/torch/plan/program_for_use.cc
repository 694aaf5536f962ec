#include "worker/torch/plan/program_for_use.h"

#include <ATen/core/grad_mode.h>

#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "comm/base/text/shell_word.h"
#include "worker/model/exported_program/field_names.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"
#include "worker/torch/plan/bound_program.h"
#include "worker/torch/plan/input_sources.h"
#include "worker/torch/plan/program_parts.h"
#include "worker/torch/plan/role_tensors.h"

namespace lockstep::exported {
namespace {

constexpr uint64_t kTrialBatch = 2;

std::string program_at(const std::string& path) {
  return "the exported program " + shell_word(path);
}

ModelLayout layout_for_use(const Program& program, const ProgramRoles& roles) {
  ModelLayout layout;
  layout.own_loss = roles.own_loss(program);
  return layout;
}

class ProgramForUse final : public Model {
 public:
  ProgramForUse(std::string path, const data::SampleShape& shape, uint32_t classes,
                ProgramRoles roles, BoundProgram program)
      : Model(layout_for_use(program.program(), roles)),
        path_(std::move(path)),
        shape_(shape),
        classes_(classes),
        roles_(std::move(roles)),
        program_(std::move(program)) {}

  Status move_to(at::Device where) override {
    return where.is_cpu() ? Status::ok() : program_.move_to(where);
  }
  Status check_batch(uint64_t samples, bool /*training*/, const std::string& whose) const override {
    return check_batch_size(program_.program(), path_, samples, whose);
  }

  ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> /*parameters*/,
                      std::span<const at::Tensor> /*buffers*/,
                      const ForwardMode& mode) const override {
    const RandomScope random(mode.dropout_key, inputs.x.device());
    std::vector<at::Tensor> out;
    try {
      out = program_.forward(copied(inputs), {}, {}, {}, nullptr);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error(program_at(path_) + " fails in " + error.what());
    }
    if (roles_.gives_losses)
      return own_output(own_outputs(out, roles_), inputs.x, program_at(path_),
                        layout().own_loss->metrics);
    const std::string wrong = wrong_output(out[0], inputs.x, shape_, classes_);
    if (!wrong.empty()) throw std::runtime_error(program_at(path_) + " " + wrong);
    return {.logits = out[0]};
  }

  BatchRange evaluation_batches() const override { return batches_of(program_.program()); }

 private:
  const std::string path_;
  const data::SampleShape shape_;
  const uint32_t classes_;
  const ProgramRoles roles_;
  BoundProgram program_;
};

Result<std::unique_ptr<Model>> make_for_use(const std::string& path,
                                            std::shared_ptr<const Program> program,
                                            const data::SampleShape& shape, uint32_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramRoles roles,
                            roles_of(*program, shape.is_sequence(), field_names(shape)));
  LOCKSTEP_RETURN_IF_ERROR(check_signature(*program, roles, shape, classes));
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramPlan plan, ProgramPlan::compile(program, {}));
  const uint64_t batch = batch_near(*program, kTrialBatch);
  const bool gives_logits = !roles.gives_losses;
  // Without parts, all of its tensors are its own.
  BoundProgram bound(std::move(plan), {}, sources_of(*program, {}, roles, /*is_evaluation=*/true));
  auto model =
      std::make_unique<ProgramForUse>(path, shape, classes, std::move(roles), std::move(bound));
  const at::NoGradGuard no_grad;
  if (gives_logits) model->forward(sample_inputs(shape, batch, classes), {}, {}, {});
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<Model>> open_program_for_use(const std::string& path,
                                                    const data::SampleShape& shape,
                                                    uint32_t classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto program, read_program(path));
  try {
    auto model = make_for_use(path, std::move(program), shape, classes);
    if (model.is_ok()) return model;
    return Status(model.status().code(), program_at(path) + " " + model.status().message());
  } catch (const std::exception& error) {
    return Status(Code::kConfig, one_line(error));
  }
}

}  // namespace lockstep::exported
