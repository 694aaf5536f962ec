#include "worker/model/exported_program/signature_reader.h"

#include <algorithm>
#include <string>

#include "comm/base/text/printable.h"
#include "worker/model/exported_program/argument_reader.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

Status not_taken(const std::string& what) {
  return {Code::kConfig, what};
}

// "s77" of "Symbol('s77', positive=True, integer=True)"; empty for any other expression.
std::string symbol_of(const std::string& expression) {
  constexpr std::string_view kBegin = "Symbol('";
  if (!expression.starts_with(kBegin) || expression.find(')') + 1 != expression.size()) return {};
  const size_t end = expression.find('\'', kBegin.size());
  if (end == std::string::npos) return {};
  return expression.substr(kBegin.size(), end - kBegin.size());
}

class InputReader {
 public:
  InputReader(JsonFields& fields, const json& root, TensorReader& tensors, Program& program)
      : fields_(fields), root_(root), tensors_(tensors), program_(program) {}

  void read(const json& spec, std::optional<ValueRef> value) {
    const std::string kind = fields_.kind(spec, "an input of the signature");
    if (kind.empty()) return;
    const json& content = spec.begin().value();
    ProgramInput input;
    input.value = value;
    if (kind == "constant_input") {
      input.kind = InputKind::kFixed;
      input.name = fields_.text(content, "name");
      input.value.reset();
    } else if (kind == "user_input") {
      read_user_input(fields_.object(content, "arg"), input);
    } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
      read_tensor(kind, content, input);
    } else {
      fields_.fail(not_taken("takes an input of kind " + printable(kind) +
                             ", such as a custom object, which Lockstep does not know; export the "
                             "model without it"));
    }
    program_.inputs.push_back(std::move(input));
  }

 private:
  void read_tensor(const std::string& kind, const json& content, ProgramInput& input) {
    input.kind = kind == "parameter" ? InputKind::kParameter
                 : kind == "buffer"  ? InputKind::kBuffer
                                     : InputKind::kConstant;
    input.name = fields_.text(content, (kind + "_name").c_str());
    check_name(fields_.text(fields_.object(content, "arg"), "name"), input);
    const bool is_saved =
        input.kind == InputKind::kParameter ||
        (input.kind == InputKind::kBuffer && fields_.boolean(content, "persistent"));
    if (fields_.is_ok()) input.tensor = tensors_.find(input.name, input.kind, is_saved);
  }

  void read_user_input(const json& argument, ProgramInput& input) {
    const std::string kind = fields_.kind(argument, "an input of the model");
    if (kind != "as_tensor") {
      if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
        fields_.fail(
            not_taken("takes a number that is no tensor; export the model with tensors as "
                      "its only arguments"));
      input.kind = InputKind::kFixed;
      input.value.reset();
      return;
    }
    input.kind = InputKind::kUser;
    input.name = fields_.text(argument.begin().value(), "name");
    check_name(input.name, input);
    input.user_input = static_cast<uint32_t>(program_.user_inputs.size());
    program_.user_inputs.push_back(user_input(input.name));
  }

  void check_name(const std::string& name, const ProgramInput& input) {
    if (!input.value || program_.graph.values[input.value->value].name != name ||
        program_.graph.values[input.value->value].kind != ValueKind::kTensor)
      fields_.malformed("the inputs of signature and graph differ at " + printable(name));
  }

  UserInput user_input(const std::string& name) {
    const json& graph = fields_.object(fields_.object(root_, "graph_module"), "graph");
    const json& meta = fields_.object(fields_.object(graph, "tensor_values"), name.c_str());
    UserInput input{
        .name = name, .dtype = {}, .shape = {}, .is_channels_last = false, .device = {}};
    input.dtype =
        read_dtype(fields_, fields_.optional(meta, "dtype"), "the input " + printable(name));
    input.device = read_device(fields_, fields_.object(meta, "device"));
    for (const json& size : fields_.list(meta, "sizes")) input.shape.push_back(dim(size));
    const json& strides = fields_.list(meta, "strides");
    // Channels-last: the stride of channels (dimension 1 of 4) is 1, and there are several.
    const bool is_image = input.shape.size() == 4 && strides.size() == 4;
    const auto stride = [&](size_t d) {
      const json& value = fields_.optional(strides[d], "as_int");
      return value.is_number_integer() ? value.get<int64_t>() : -1;
    };
    input.is_channels_last = is_image && stride(1) == 1 && stride(3) > 1;
    return input;
  }

  UserDim dim(const json& size) {
    UserDim read;
    if (fields_.kind(size, "a size") == "as_int") {
      const int64_t n = fields_.integer(size, "as_int");
      read.sizes = {n, n};
      return read;
    }
    read.symbol = symbol_of(fields_.text(fields_.object(size, "as_expr"), "expr_str"));
    const json& ranges = fields_.object(root_, "range_constraints");
    const json& range = fields_.optional(ranges, read.symbol.c_str());
    if (range.is_object()) {
      const json& min = fields_.optional(range, "min_val");
      const json& max = fields_.optional(range, "max_val");
      if (!min.is_null()) read.sizes.min = fields_.as_integer(min, "min_val");
      if (!max.is_null()) read.sizes.max = fields_.as_integer(max, "max_val");
    }
    return read;
  }

  JsonFields& fields_;
  const json& root_;
  TensorReader& tensors_;
  Program& program_;
};

// Names of the leaves of a tree of containers (torch.utils._pytree), in their order: "logits",
// "more.0", and "" if the tree is but one leaf.
class LeafNames {
 public:
  LeafNames(JsonFields& fields, const json& named_tuples)
      : fields_(fields), named_tuples_(named_tuples) {}

