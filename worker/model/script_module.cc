#include "worker/model/script_module.h"

#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

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

// From the first element's byte to behind the last one's.
std::pair<const char*, const char*> extent(const at::Tensor& t) {
  if (t.numel() == 0 || t.layout() != at::kStrided) return {nullptr, nullptr};
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  const auto* begin = static_cast<const char*>(t.const_data_ptr());
  return {begin, begin + (last + 1) * static_cast<int64_t>(t.element_size())};
}

}  // namespace

ScriptTensor::ScriptTensor(std::string name, ObjectPtr object, size_t slot, bool is_parameter)
    : name_(std::move(name)), is_parameter_(is_parameter), places_{{std::move(object), slot}} {}

void ScriptTensor::set(const at::Tensor& tensor) const {
  for (const Place& place : places_) place.object->setSlot(place.slot, tensor);
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
}

ScriptModule::ScriptModule(const std::string& content)
    : module_(torch::jit::load(std::make_shared<MemoryReader>(content), c10::Device(c10::kCPU))) {
  collect(module_._ivalue(), "");
}

void ScriptModule::collect(const ScriptTensor::ObjectPtr& object, const std::string& prefix) {
  if (std::find(visited_.begin(), visited_.end(), object.get()) != visited_.end()) return;
  visited_.push_back(object.get());
  const auto type = object->type();
  std::vector<size_t> children;
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const std::string name = prefix + type->getAttributeName(i);
    const c10::IValue& value = object->getSlot(i);
    if (value.isTensor()) {
      ScriptTensor tensor(name, object, i, type->is_parameter(i));
      const auto tied = std::find_if(tensors_.begin(), tensors_.end(),
                                     [&](const ScriptTensor& t) { return t.is_tied_to(tensor); });
      if (tied != tensors_.end()) {
        tied->add_places_of(tensor);
      } else {
        tensors_.push_back(std::move(tensor));
      }
    } else if (value.isObject() && value.toObjectRef().type()->is_module()) {
      children.push_back(i);
    } else if ((value.isInt() || value.isDouble() || value.isBool() || value.isString()) &&
               type->getAttributeName(i) != "training") {
      values_.push_back({name, object, i});
    }
  }
  for (const size_t i : children)
    collect(object->getSlot(i).toObject(), prefix + type->getAttributeName(i) + ".");
}

at::Tensor ScriptModule::forward(const at::Tensor& x, bool training) {
  const torch::jit::GraphOptimizerEnabledGuard no_optimizer(false);
  if (training_ != training) module_.train(training);
  training_ = training;
  const c10::IValue out = module_.forward({x});
  if (!out.isTensor())
    throw std::runtime_error("forward gives a " + out.tagKind() + " and not one tensor of logits");
  return out.toTensor();
}

}  // namespace lockstep
