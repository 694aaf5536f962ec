#include "data/base/column_names.h"

namespace lockstep::data {

std::string no_label_text(const ColumnNames& wanted, const std::string& has) {
  if (!wanted.label.empty())
    return "has no column of whole numbers called " + wanted.label +
           ", as data.label says; it has " + has;
  std::string names;
  for (const std::string_view name : kLabelNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return "has no label: no column of whole numbers has one of the names " + names +
         "; set data.label to the column of the labels; it has " + has;
}

std::string no_input_text(const ColumnNames& wanted, const std::string& what,
                          const std::string& has) {
  return "has no column of " + what + " called " + wanted.input + ", as data.input says; it has " +
         has;
}

}  // namespace lockstep::data
