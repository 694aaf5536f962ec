#include "worker/torch/engine/hidden_matrices.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "comm/run/job/models/model_table.h"
#include "worker/torch/model/foreign.h"

namespace lockstep {
namespace {

using torch::autograd::Node;

// Names of derivatives, without "Backward0".
constexpr std::string_view kProducts[] = {"Mm",      "Addmm",     "Linear",     "Bmm",
                                          "Baddbmm", "Mv",        "Addmv",      "Dot",
                                          "Addbmm",  "Trilinear", "Convolution"};
constexpr std::string_view kLookups[] = {"Embedding", "EmbeddingBag", "IndexSelect", "Index",
                                         "Gather"};
// These give their argument in another form.
constexpr std::string_view kForms[] = {
    "T",       "Transpose",    "Permute",        "View",   "UnsafeView", "Alias",     "Expand",
    "Reshape", "ReshapeAlias", "ToCopy",         "Clone",  "Unsqueeze",  "Squeeze",   "Slice",
    "Select",  "Split",        "SplitWithSizes", "Unbind", "Contiguous", "AsStrided", "Detach"};

bool is_one_of(const Node& node, std::span<const std::string_view> names) {
  const std::string name = node.name();
  const std::string_view kind = std::string_view(name).substr(0, name.find("Backward"));
  return std::ranges::find(names, kind) != names.end();
}

class GraphOfDerivatives {
 public:
  explicit GraphOfDerivatives(const std::vector<at::Tensor>& parameters) {
    for (size_t i = 0; i < parameters.size(); ++i)
      index_.emplace(parameters[i].unsafeGetTensorImpl(), i);
    multiplies_.resize(parameters.size());
    is_outer_.resize(parameters.size());
  }

  void read(const at::Tensor& output) {
    walk(output.grad_fn().get(), /*stops_at_products=*/false, [this](const Node& node) {
      if (is_one_of(node, kProducts)) mark_arguments(node, &multiplies_);
      if (is_one_of(node, kLookups)) mark_arguments(node, &is_outer_);
    });
    walk(output.grad_fn().get(), /*stops_at_products=*/true, [this](const Node& node) {
      if (is_one_of(node, kProducts)) mark_arguments(node, &is_outer_);
    });
  }

  bool is_hidden(size_t parameter) const { return multiplies_[parameter] && !is_outer_[parameter]; }

 private:
  template <typename Visit>
  static void walk(Node* root, bool stops_at_products, const Visit& visit) {
    std::vector<Node*> to_do = {root};
    std::unordered_set<Node*> seen = {root};
    while (!to_do.empty()) {
      Node* const node = to_do.back();
      to_do.pop_back();
      if (node == nullptr) continue;
      visit(*node);
      if (stops_at_products && is_one_of(*node, kProducts)) continue;
      for (const torch::autograd::Edge& edge : node->next_edges())
        if (seen.insert(edge.function.get()).second) to_do.push_back(edge.function.get());
    }
  }

  // The parameters that are arguments of the operator, perhaps in another form.
  void mark_arguments(const Node& node, std::vector<bool>* marks) const {
    for (const torch::autograd::Edge& edge : node.next_edges()) {
      const Node* at = edge.function.get();
      while (at != nullptr && is_one_of(*at, kForms) && at->num_outputs() > 0)
        at = at->next_edge(0).function.get();
      const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(at);
      if (leaf == nullptr) continue;
      const auto found = index_.find(leaf->variable.unsafeGetTensorImpl());
      if (found != index_.end()) (*marks)[found->second] = true;
    }
  }

  std::unordered_map<const at::TensorImpl*, size_t> index_;  // of parameters
  std::vector<bool> multiplies_;
  std::vector<bool> is_outer_;
};

}  // namespace

std::vector<bool> find_hidden_matrices(const Model& model, const wire::ModelSpec& spec,
                                       const data::SampleShape& shape, uint32_t classes) {
  const std::vector<ParameterSpec>& parameters = model.layout().parameters;
  std::vector<bool> hidden;
  for (const ParameterSpec& parameter : parameters)
    hidden.push_back(parameter.is_hidden && parameter.shape.size() == 2);
  if (!find_model(spec.name())->is_from_file) return hidden;
  const BatchRange range = model.training_batches();
  const uint64_t samples = std::clamp<uint64_t>(2, range.min, range.max);
  const InitialTensors tensors = initial_tensors(model.layout());
  const at::AutoGradMode with_gradients(true);
  const ModelOutput output = model.forward(sample_inputs(shape, samples, classes),
                                           tensors.parameters, tensors.buffers, {.training = true});
  GraphOfDerivatives graph(tensors.parameters);
  graph.read(output.losses.defined() ? output.losses : output.logits);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = hidden[i] && graph.is_hidden(i);
  return hidden;
}

}  // namespace lockstep
