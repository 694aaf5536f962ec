#include "worker/model/exported_program/argument_reader.h"

#include <utility>

#include "comm/base/text/printable.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

template <typename T, typename Read>
std::vector<T> read_list(JsonFields& fields, const json& values, Read read) {
  std::vector<T> list;
  if (!values.is_array()) fields.malformed("an argument is not a list");
  if (values.is_array())
    for (const json& value : values) list.push_back(read(value));
  return list;
}

class ArgumentReader {
 public:
  ArgumentReader(JsonFields& fields, const GraphScope& scope, const std::string& who,
                 const ReadGraph& read_graph)
      : fields_(fields), scope_(scope), who_(who), read_graph_(read_graph) {}

  ProgramArgument read(const json& argument) {
    const std::string kind = fields_.kind(argument, "an argument");
    if (kind.empty()) return {};
    const json& value = argument.begin().value();
    if (kind == "as_none") return std::monostate();
    if (kind == "as_tensor") return tensor(value);
    if (kind == "as_tensors")
      return read_list<ValueRef>(fields_, value, [this](const json& v) { return tensor(v); });
    if (kind == "as_optional_tensor") return one_of(optional_tensor(value));
    if (kind == "as_optional_tensors")
      return read_list<std::optional<ValueRef>>(
          fields_, value, [this](const json& v) { return optional_tensor(v); });
    if (kind.starts_with("as_sym_")) return symbolic(kind, value);
    if (kind == "as_graph") return sub_graph(value);
    return constant(kind, value);
  }

 private:
  static ProgramArgument one_of(std::optional<ValueRef> value) {
    return value ? ProgramArgument(*value) : ProgramArgument();
  }

  ValueRef tensor(const json& value) {
    return scope_.find(fields_, fields_.text(value, "name"), true);
  }

  std::optional<ValueRef> optional_tensor(const json& value) {
    if (fields_.kind(value, "an optional tensor") != "as_tensor") return std::nullopt;
    return tensor(value.begin().value());
  }

  ValueRef number(const json& name) {
    return scope_.find(fields_, fields_.as_text(name, "as_name"), false);
  }

  IntOrRef int_or_ref(const json& value) {
    if (fields_.kind(value, "a symbolic number") == "as_name") return number(value.begin().value());
    return fields_.integer(value, "as_int");
  }

  ProgramArgument symbolic(const std::string& kind, const json& value) {
    if (kind == "as_sym_ints")
      return read_list<IntOrRef>(fields_, value, [this](const json& v) { return int_or_ref(v); });
    const bool is_named = fields_.kind(value, "a symbolic number") == "as_name";
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      if (is_named) return number(value.begin().value());
      if (kind == "as_sym_int") return fields_.integer(value, "as_int");
      if (kind == "as_sym_bool") return fields_.boolean(value, "as_bool");
      return fields_.as_number(fields_.optional(value, "as_float"), "as_float");
    }
    return unknown(kind);
  }

  ProgramArgument sub_graph(const json& value) {
    return read_graph_(fields_.object(value, "graph"));
  }

  ProgramArgument constant(const std::string& kind, const json& value) {
    const char* what = "an argument";
    if (kind == "as_int") return fields_.as_integer(value, what);
    if (kind == "as_float") return fields_.as_number(value, what);
    if (kind == "as_bool") return fields_.as_boolean(value, what);
    if (kind == "as_string") return fields_.as_text(value, what);
    if (kind == "as_scalar_type") return read_dtype(fields_, value, who_);
    if (kind == "as_device") return read_device(fields_, value);
    if (kind == "as_layout") return layout(value);
    if (kind == "as_memory_format") return memory_format(value);
    if (kind == "as_ints")
      return read_list<int64_t>(fields_, value,
                                [&](const json& v) { return fields_.as_integer(v, what); });
    if (kind == "as_floats")
      return read_list<double>(fields_, value,
                               [&](const json& v) { return fields_.as_number(v, what); });
    if (kind == "as_bools")
      return read_list<bool>(fields_, value,
                             [&](const json& v) { return fields_.as_boolean(v, what); });
    return unknown(kind);
  }

  ProgramArgument layout(const json& value) {
    if (fields_.as_integer(value, "a layout") != static_cast<int64_t>(ProgramLayout::kStrided))
      fields_.fail({Code::kConfig, who_ + " takes a tensor that is not dense; write the line with "
                                          "dense tensors"});
    return ProgramLayout::kStrided;
  }

  ProgramArgument memory_format(const json& value) {
    const int64_t format = fields_.as_integer(value, "a memory format");
    const bool is_known = format >= 1 && format <= 4;
    if (!is_known) fields_.malformed("a memory format has an unknown number");
    return is_known ? static_cast<ProgramMemoryFormat>(format) : ProgramMemoryFormat::kPreserve;
  }

  ProgramArgument unknown(const std::string& kind) {
    fields_.fail({Code::kConfig, who_ + " takes an argument of kind " + printable(kind) +
                                     ", which Lockstep does not know; write the line without it"});
    return {};
  }

  JsonFields& fields_;
  const GraphScope& scope_;
  const std::string& who_;
  const ReadGraph& read_graph_;
};

}  // namespace

ValueRef GraphScope::define(JsonFields& fields, const std::string& name, ValueKind kind) {
  const auto number = static_cast<uint32_t>(graph_.values.size());
  if (!values_.emplace(name, number).second)
    fields.malformed("the graph defines " + printable(name) + " twice");
  graph_.values.push_back({name, kind});
  return {number};
}

ValueRef GraphScope::find(JsonFields& fields, const std::string& name, bool is_tensor) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    fields.malformed("the graph uses " + printable(name) + " before it is computed");
    return {};
  }
  if ((graph_.values[found->second].kind == ValueKind::kTensor) != is_tensor)
    fields.malformed("the graph uses " + printable(name) + " as what it is not");
  return {found->second};
}

ProgramArgument read_argument(JsonFields& fields, const GraphScope& scope, const json& argument,
                              const std::string& who, const ReadGraph& read_graph) {
  return ArgumentReader(fields, scope, who, read_graph).read(argument);
}

ProgramDtype read_dtype(JsonFields& fields, const json& value, const std::string& who) {
  const int64_t number = fields.as_integer(value, "a dtype");
  if (number >= 1 && number <= 13) return static_cast<ProgramDtype>(number);
  fields.fail({Code::kConfig, who + " has dtype " + std::to_string(number) +
                                  " of PyTorch's export schema, which Lockstep does not know; use "
                                  "float32, bfloat16 or float16"});
  return ProgramDtype::kFloat;
}

ProgramDevice read_device(JsonFields& fields, const json& value) {
  ProgramDevice device{.type = fields.text(value, "type"), .index = {}};
  const json& index = fields.optional(value, "index");
  if (!index.is_null()) device.index = fields.as_integer(index, "a device's index");
  return device;
}

}  // namespace lockstep::exported