  void read(const json& tree, const std::string& prefix, std::vector<std::string>& names) {
    if (tree.is_object() && fields_.optional(tree, "type").is_null()) {
      names.push_back(prefix);
      return;
    }
    const json& children = fields_.list(tree, "children_spec");
    const std::vector<std::string> keys = keys_of(tree, children.size());
    for (size_t i = 0; i < children.size(); ++i)
      read(children[i], prefix.empty() ? keys[i] : prefix + "." + keys[i], names);
  }

 private:
  // Keys of a dictionary, fields of a named tuple, else numbers.
  std::vector<std::string> keys_of(const json& tree, size_t count) {
    std::vector<std::string> keys;
    const json inner = context_of(tree);
    if (inner.is_array() && inner.size() == count)
      for (const json& key : inner)
        keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
    if (inner.is_string()) {
      const json& tuple =
          fields_.optional(named_tuples_, inner.get_ref<const std::string&>().c_str());
      const json& list = fields_.optional(tuple, "field_names");
      if (list.is_array() && list.size() == count)
        for (const json& key : list) keys.push_back(fields_.as_text(key, "a field's name"));
    }
    if (keys.size() != count) {
      keys.clear();
      for (size_t i = 0; i < count; ++i) keys.push_back(std::to_string(i));
    }
    return keys;
  }

  // JSON, in most files as text.
  json context_of(const json& tree) {
    const json& context = fields_.optional(tree, "context");
    if (!context.is_string()) return context;
    auto parsed = parse_limited(context.get_ref<const std::string&>());
    if (parsed.is_ok()) return *std::move(parsed);
    fields_.fail(parsed.status());
    return {};
  }

  JsonFields& fields_;
  const json& named_tuples_;
};

std::vector<std::string> output_names(JsonFields& fields, const json& module) {
  std::vector<std::string> names;
  for (const json& entry : fields.list(module, "module_call_graph")) {
    const json& name = fields.optional(entry, "fqn");
    if (!name.is_string() || !name.get_ref<const std::string&>().empty()) continue;
    const auto spec = parse_limited(fields.text(fields.object(entry, "signature"), "out_spec"));
    if (!spec.is_ok()) {
      fields.fail(spec.status());
      break;
    }
    if (!spec->is_array() || spec->size() != 2) {
      fields.malformed("out_spec is not a tree");
      break;
    }
    LeafNames(fields, fields.optional(module, "treespec_namedtuple_fields"))
        .read((*spec)[1], "", names);
    break;
  }
  return names;
}

// L['a'].size()[0] == L['b'].size()[0]: batches of several inputs are of one size, as always.
bool compares_batches(std::string_view guard) {
  constexpr std::string_view kBatch = "'].size()[0]";
  const auto is_batch = [&](std::string_view side) {
    return side.starts_with("L['") && side.ends_with(kBatch) &&
           side.find('\'', 3) == side.size() - kBatch.size();
  };
  const size_t equals = guard.find(" == ");
  return equals != std::string_view::npos && is_batch(guard.substr(0, equals)) &&
         is_batch(guard.substr(equals + 4));
}

}  // namespace

void read_inputs(JsonFields& fields, const json& root,
                 std::span<const std::optional<ValueRef>> values, TensorReader& tensors,
                 Program& program) {
  const json& signature = fields.object(fields.object(root, "graph_module"), "signature");
  const json& specs = fields.list(signature, "input_specs");
  if (specs.size() != values.size())
    return fields.malformed("the signature has another number of inputs than the graph");
  InputReader reader(fields, root, tensors, program);
  for (size_t i = 0; i < specs.size() && fields.is_ok(); ++i) reader.read(specs[i], values[i]);
}

void read_outputs(JsonFields& fields, const json& root, Program& program) {
  const json& module = fields.object(root, "graph_module");
  const json& specs = fields.list(fields.object(module, "signature"), "output_specs");
  for (const json& spec : specs) {
    const std::string kind = fields.kind(spec, "an output of the signature");
    if (kind == "user_output" || kind.empty()) continue;
    return fields.fail(not_taken("gives an output of kind " + printable(kind) +
                                 ": the program was changed after its export; save it without "
                                 "run_decompositions()"));
  }
  const auto names = output_names(fields, module);
  if (specs.size() != program.graph.outputs.size() || names.size() != specs.size())
    return fields.malformed("the outputs of signature and graph differ");
  for (size_t i = 0; i < names.size(); ++i)
    program.outputs.push_back({names[i], program.graph.outputs[i]});
}

void read_sizes(JsonFields& fields, const json& root, Program& program) {
  for (const json& guard : fields.optional(root, "guards_code")) {
    const std::string text = fields.as_text(guard, "a guard");
    if (fields.is_ok() && !compares_batches(text))
      return fields.fail(not_taken("demands of its inputs that " + printable(text) +
                                   ", which Lockstep cannot promise for every batch; write the "
                                   "model so that it holds for every batch"));
  }
  for (const UserInput& input : program.user_inputs) {
    if (input.shape.empty()) continue;
    const UserDim& first = input.shape.front();
    if (first.symbol.empty() && first.sizes.min != first.sizes.max)
      return fields.fail(not_taken("makes the first dimension of " + printable(input.name) +
                                   " from other sizes; give it a Dim of its own in "
                                   "dynamic_shapes"));
    program.samples.min = std::max(program.samples.min, first.sizes.min);
    program.samples.max = std::min(program.samples.max, first.sizes.max);
  }
}

}  // namespace lockstep::exported
