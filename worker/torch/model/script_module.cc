#include "worker/torch/model/script_module.h"

#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "comm/base/check.h"

namespace lockstep {
namespace {

class MemoryReader final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MemoryReader(const std::string& content) : content_(content) {}
  size_t size() const override { return content_.size(); }
  size_t read(uint64_t position, void* out, size_t bytes, const char*) const override {
    if (position >= content_.size()) return 0;
    const size_t n = std::min<size_t>(bytes, content_.size() - position);
    std::memcpy(out, content_.data() + position, n);
    return n;
  }

 private:
  const std::string& content_;
};

torch::jit::Module load(const std::string& content, at::Device where) {
  return torch::jit::load(std::make_shared<MemoryReader>(content), where);
}

// The children of an object that are modules, as slots.
std::vector<size_t> children_of(const c10::ivalue::Object& object) {
  std::vector<size_t> slots;
  for (size_t i = 0; i < object.type()->numAttributes(); ++i) {
    const c10::IValue& value = object.getSlot(i);
    if (value.isObject() && value.toObjectRef().type()->is_module()) slots.push_back(i);
  }
  return slots;
}

// Adds the object, if it is new. Returns whether it is.
bool add(ScriptObjects& objects, const c10::intrusive_ptr<c10::ivalue::Object>& object) {
  if (std::find(objects.begin(), objects.end(), object) != objects.end()) return false;
  objects.push_back(object);
  return true;
}

void add_all(ScriptObjects& objects, const c10::intrusive_ptr<c10::ivalue::Object>& object) {
  if (!add(objects, object)) return;
  for (const size_t i : children_of(*object)) add_all(objects, object->getSlot(i).toObject());
}

// From the first element's byte to one past the last element's.
std::pair<const char*, const char*> extent(const at::Tensor& t) {
  if (t.numel() == 0 || t.layout() != at::kStrided) return {nullptr, nullptr};
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  const auto* begin = static_cast<const char*>(t.const_data_ptr());
  return {begin, begin + (last + 1) * static_cast<int64_t>(t.element_size())};
}

}  // namespace

ScriptTensor::ScriptTensor(std::string name, ScriptPlace place, bool is_parameter)
    : name_(std::move(name)), is_parameter_(is_parameter), places_{std::move(place)} {}

void ScriptTensor::set(const at::Tensor& tensor) const {
  for (const ScriptPlace& place : places_) place.set(tensor);
}

bool ScriptTensor::is_tied_to(const ScriptTensor& other) const {
  const at::Tensor& a = get();
  const at::Tensor& b = other.get();
  if (a.is_same(b)) return true;
  return extent(a).first != nullptr && extent(a) == extent(b) &&
         a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool ScriptTensor::overlaps(const ScriptTensor& other) const {
  const auto a = extent(get());
  const auto b = extent(other.get());
  return a.first < b.second && b.first < a.second;
}

void ScriptTensor::add_places_of(const ScriptTensor& other) {
  places_.insert(places_.end(), other.places_.begin(), other.places_.end());
  tied_names_.push_back(other.name_);
}

ScriptModule::ScriptModule(const std::string& content)
    : module_(load(content, c10::Device(c10::kCPU))), objects_(std::make_shared<ScriptObjects>()) {
  objects_->push_back(module_._ivalue());
  collect(0, "");
}

void ScriptModule::collect(size_t object, const std::string& prefix) {
  const c10::ivalue::Object& of = *(*objects_)[object];
  const auto type = of.type();
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const std::string name = prefix + type->getAttributeName(i);
    const c10::IValue& value = of.getSlot(i);
    const ScriptPlace place{objects_, object, i};
    if (value.isTensor()) {
      ScriptTensor tensor(name, place, type->is_parameter(i));
      const auto tied = std::find_if(tensors_.begin(), tensors_.end(),
                                     [&](const ScriptTensor& t) { return t.is_tied_to(tensor); });
      if (tied != tensors_.end()) {
        tied->add_places_of(tensor);
      } else {
        tensors_.push_back(std::move(tensor));
      }
    } else if ((value.isInt() || value.isDouble() || value.isBool() || value.isString()) &&
               type->getAttributeName(i) != "training") {
      values_.push_back({name, place});
    }
  }
  for (const size_t i : children_of(of)) {
    const size_t child = objects_->size();
    if (add(*objects_, of.getSlot(i).toObject()))
      collect(child, prefix + type->getAttributeName(i) + ".");
  }
}

void ScriptModule::load_on(const std::string& content, at::Device where) {
  torch::jit::Module module = load(content, where);
  ScriptObjects loaded;
  add_all(loaded, module._ivalue());
  LOCKSTEP_CHECK(loaded.size() == objects_->size(), "the same content is the same module");
  module_ = std::move(module);
  *objects_ = std::move(loaded);
  training_.reset();
}

void ScriptModule::save_for_evaluation(const std::string& path) {
  module_.eval();
  module_.save(path);
}

size_t ScriptModule::inputs() const {
  const auto& arguments = module_.get_method("forward").function().getSchema().arguments();
  return static_cast<size_t>(
      std::count_if(arguments.begin() + 1, arguments.end(),  // after the module itself
                    [](const c10::Argument& argument) { return !argument.default_value(); }));
}

ScriptOutputs ScriptModule::forward(const std::vector<at::Tensor>& given, bool training) {
  const torch::jit::GraphOptimizerEnabledGuard no_optimizer(false);
  if (training_ != training) module_.train(training);
  training_ = training;
  std::vector<c10::IValue> inputs(given.begin(), given.end());
  const c10::IValue out = module_.forward(std::move(inputs));
  if (out.isTensor()) return {{"", out.toTensor()}};
  ScriptOutputs outputs;
  if (out.isGenericDict())
    for (const auto& item : out.toGenericDict())
      if (item.key().isString() && item.value().isTensor())
        outputs.emplace_back(item.key().toStringRef(), item.value().toTensor());
  if (outputs.empty() || !out.isGenericDict() || outputs.size() != out.toGenericDict().size())
    throw std::runtime_error("forward gives a " + out.tagKind() +
                             " and not one tensor of logits or losses, nor a dictionary of names "
                             "to tensors with \"loss\"");
  return outputs;
}

}  // namespace lockstep
