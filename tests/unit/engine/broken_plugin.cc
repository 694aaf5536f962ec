// A plug-in that does what the variable LOCKSTEP_BROKEN names: one thing of all that can be wrong.
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

#include "worker/model/plugin.h"

namespace {

struct Broken {
  std::string how;
  int calls = 0;
};

const at::Tensor& tensor(const void* pointer) {
  return *static_cast<const at::Tensor*>(pointer);
}

}  // namespace

void lockstep_model_describe(LockstepModelDescription* model) {
  const char* set = std::getenv("LOCKSTEP_BROKEN");
  const std::string how = set == nullptr ? "" : set;
  if (how == "silent") return;
  if (how == "older torch") {
    lockstep_handshake(model, "2.3.1");
    return;
  }
  if (how == "newer abi") {
    model->host_abi = LOCKSTEP_PLUGIN_ABI - 1;
    if (lockstep_handshake(model, TORCH_VERSION)) std::abort();
    model->plugin_abi = LOCKSTEP_PLUGIN_ABI + 1;
    return;
  }
  if (!lockstep_handshake(model, TORCH_VERSION)) return;
  if (how == "picky") throw std::runtime_error("images of 28x28 only");
  if (how == "throws a number") throw 7;
  if (how == "empty") return;
  const int64_t shape[] = {int64_t{model->height} * model->width,
                           how == "hollow" ? 0 : model->classes};
  model->add_parameter(model, "w", shape, 2, LOCKSTEP_INIT_NORMAL, 0.1);
  if (how == "twice") model->add_parameter(model, "w", shape, 2, LOCKSTEP_INIT_NORMAL, 0.1);
  model->add_buffer(model, "b", 3, 0.5f);
  model->instance = new Broken{how};
  model->free_instance = [](void* instance) { delete static_cast<Broken*>(instance); };
}

void lockstep_model_forward(LockstepModelForward* call) {
  Broken& self = *static_cast<Broken*>(call->instance);
  at::Tensor& out = *static_cast<at::Tensor*>(call->output);
  ++self.calls;
  if (self.how == "late" && self.calls > 3) throw std::runtime_error("tired after three calls");
  if (self.how == "forward throws a number") throw 7;
  if (self.how == "no output") return;
  if (self.how == "changes a buffer" || call->training != 0) tensor(call->buffers[0]).add_(1);
  if (self.how == "writes to its input") tensor(call->input).mul_(2);
  if (self.how == "writes by a pointer") tensor(call->input).data_ptr<float>()[0] = 7;
  if (self.how == "writes later" && self.calls > 3) tensor(call->input).mul_(2);
  out = at::matmul(tensor(call->input).flatten(1), tensor(call->parameters[0]));
  if (self.how == "short") out = out.narrow(1, 0, 2);
  if (self.how == "no number") out = out.mul(std::numeric_limits<double>::quiet_NaN());
  if (self.how == "detached") out = out.detach();
}
