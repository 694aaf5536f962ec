#include "deploy/cli/keys/job_table.h"

#include <iterator>
#include <vector>

#include "comm/run/job/job_fields.h"
#include "comm/run/job/job_options.pb.h"
#include "comm/run/job/key_values.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaxCount = 1e15;  // exact in a double, and more than anybody counts

bool is_whole_number(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

NumberRange range_of(const FieldDescriptor& field, const wire::KeyOptions& options) {
  NumberRange range = {-kInfinity, kInfinity, options.has_above(), options.has_below()};
  if (options.has_at_least()) range.min = options.at_least();
  if (options.has_above()) range.min = options.above();
  if (options.has_at_most()) range.max = options.at_most();
  if (options.has_below()) range.max = options.below();
  if (is_whole_number(field) && range.max == kInfinity) range.max = kMaxCount;
  return range;
}

// The rows of job_fields(), in the types of this program.
class Table {
 public:
  Table() {
    const auto& fields = wire::job_fields();
    held_.resize(fields.size());
    for (size_t i = 0; i < fields.size(); ++i) add(fields[i], held_[i]);
  }

  std::span<const JobKey> rows() const { return rows_; }

 private:
  // The data that the spans of a row point to.
  struct Held {
    std::vector<std::string_view> names;
    std::vector<NamedDefault> defaults;
    std::vector<std::string_view> elsewhere;
    std::vector<ValueElsewhere> values_elsewhere;
    std::vector<KeyValue> values;  // of a list in the code
    std::vector<KeyValue> models;  // that have the key
    std::string meaning;
    std::string under;
  };

  static std::string meaning_of(const wire::KeyOptions& options, const Held& held) {
    std::string meaning = options.help();
    for (const auto* values : {&held.values, &held.models})
      if (const std::string more = sentences_of(*values); !more.empty()) meaning += ". " + more;
    return meaning;
  }

  static std::string under_of(const wire::KeyOptions& options, const Held& held) {
    if (!options.by_model()) return options.under();
    std::string under;
    for (size_t i = 0; i < held.models.size(); ++i)
      under += (i == 0                       ? ""
                : i + 1 < held.models.size() ? ", "
                                             : " and ") +
               std::string(held.models[i].name);
    return under;
  }

  void add(const wire::JobField& field, Held& held) {
    const wire::KeyOptions& options = *field.options;
    held.names.assign(options.values().begin(), options.values().end());
    held.values = key_values(options.values_of());
    for (const KeyValue& value : held.values) {
      held.names.push_back(value.name);
      held.values_elsewhere.push_back(
          {{value.elsewhere.begin(), value.elsewhere.end()}, value.name, {}});
      std::erase(held.values_elsewhere.back().words, "");
    }
    held.models =
        options.by_model() ? models_with(field.way.back()->name()) : std::vector<KeyValue>();
    held.meaning = meaning_of(options, held);
    held.under = under_of(options, held);
    for (const auto& other : options.default_with())
      held.defaults.push_back({other.name(), other.default_()});
    held.elsewhere.assign(options.elsewhere().begin(), options.elsewhere().end());
    for (const auto& other : options.value_elsewhere())
      held.values_elsewhere.push_back(
          {{other.words().begin(), other.words().end()}, other.instead(), other.advice()});
    JobKey row;
    row.key = field.key;
    row.default_text = options.required() ? std::string_view("required") : options.default_();
    row.range = range_of(*field.way.back(), options);
    row.names = held.names;
    row.named_defaults = held.defaults;
    row.elsewhere = held.elsewhere;
    row.values_elsewhere = held.values_elsewhere;
    row.identity = options.frozen();
    row.shorthand = options.shorthand();
    row.meaning = held.meaning;
    row.values = held.values;
    row.zero = options.zero();
    row.unit = options.unit();
    row.under = held.under;
    row.by_machine = options.by_machine();
    row.common = options.common();
    row.is_path = options.path();
    rows_.push_back(row);
  }

  std::vector<Held> held_;
  std::vector<JobKey> rows_;
};

}  // namespace

std::span<const JobKey> job_keys() {
  static const Table table;
  return table.rows();
}

}  // namespace lockstep
