#include "coordinator/journal/sqlite.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "comm/base/file.h"

namespace lockstep::coordinator {
namespace {

Code code_of(int error) {
  switch (error) {
    case SQLITE_BUSY:
      return Code::kUsage;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kBadData;
    default:
      return Code::kInternal;
  }
}

std::string journal_of(sqlite3* database) {
  const char* path = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  return "the journal" + (path == nullptr || *path == '\0' ? "" : " " + std::string(path));
}

Status error_of(sqlite3* database, const std::string& doing) {
  const int code = sqlite3_extended_errcode(database);
  std::string text =
      doing + ": " + sqlite3_errmsg(database) + " (SQLite error " + std::to_string(code) + ")";
  const int cause = (code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(database) : 0;
  if (cause != 0) text += ", " + errno_text(cause);
  // SQLite forgets why a write failed. A limit on files is the likeliest cause where there is one.
  rlimit files = {};
  if (code == SQLITE_IOERR_WRITE && ::getrlimit(RLIMIT_FSIZE, &files) == 0 &&
      files.rlim_cur != RLIM_INFINITY)
    text += "; no file may be larger than " + std::to_string(files.rlim_cur) +
            " bytes here (ulimit -f)";
  return {code_of(code & 0xff), text};
}

Status cannot_use(sqlite3* database) {
  const Status status = error_of(database, journal_of(database) + " cannot be read or written");
  if ((sqlite3_errcode(database) & 0xff) != SQLITE_CANTOPEN) return status;
  return {status.code(), status.message() +
                             "; see that it and the file beside it that ends in -wal are files, "
                             "no links, which you may read and write"};
}

// A path inside an SQLite URI.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    switch (c) {
      case '%':
        text += "%25";
        break;
      case '?':
        text += "%3f";
        break;
      case '#':
        text += "%23";
        break;
      default:
        text += c;
    }
  }
  return text;
}

}  // namespace

Statement::Statement(sqlite3* database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

// A bind fails only for a wrong number, and run() then misses a value; nothing to handle here.
Statement& Statement::bind(uint64_t value) {
  sqlite3_bind_int64(statement_, next_++, std::bit_cast<int64_t>(value));
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_, next_++, value);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(statement_, next_++, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_, next_++, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null() {
  sqlite3_bind_null(statement_, next_++);
  return *this;
}

Status Statement::run() {
  Result<bool> row = step();
  if (!row.is_ok()) return row.status();
  if (*row) reset();
  return Status::ok();
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  Status status;
  if (code != SQLITE_DONE) status = cannot_use(database_);
  reset();
  if (!status.is_ok()) return status;
  return false;
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  next_ = 1;
}

uint64_t Statement::integer(int column) const {
  return std::bit_cast<uint64_t>(static_cast<int64_t>(sqlite3_column_int64(statement_, column)));
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {bytes == nullptr ? "" : bytes,
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(handle));
  if (code != SQLITE_OK) return error_of(handle, "the journal " + path + " cannot be opened");
  // The order matters: exclusive locking before WAL makes SQLite keep its index in memory, so no
  // shared-memory file is needed and the journal may lie on a network file system.
  const std::string setup =
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
      "PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE; COMMIT;";
  LOCKSTEP_RETURN_IF_ERROR(database->execute(setup));
  return database;
}

Result<std::unique_ptr<Database>> Database::open_for_reading(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) {
    return Status(Code::kNoInput, "the journal " + path + " cannot be read: " + errno_text(errno));
  }
  // A process that was killed leaves a write-ahead log; only a connection that may write reads
  // that.
  const bool has_log = ::access((path + "-wal").c_str(), F_OK) == 0;
  const std::string uri = "file:" + escaped(path) + (has_log ? "" : "?immutable=1");
  const int flags = (has_log ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI |
                    SQLITE_OPEN_NOMUTEX;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(handle));
  if (code != SQLITE_OK) return error_of(handle, "the journal " + path + " cannot be opened");
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const std::string setup = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON;";
  LOCKSTEP_RETURN_IF_ERROR(database->execute(setup));
  return database;
}

Database::~Database() {
  sqlite3_close(handle_);
}

Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return cannot_use(handle_);
}

Result<std::unique_ptr<Statement>> Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                         nullptr) != SQLITE_OK) {
    const Status status =
        error_of(handle_, journal_of(handle_) + " does not know what to do with \"" + sql + "\"");
    // Only a damaged file lacks our tables.
    const bool is_strange = sqlite3_errcode(handle_) == SQLITE_ERROR;
    return is_strange ? Status(Code::kBadData, status.message()) : status;
  }
  return std::make_unique<Statement>(handle_, statement);
}

Result<uint64_t> Database::integer(const std::string& sql) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto statement, prepare(sql));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool row, statement->step());
  return row ? statement->integer(0) : 0;
}

}  // namespace lockstep::coordinator
