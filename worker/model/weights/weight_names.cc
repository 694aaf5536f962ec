#include "worker/model/weights/weight_names.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kTokens = "wte.weight";
constexpr std::string_view kAttention = ".c_attn.weight";
constexpr std::string_view kMatrices[] = {kAttention, ".c_proj.weight", ".c_fc.weight"};
constexpr std::string_view kMasks[] = {".attn.bias", ".attn.masked_bias"};

bool ends_with_one_of(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

bool same_content(const FileTensor& a, const FileTensor& b) {
  const auto bytes = safetensors::bytes_of(a.type->bytes, a.shape);
  return a.type == b.type && a.shape == b.shape && std::memcmp(a.data, b.data, *bytes) == 0;
}

std::string without_prefix(const std::string& name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

const FileTensor* find(const std::vector<FileTensor>& tensors, std::string_view name) {
  const auto at = std::ranges::find_if(
      tensors, [&](const FileTensor& t) { return without_prefix(t.name) == name; });
  return at == tensors.end() ? nullptr : &*at;
}

// Nothing: there is no c_attn.weight, or it has another shape than both.
std::optional<bool> is_in_by_out(const std::vector<FileTensor>& tensors) {
  for (const FileTensor& tensor : tensors) {
    if (!tensor.name.ends_with(kAttention) || tensor.shape.size() != 2) continue;
    const int64_t rows = tensor.shape[0];
    const int64_t columns = tensor.shape[1];
    if (rows <= 0 || columns <= 0) continue;
    if (columns % 3 == 0 && columns / 3 == rows) return true;
    if (rows % 3 == 0 && rows / 3 == columns) return false;
  }
  return std::nullopt;
}

Result<std::vector<NamedTensor>> name_gpt2(const std::string& whose,
                                           const std::vector<FileTensor>& all) {
  const std::optional<bool> in_by_out = is_in_by_out(all);
  const FileTensor* tokens = find(all, kTokens);
  std::vector<NamedTensor> out;
  for (const FileTensor& tensor : all) {
    const std::string name = without_prefix(tensor.name);
    if (ends_with_one_of(name, kMasks)) continue;
    if (name == kHead && tokens != nullptr && same_content(tensor, *tokens)) continue;
    NamedTensor named{name, &tensor, false, tensor.shape};
    if (ends_with_one_of(name, kMatrices) && tensor.shape.size() == 2) {
      if (!in_by_out)
        return Status(
            Code::kConfig,
            whose +
                " has matrices of a GPT-2 but no c_attn.weight of 3 times its width, "
                "which tells whether they lie (in, out) as Hugging Face's or (out, in); name "
                "a file with all weights");
      named.is_transposed = *in_by_out;
      if (named.is_transposed) std::swap(named.shape[0], named.shape[1]);
    }
    out.push_back(std::move(named));
  }
  return out;
}

}  // namespace

Result<std::vector<NamedTensor>> name_tensors(const std::string& model, const std::string& whose,
                                              const std::vector<FileTensor>& all) {
  std::vector<NamedTensor> out;
  if (model == "gpt2") {
    LOCKSTEP_ASSIGN_OR_RETURN(out, name_gpt2(whose, all));
  } else {
    for (const FileTensor& tensor : all) out.push_back({tensor.name, &tensor, false, tensor.shape});
  }
  std::ranges::sort(out, {}, &NamedTensor::name);
  const auto twice = std::ranges::adjacent_find(out, {}, &NamedTensor::name);
  if (twice != out.end())
    return Status(Code::kBadData, whose + " has the tensor " + twice->name + " twice, as " +
                                      twice->file->name + " and as " +
                                      std::next(twice)->file->name);
  return out;
}

}  // namespace lockstep
