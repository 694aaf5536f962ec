#include "deploy/kubernetes/render/yaml_tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace lockstep::k8s {
namespace {

constexpr char kBare[] = "!bare";  // tag of what is no string

// A word that no reader of YAML takes for anything else.
bool is_plain_word(std::string_view value) {
  static constexpr std::array<std::string_view, 9> kOthers = {"y",   "n",    "yes",   "no",  "on",
                                                              "off", "true", "false", "null"};
  if (value.empty() || (std::isalpha(static_cast<unsigned char>(value[0])) == 0 && value[0] != '/'))
    return false;
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kOthers.begin(), kOthers.end(), lower) == kOthers.end() &&
         std::all_of(value.begin(), value.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '/' || c == '-' || c == '_' || c == '=';
         });
}

// Lines that a block keeps as they are: nothing that needs an escape or looks like indentation.
bool fits_block(const std::string& value) {
  if (value.empty() || value.back() != '\n' || value.front() == ' ' || value.front() == '\n' ||
      value.ends_with("\n\n"))
    return false;
  return std::all_of(value.begin(), value.end(),
                     [](unsigned char c) { return c == '\n' || (c >= 0x20 && c != 0x7f); });
}

void emit_text(YAML::Emitter& out, const std::string& value) {
  if (fits_block(value)) {
    out << YAML::Literal << value;
  } else if (is_plain_word(value)) {
    out << value;
  } else {
    out << YAML::DoubleQuoted << value;
  }
}

void emit(YAML::Emitter& out, const Tree& tree) {
  if (tree.IsMap()) {
    if (tree.size() == 0) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& entry : tree) {
      out << YAML::Key;
      emit_text(out, entry.first.as<std::string>());
      out << YAML::Value;
      emit(out, entry.second);
    }
    out << YAML::EndMap;
  } else if (tree.IsSequence()) {
    const bool is_of_words = std::all_of(tree.begin(), tree.end(), [](const Tree& item) {
      return item.IsScalar() && item.Scalar().size() <= 8;
    });
    if (is_of_words) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const auto& item : tree) emit(out, item);
    out << YAML::EndSeq;
  } else if (tree.Tag() == kBare) {
    out << tree.Scalar();
  } else {
    emit_text(out, tree.Scalar());
  }
}

Tree bare(const std::string& value) {
  Tree tree(value);
  tree.SetTag(kBare);
  return tree;
}

}  // namespace

Tree text(const std::string& value) {
  return Tree(value);
}

Tree number(uint64_t value) {
  return bare(std::to_string(value));
}

Tree flag(bool value) {
  return bare(value ? "true" : "false");
}

Tree map(const std::vector<MapEntry>& entries) {
  Tree tree(YAML::NodeType::Map);
  for (const auto& [key, value] : entries) tree[key] = value;
  return tree;
}

Tree list(const std::vector<Tree>& items) {
  Tree tree(YAML::NodeType::Sequence);
  for (const Tree& item : items) tree.push_back(item);
  return tree;
}

Tree texts(const std::vector<std::string>& items) {
  Tree tree(YAML::NodeType::Sequence);
  for (const std::string& item : items) tree.push_back(text(item));
  return tree;
}

std::string to_yaml(const std::vector<Tree>& documents) {
  std::string all;
  for (const Tree& document : documents) {
    YAML::Emitter out;
    emit(out, document);
    all += (all.empty() ? "" : "---\n") + std::string(out.c_str()) + "\n";
  }
  return all;
}

}  // namespace lockstep::k8s
