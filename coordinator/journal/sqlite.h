// The part of SQLite that the journal uses, with errors as values.
//
// Thread-safety: one thread for a Database and its Statements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace lockstep::coordinator {

// A prepared statement. bind() fills the next parameter; run() executes and forgets the values.
class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(uint64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);  // must live until run() or the last step()
  Statement& bind_blob(std::string_view bytes);
  Statement& bind_null();

  Status run();         // for statements without rows
  Result<bool> step();  // true: there is a row; false: no more rows, and ready for new values
  uint64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  void reset();

  sqlite3* database_;
  sqlite3_stmt* statement_;
  int next_ = 1;
};

class Database {
 public:
  // Opens or creates `path`. kUsage if another process has it open, kBadData if it is damaged (as
  // for every other call), kInternal for I/O.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  // For reading the file of a process that has ended. Changes no byte of it. kNoInput if it does
  // not exist. REQUIRES: no process has it open or opens it meanwhile.
  static Result<std::unique_ptr<Database>> open_for_reading(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Status execute(const std::string& sql);
  Result<std::unique_ptr<Statement>> prepare(const std::string& sql);
  Result<uint64_t> integer(const std::string& sql);  // first column of the first row
  sqlite3* handle() { return handle_; }

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_;
};

}  // namespace lockstep::coordinator
