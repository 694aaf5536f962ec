// Kernels of the stand-in device: each is the CPU's, over the shadow of the device's memory. So
// views are views, and a write in place happens once.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "memory.h"
#include "random.h"

namespace lockstep::stand_in {
namespace {

using c10::DeviceType;

bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == DeviceType::PrivateUse1;
}

// The same values as a tensor of the CPU. It has the whole storage: as_strided() may reach all of
// it.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!is_ours(tensor)) return tensor;
  const c10::Storage& storage = tensor.storage();
  void* const values =
      storage.data_ptr().get() == nullptr ? nullptr : shadow_of(storage.data_ptr().get());
  c10::Storage shadow(c10::Storage::use_byte_size_t(), storage.nbytes(),
                      c10::DataPtr(values, c10::Device(DeviceType::CPU)),
                      c10::GetAllocator(DeviceType::CPU),
                      /*resizable=*/true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(shadow), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return made;
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       device_allocator()->allocate(bytes),
                                                       device_allocator(), /*resizable=*/true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

at::Tensor copied_to_device(const at::Tensor& host) {
  if (!host.defined()) return host;
  at::Tensor made = empty_strided(host.sizes(), host.strides(), host.scalar_type());
  on_host(made).copy_(host);
  return made;
}

// Other memory, with nothing in it.
void give_memory(const c10::Storage& storage, size_t bytes) {
  storage.set_data_ptr_noswap(device_allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

// The device tensors among a call's arguments, each with its stand-in on the host.
class Exchange {
 public:
  c10::IValue to_host(const c10::IValue& value) {
    if (value.isTensor()) return host_of(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(host_of(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      const auto given = value.toOptionalTensorList();
      for (size_t i = 0; i < given.size(); ++i) {
        const std::optional<at::Tensor> tensor = given.get(i);
        list.push_back(tensor ? std::optional(host_of(*tensor)) : std::nullopt);
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().type() == DeviceType::PrivateUse1)
      return c10::Device(DeviceType::CPU);
    return value;
  }

  c10::IValue to_device(const c10::IValue& value) const {
    if (value.isTensor()) return device_of(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(device_of(tensor));
    return list;
  }

 private:
  at::Tensor host_of(const at::Tensor& tensor) {
    if (!is_ours(tensor)) return tensor;
    pairs_.emplace_back(tensor, on_host(tensor));
    return pairs_.back().second;
  }

  // For a kernel that gave the tensor that it writes into (out=) another size.
  static void adopt(const at::Tensor& ours, const at::Tensor& host) {
    const size_t bytes = host.storage().nbytes();
    if (bytes > ours.storage().nbytes()) give_memory(ours.storage(), bytes);
    ours.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
    if (host.numel() > 0) on_host(ours).copy_(host);
  }

  at::Tensor device_of(const at::Tensor& host) const {
    if (!host.defined()) return host;
    for (const auto& [ours, its_host] : pairs_)
      if (host.is_same(its_host)) {
        if (host.sizes() != ours.sizes()) adopt(ours, host);
        return ours;
      }
    for (const auto& [ours, its_host] : pairs_)
      if (host.is_alias_of(its_host)) return view_of(ours, host);
    return copied_to_device(host);
  }

  // `host` is a view of the host tensor that stands for `ours`.
  static at::Tensor view_of(const at::Tensor& ours, const at::Tensor& host) {
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, c10::Storage(ours.storage()), ours.key_set(), host.dtype());
    made.unsafeGetTensorImpl()->set_storage_offset(host.storage_offset());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
    return made;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

bool draws(const c10::Argument& argument) {
  const auto optional = argument.type()->cast<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

void compute(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  arrive_on_device();
  const auto& arguments = op.schema().arguments();
  Exchange exchange;
  const size_t first = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    value =
        value.isNone() && draws(arguments[i]) ? c10::IValue(generator()) : exchange.to_host(value);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i)
    (*stack)[i] = exchange.to_device((*stack)[i]);
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                               std::optional<at::Layout>, std::optional<at::Device>,
                               std::optional<bool>, std::optional<at::MemoryFormat> format) {
  at::Tensor made = empty_strided(sizes, c10::contiguous_strides(sizes),
                                  type.value_or(at::get_default_dtype_as_scalartype()));
  if (format && *format != at::MemoryFormat::Contiguous && *format != at::MemoryFormat::Preserve)
    made.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return made;
}

at::Tensor empty_with_strides(at::IntArrayRef sizes, at::IntArrayRef strides,
                              std::optional<at::ScalarType> type, std::optional<at::Layout>,
                              std::optional<at::Device>, std::optional<bool>) {
  return empty_strided(sizes, strides, type.value_or(at::get_default_dtype_as_scalartype()));
}

// Fills memory that a late copy will overwrite with bytes that no test takes for values.
void spoil(const at::Tensor& host) {
  if (host.is_floating_point())
    host.fill_(-12345.0);
  else
    host.fill_(85);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (is_ours(from) && is_ours(to)) {
    arrive_on_device();
    on_host(to).copy_(on_host(from));
    return to;
  }
  const at::Tensor& host = is_ours(from) ? to : from;
  const bool is_late = non_blocking && host.numel() > 0 && is_pinned(host.const_data_ptr());
  if (is_ours(from)) {
    arrive_on_device();
    const at::Tensor then = on_host(from).clone();
    // The event of an earlier copy into the same memory must not stand for this one.
    if (!is_late) {
      wait_for(asked_for());
      to.copy_(then);
      return to;
    }
    spoil(to);
    arrives_late(Direction::kToHost, [then, to] { to.copy_(then); });
    return to;
  }
  if (!is_late) {
    arrive_on_device();
    on_host(to).copy_(from);
    return to;
  }
  arrives_late(Direction::kToDevice, [from, to] { on_host(to).copy_(from); });
  return to;
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat>) {
  arrive_on_device();
  const auto strides = c10::contiguous_strides(sizes);
  const at::Tensor grown = empty_strided(sizes, strides, self.scalar_type());
  c10::TensorImpl* const own = self.unsafeGetTensorImpl();
  if (grown.storage().nbytes() > self.storage().nbytes()) {
    const at::Tensor before = on_host(self);
    if (before.numel() > 0)
      on_host(grown).view(-1).slice(0, 0, before.numel()).copy_(before.reshape(-1));
    give_memory(self.storage(), grown.storage().nbytes());
    own->set_sizes_and_strides(sizes, strides);
    if (grown.numel() > 0) on_host(self).copy_(on_host(grown));
    return self;
  }
  own->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor& set_storage_part(at::Tensor& self, at::Storage storage, int64_t offset,
                             at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::TensorImpl* const own = self.unsafeGetTensorImpl();
  own->set_storage_keep_dtype(std::move(storage));
  own->set_storage_offset(offset);
  if (strides.empty())
    own->set_sizes_contiguous(sizes);
  else
    own->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) {
  const std::vector<int64_t> sizes = {
      static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize())};
  return set_storage_part(self, std::move(storage), 0, sizes, {});
}

void record_stream(at::Tensor&, at::Stream) {}

// torch calls these kernels by special names on a device that is not its own.
at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups) {
  arrive_on_device();
  return copied_to_device(at::convolution(
      on_host(input), on_host(weight), bias ? std::optional(on_host(*bias)) : std::nullopt, stride,
      padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolve_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  arrive_on_device();
  const std::vector<int64_t> bias = {gradient.size(1)};
  const auto [of_input, of_weight, of_bias] = at::convolution_backward(
      on_host(gradient), on_host(input), on_host(weight), at::OptionalIntArrayRef(bias), stride,
      padding, dilation, transposed, output_padding, groups, wanted);
  return {copied_to_device(of_input), copied_to_device(of_weight), copied_to_device(of_bias)};
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty_memory_format);
  library.impl("empty_strided", &empty_with_strides);
  library.impl("_copy_from", &copy_from);
  library.impl("resize_", &resize);
  library.impl("record_stream", &record_stream);
  library.impl("set_.source_Storage_storage_offset", &set_storage_part);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("convolution_overrideable", &convolve);
  library.impl("convolution_backward_overrideable", &convolve_backward);
}

// Autocast computes these in bfloat16 or float16, as on other devices.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {  // the macros want this name
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(addmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(bmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv2d, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(scaled_dot_product_attention, lower_precision_fp)
}

}  // namespace lockstep::stand_in
