#include "comm/run/job/job_fields.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "comm/run/job/job_options.pb.h"

namespace lockstep::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Table {
  std::vector<JobField> fields;
  std::deque<KeyOptions> options;  // addresses stay
};

// By the name of a field below a group: what the group says about it.
using Overrides = std::map<std::string, KeyOptions>;

void collect(const Descriptor& type, const std::string& prefix,
             const std::vector<const FieldDescriptor*>& way, const Overrides& overrides,
             Table& table) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    KeyOptions options = field->options().GetExtension(key);
    if (const auto it = overrides.find(field->name()); it != overrides.end())
      options.MergeFrom(it->second);
    auto there = way;
    there.push_back(field);
    const std::string name = prefix + field->name();
    if (field->message_type() == nullptr) {
      const KeyOptions& kept = table.options.emplace_back(std::move(options));
      table.fields.push_back({name, std::move(there), &kept});
      continue;
    }
    Overrides within;
    for (const KeyOptions::Within& w : options.within()) within[w.field()] = w.key();
    collect(*field->message_type(), name + (field->is_repeated() ? ".N." : "."), there, within,
            table);
  }
}

void visit_holders(const JobField& field, size_t step, const std::string& prefix,
                   const Message& message,
                   const std::function<void(const std::string&, const Message&)>& visit) {
  const FieldDescriptor* const next = field.way[step];
  const std::string name = prefix + next->name();
  if (step + 1 == field.way.size()) return visit(name, message);
  const auto* const reflection = message.GetReflection();
  if (!next->is_repeated())
    return visit_holders(field, step + 1, name + ".", reflection->GetMessage(message, next), visit);
  for (int i = 0; i < reflection->FieldSize(message, next); ++i)
    visit_holders(field, step + 1, name + "." + std::to_string(i) + ".",
                  reflection->GetRepeatedMessage(message, next, i), visit);
}

std::string number_text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);  // shortest that is exact
  return {buffer, end.ptr};
}

}  // namespace

std::string field_text(const Message& holder, const FieldDescriptor& field) {
  const auto& reflection = *holder.GetReflection();
  if (field.is_repeated()) {
    std::string all;
    for (int i = 0; i < reflection.FieldSize(holder, &field); ++i)
      all += "[" + reflection.GetRepeatedString(holder, &field, i) + "]";
    return all;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(reflection.GetUInt32(holder, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(reflection.GetUInt64(holder, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return number_text(reflection.GetDouble(holder, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(holder, &field) ? "true" : "false";
    default:
      return reflection.GetString(holder, &field);
  }
}

const std::vector<JobField>& job_fields() {
  static const Table table = [] {
    Table made;
    collect(*JobSpec::descriptor(), "", {}, {}, made);
    return made;
  }();
  return table.fields;
}

const std::vector<JobSection>& job_sections() {
  static const std::vector<JobSection> sections = [] {
    std::vector<JobSection> made;
    const Descriptor& type = *JobSpec::descriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const KeyOptions& options = type.field(i)->options().GetExtension(key);
      if (options.has_section()) made.push_back({type.field(i)->name(), options.section()});
    }
    return made;
  }();
  return sections;
}

std::string section_of(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "job" : name.substr(0, dot);
}

void for_each_holder(
    const JobField& field, const JobSpec& job,
    const std::function<void(const std::string& name, const Message& holder)>& visit) {
  visit_holders(field, 0, "", job, visit);
}

}  // namespace lockstep::wire
