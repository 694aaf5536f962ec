// Any bytes as tables of text, and as the evaluation tables that go with them: refused, or rows of
// finite numbers with labels that are classes. A NUL byte, which no table may have, separates the
// two.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "data/csv/csv_table.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {
namespace {

void check_table(const CsvTable& table, size_t bytes) {
  const size_t rows = table.labels.size();
  LOCKSTEP_CHECK(rows > 0 && rows <= bytes, "a row has a byte at least");
  LOCKSTEP_CHECK(table.columns.fields >= 2 && table.columns.fields <= kCsvFields,
                 "columns have a limit");
  LOCKSTEP_CHECK(table.columns.label < table.columns.fields, "the label is a column");
  LOCKSTEP_CHECK(table.values.size() == rows * table.features() && table.lines.size() == rows,
                 "rows are whole");
  for (const float value : table.values) LOCKSTEP_CHECK(std::isfinite(value), "a number is finite");
  const size_t classes = table.classes.empty() ? limits::kLabel + 1 : table.classes.size();
  for (const uint32_t label : table.labels) LOCKSTEP_CHECK(label < classes, "a label is a class");
  LOCKSTEP_CHECK(std::is_sorted(table.classes.begin(), table.classes.end()), "classes have order");
  for (const std::string& name : table.classes) LOCKSTEP_CHECK(is_utf8(name), "a class has a name");
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view first = all.substr(0, all.find('\0'));
  const std::string_view second = all.substr(std::min(first.size() + 1, all.size()));
  CsvTableReader training;
  if (const Status status = training.add(first); !status.is_ok()) {
    LOCKSTEP_CHECK(status.code() == Code::kBadData, "damage is bad data");
    LOCKSTEP_CHECK(is_utf8(status.message()), "messages are text");
    return 0;
  }
  CsvTableReader named(nullptr, {.targets = {"1", "3"}, .weight = "2"});
  if (named.add(first).is_ok()) (void)named.finish();
  const CsvTable table = *training.finish();
  check_table(table, first.size());
  for (const CsvTable* training_table : {static_cast<const CsvTable*>(nullptr), &table}) {
    CsvTableReader more(training_table);
    if (training_table == nullptr) LOCKSTEP_CHECK(more.add(first).is_ok(), "twice the same");
    if (more.add(second).is_ok()) check_table(*more.finish(), size);
  }
  return 0;
}
