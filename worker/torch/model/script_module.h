// A TorchScript module in memory. Its tensors are places that can hold other tensors.
//
// The module runs operator by operator, without LibTorch's optimizer for scripts. The optimizer
// computes a first call differently from a later call, but the bits of a step must not depend on
// the history of a process.
//
// Errors are LibTorch's exceptions, as in every model's forward.
//
// Thread-safety: one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// The module and its submodules, in the order in which they are found.
using ScriptObjects = std::vector<c10::intrusive_ptr<c10::ivalue::Object>>;

// An attribute of one of the objects. The place is the same after ScriptModule::load_on().
struct ScriptPlace {
  std::shared_ptr<ScriptObjects> objects;
  size_t object = 0;  // index
  size_t slot = 0;

  const c10::IValue& get() const { return (*objects)[object]->getSlot(slot); }
  void set(const at::Tensor& tensor) const { (*objects)[object]->setSlot(slot, tensor); }
};

// A parameter, buffer or other tensor of the module. Tied tensors are one ScriptTensor with several
// places.
class ScriptTensor {
 public:
  ScriptTensor(std::string name, ScriptPlace place, bool is_parameter);

  const std::string& name() const { return name_; }                           // "layer1.0.weight"
  const std::vector<std::string>& tied_names() const { return tied_names_; }  // the further ones
  bool is_parameter() const { return is_parameter_; }

  const at::Tensor& get() const { return places_.front().get().toTensor(); }
  void set(const at::Tensor& tensor) const;

  // is_tied_to(): `other` shows the same elements. overlaps(): `other` shows some of them.
  bool is_tied_to(const ScriptTensor& other) const;
  bool overlaps(const ScriptTensor& other) const;
  void add_places_of(const ScriptTensor& other);

 private:
  std::string name_;
  std::vector<std::string> tied_names_;
  bool is_parameter_;
  std::vector<ScriptPlace> places_;
};

// A number, a boolean or a string of the module.
struct ScriptValue {
  std::string name;
  ScriptPlace place;
  const c10::IValue& get() const { return place.get(); }
};

// The results of forward() by name: one without a name, or the items of a dictionary in its order.
using ScriptOutputs = std::vector<std::pair<std::string, at::Tensor>>;

class ScriptModule {
 public:
  // `content`: a file that torch.jit.save wrote.
  explicit ScriptModule(const std::string& content);

  // In the order of PyTorch's named_parameters(): a module's own tensors before its children's.
  const std::vector<ScriptTensor>& tensors() const { return tensors_; }
  // All values except the modes (`training`) of the modules.
  const std::vector<ScriptValue>& values() const { return values_; }

  // How many arguments forward() must be given.
  size_t inputs() const;
  // Throws what the script throws, and std::runtime_error for an output that is neither a tensor
  // nor a dictionary of tensors.
  ScriptOutputs forward(const std::vector<at::Tensor>& inputs, bool training);

  // Loads the same content again, with all of its tensors on the device: also those in lists, and
  // the constants of its code. From then on tensors() and values() belong to the new module.
  void load_on(const std::string& content, at::Device where);

  // Writes the module in evaluation mode, with the tensors that it has now.
  void save_for_evaluation(const std::string& path);

 private:
  void collect(size_t object, const std::string& prefix);

  torch::jit::Module module_;
  std::optional<bool> training_;  // of all modules; nothing: as saved
  std::vector<ScriptTensor> tensors_;
  std::vector<ScriptValue> values_;
  const std::shared_ptr<ScriptObjects> objects_;
};

}  // namespace lockstep
