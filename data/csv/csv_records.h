// A table of text taken apart into records of fields, which are not understood here.
//
//   table  := (record end)* record?          end: "\n", "\r\n" or "\r"
//   record := field (separator field)*       an empty line is no record
//   field  := any byte but separator, quote, end and NUL
//           | '"' (any byte but quote and NUL | '""')* '"'
//
// A byte order mark of UTF-8 in front is passed over. The separator is the tab, the semicolon or
// the comma: the first of these that the first line has outside of quotes.
//
// Source: RFC 4180, section 2; it knows the comma only, and lines that end with "\r\n".
// Thread-safety: of a CsvRecords none; it reads memory that it does not own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

inline constexpr size_t kCsvFields = 16'385;  // of one record: features and a label

struct CsvField {
  std::string_view text;  // without its quotes, and those within once each
  bool is_quoted = false;
};

struct CsvRecord {
  uint64_t line = 0;  // of its begin, from 1
  std::vector<CsvField> fields;
};

// "line 12, column 3"; columns are counted from 0 and shown from 1.
std::string csv_place(uint64_t line, size_t column);

class CsvRecords {
 public:
  // kBadData going on after the file's name where the text is in another encoding.
  static Result<CsvRecords> open(std::string_view text);

  // The next one, whose fields are valid until the following call; false behind the last. kBadData
  // going on after the file's name, with line and column; after it there is nothing to be had.
  Result<bool> next(CsvRecord& record);

  char separator() const { return separator_; }

 private:
  explicit CsvRecords(std::string_view text);
  bool skip_end();
  Result<CsvField> field(const CsvRecord& record);
  Result<CsvField> quoted(const CsvRecord& record);

  std::string_view text_;
  size_t at_ = 0;
  uint64_t line_ = 1;
  char separator_ = ',';
  std::deque<std::string> unquoted_;  // fields that are not in `text_` as they are
};

}  // namespace lockstep::data
