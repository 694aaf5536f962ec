// Guesses which column of a table is the label, where neither the job nor a name says it.
//
// The last column is the label if its values are whole numbers from 0, or names, and make more than
// one class, and fewer classes than there are rows. Otherwise, in a table without a header, the
// first column is the label under the same conditions: MNIST's tables and many of UCI's have it
// there. Otherwise no column is.
//
// Thread-safety: one thread for each CsvLabelGuess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "data/csv/csv_records.h"

namespace lockstep::data {

struct GuessedLabel {
  size_t column = 0;
  std::string note;  // what was guessed, and how to say otherwise
};

class CsvLabelGuess {
 public:
  // Looks at one table after another. Stops where something is wrong with a table: the code that
  // reads the table says so. `has_header`: the first record is a header, whatever is in it.
  void look(std::string_view text, bool has_header = false);

  // Also gives the last column if some of its values are no labels, since the code that reads them
  // says which. kBadData: no column; the message goes on after the file's name.
  Result<GuessedLabel> label(bool has_header) const;

 private:
  // The labels if this column were the label.
  struct Column {
    bool is_possible = true;
    std::optional<bool> are_names;
    uint32_t largest = 0;
    std::set<std::string, std::less<>> names;

    void look(const CsvField& field);
    uint64_t classes() const;
    bool fits(uint64_t rows) const;
  };

  uint64_t rows_ = 0;
  Column first_;
  Column last_;
};

// Whether a record is 0, 1, 2 and so on, which is what pandas calls the columns of an array.
bool counts_columns(const CsvRecord& record);

// Whether a record is a header: none of its fields is a number, or it counts three columns or more
// from 0.
bool is_csv_header(const CsvRecord& record);

}  // namespace lockstep::data
