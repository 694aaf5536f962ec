// Takes a table of text apart into records of fields, without interpreting the fields.
//
//   table  := (record end)* record?          end: "\n", "\r\n" or "\r"
//   record := field (separator field)*       an empty line is no record
//   field  := any byte but separator, quote, end and NUL
//           | '"' (any byte but quote and NUL | '""')* '"'
//
// The reader skips a UTF-8 byte order mark in front. The separator is the tab, the semicolon or the
// comma: the first in this order that the first line has outside of quotes.
//
// Source: RFC 4180, section 2. The RFC knows only the comma, and lines that end with "\r\n".
// Thread-safety: one thread for each CsvRecords, which reads memory that it does not own.
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
  std::string_view text;  // without its quotes; a doubled quote within appears once
  bool is_quoted = false;
};

struct CsvRecord {
  uint64_t line = 0;  // the line where the record begins, from 1
  std::vector<CsvField> fields;
};

// "line 12, column 3". `column` counts from 0, the text counts from 1.
std::string csv_place(uint64_t line, size_t column);

class CsvRecords {
 public:
  // kBadData if the text is in another encoding; the message goes on after the file's name.
  static Result<CsvRecords> open(std::string_view text);

  // Reads the next record, whose fields are valid until the following call; false after the last
  // record. kBadData with line and column; the message goes on after the file's name. After an
  // error there are no more records.
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
  std::deque<std::string> unquoted_;  // fields that `text_` does not hold as they are
};

}  // namespace lockstep::data
