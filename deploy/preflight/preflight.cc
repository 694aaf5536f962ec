#include "deploy/preflight/preflight.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "comm/base/byte_units.h"
#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/base/log.h"
#include "comm/environment/standard_streams.h"
#include "comm/net/network.h"
#include "comm/rpc/asio_transport.h"
#include "comm/run/directory/layout.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "deploy/preflight/directory_check.h"
#include "deploy/preflight/doors.h"
#include "deploy/preflight/finding.h"

namespace lockstep::preflight {
namespace {

namespace fs = std::filesystem;

constexpr int kUnfit = 78;
constexpr size_t kSmallBytes = 4 * kKib;
constexpr size_t kReportBytes = 4 * kMib;

std::string seconds(int64_t ms) {
  return std::to_string(ms / 1000) + " s";
}

class Preflight {
 public:
  explicit Preflight(const PreflightOptions& options) : options_(options) {
    const std::string id = options.launch_id.empty() ? "alone" : options.launch_id;
    std::string name;
    for (const char c : id) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    folder_ = rundir::file_in(options.run_dir, rundir::kPreflight + name + ".tmp");
    report_.rank = options.rank;
    report_.host = options.host;
  }

  Result<int> run() { return options_.rank == 0 ? lead() : follow(); }

 private:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string file(const char* name, uint32_t rank) const {
    return file(name + std::string("-") + std::to_string(rank));
  }

  // Runs the loop, so that others are answered meanwhile.
  bool wait_until(int64_t most_ms, const std::function<bool()>& condition) {
    const int64_t until_ms = loop_.now_ms() + most_ms;
    while (!condition()) {
      if (loop_.now_ms() >= until_ms) return false;
      (void)loop_.run_one(kPollMs);
    }
    return true;
  }

  void find(const char* subject, Grade grade, const std::string& text) {
    report_.findings.push_back({subject, grade, text});
  }

  // ---- what all ranks do ----

  // False: nothing more can be tried; the report says why.
  bool open_door() {
    const Status status = try_open_door();
    if (!status.is_ok()) find("network", Grade::kBad, status.message());
    return status.is_ok();
  }

  Status try_open_door() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string secret, rpc::read_token_file(file("token")));
    token_ = rpc::Token(secret);
    LOCKSTEP_ASSIGN_OR_RETURN(tls_, rpc::open_tls(options_.job.comm().tls(), *logger_));
    transport_.emplace(loop_, tls_);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string host,
                              rpc::own_address_in(options_.job.comm().network()));
    const std::string name = options_.rank == 0 ? options_.job.comm().advertise() : "";
    LOCKSTEP_ASSIGN_OR_RETURN(
        door_, Door::open(*transport_, host, name, token_, options_.version, *logger_));
    rpc::Address told = door_->address();
    if (!name.empty()) told.host = name;
    return replace_file(file("address", options_.rank), rpc::to_string(told));
  }

  std::optional<rpc::Address> address_of(uint32_t rank) const {
    const auto text = read_file(file("address", rank), kSmallBytes);
    if (!text.is_ok()) return std::nullopt;
    const auto address = rpc::parse_address(*text);
    return address.is_ok() ? std::optional(*address) : std::nullopt;
  }

  void knock_at_all() {
    const std::vector<uint32_t> doors = doors_of(options_.rank, options_.size);
    std::vector<std::unique_ptr<Knock>> knocks;
    (void)wait_until(options_.wait_ms, [&] {
      return std::all_of(doors.begin(), doors.end(),
                         [&](uint32_t rank) { return address_of(rank).has_value(); });
    });
    for (const uint32_t rank : doors) {
      const auto address = address_of(rank);
      if (!address) continue;  // that rank says itself why, or rank 0 that it is missing
      const std::string door = "rank " + std::to_string(rank) + " at " + rpc::to_string(*address);
      knocks.push_back(
          std::make_unique<Knock>(*transport_, *address, token_, options_.version, door));
    }
    // A little longer than a knock lasts: it knows best why it failed.
    (void)wait_until(kKnockMs + kLastWordsMs, [&] {
      return std::all_of(knocks.begin(), knocks.end(), [](const auto& k) { return k->is_over(); });
    });
    for (const auto& knock : knocks) {
      knock->give_up();
      for (const Finding& finding : knock->findings())
        if (std::find(report_.findings.begin(), report_.findings.end(), finding) ==
            report_.findings.end())
          report_.findings.push_back(finding);
    }
  }

  void look_at_everything() {
    report_.findings.push_back(check_operations(folder_, "try-" + std::to_string(options_.rank)));
    if (options_.rank > 0) report_.findings.push_back(check_lock_is_seen(file("lock")));
    if (worst_of(report_) == Grade::kBad) return;
    if (open_door()) knock_at_all();
  }

  // ---- rank 0 ----

  Result<int> lead() {
    const std::vector<fs::path> made = make_directories();
    auto code = lead_in_folder();
    remove_folder();
    // Files that others have put there meanwhile stay, and with them the directory.
    std::error_code error;
    for (auto path = made.rbegin(); path != made.rend() && fs::remove(*path, error); ++path) {
    }
    return code;
  }

  // The run directory and those above it, as far as they were missing; the topmost first.
  std::vector<fs::path> make_directories() const {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path at = options_.run_dir; !at.empty() && !fs::exists(at, error);
         at = at.parent_path())
      missing.insert(missing.begin(), at);
    fs::create_directories(options_.run_dir, error);
    return missing;
  }

  // A file system that keeps an open file under another name keeps its directory, too, until the
  // last host has closed it.
  void remove_folder() {
    std::error_code error;
    (void)wait_until(kLastWordsMs, [&] {
      fs::remove_all(folder_, error);
      return !fs::exists(folder_, error);
    });
  }

  Result<int> lead_in_folder() {
    std::error_code error;
    fs::remove_all(folder_, error);
    if (!fs::create_directory(folder_, error))
      return Status(Code::kConfig, "cannot make " + folder_ + ": " + error.message());
    LOCKSTEP_RETURN_IF_ERROR(rpc::create_token_file(file("token")).status());
    const auto lock = HeldLock::take(file("lock"));
    if (!lock.is_ok()) find("directory", Grade::kBad, lock.status().message());
    LOCKSTEP_RETURN_IF_ERROR(replace_file(file("begun"), std::to_string(options_.size)));
    look_at_everything();
    const int code = tell(gather());
    (void)replace_file(file("verdict"), std::to_string(code));
    wait_for_readers();
    return code;
  }

  std::optional<Report> report_of(uint32_t rank) const {
    const auto text = read_file(file("report", rank), kReportBytes);
    if (!text.is_ok()) return std::nullopt;
    auto report = report_from_json(*text);
    return report.is_ok() && report->rank == rank ? std::optional(*report) : std::nullopt;
  }

  std::vector<Report> gather() {
    std::vector<Report> reports = {report_};
    std::set<uint32_t> missing;
    for (uint32_t rank = 1; rank < options_.size; ++rank) missing.insert(rank);
    (void)wait_until(options_.wait_ms, [&] {
      for (auto at = missing.begin(); at != missing.end();) {
        auto report = report_of(*at);
        if (report) reports.push_back(std::move(*report));
        at = report ? missing.erase(at) : std::next(at);
      }
      return missing.empty();
    });
    for (const uint32_t rank : missing)
      reports.push_back(
          {rank,
           "",
           {{"directory", Grade::kBad,
             "wrote nothing to " + options_.run_dir + " within " + seconds(options_.wait_ms) +
                 "; check that all hosts share this directory, and that this rank started"}}});
    std::sort(reports.begin(), reports.end(),
              [](const Report& a, const Report& b) { return a.rank < b.rank; });
    return reports;
  }

  int tell(const std::vector<Report>& reports) {
    Grade worst = Grade::kGood;
    std::set<std::string> hosts;
    for (const Report& report : reports) {
      worst = std::max(worst, worst_of(report));
      if (!report.host.empty()) hosts.insert(report.host);
    }
    print_text("%s", table_of(reports).c_str());
    print_text("%s: %u %s on %zu %s, run directory %s\n",
               worst == Grade::kBad       ? "NOT READY"
               : worst == Grade::kWarning ? "ready, with warnings"
                                          : "ready",
               options_.size, options_.size == 1 ? "rank" : "ranks", hosts.size(),
               hosts.size() == 1 ? "host" : "hosts", options_.run_dir.c_str());
    std::fflush(stdout);
    return worst == Grade::kBad ? kUnfit : 0;
  }

  // A rank that has read the verdict takes its report away.
  void wait_for_readers() {
    (void)wait_until(kLastWordsMs, [&] {
      for (uint32_t rank = 1; rank < options_.size; ++rank)
        if (fs::exists(file("report", rank))) return false;
      return true;
    });
  }

  // ---- the other ranks ----

  Result<int> follow() {
    const auto begun = [&] { return read_file(file("begun"), kSmallBytes).is_ok(); };
    if (!wait_until(options_.wait_ms, begun)) return not_seen();
    look_at_everything();
    LOCKSTEP_RETURN_IF_ERROR(replace_file(file("report", options_.rank), to_json(report_)));
    std::optional<int> code;
    const bool is_told = wait_until(2 * options_.wait_ms + kKnockMs, [&] {
      const auto text = read_file(file("verdict"), kSmallBytes);
      if (text.is_ok()) code = *text == "0" ? 0 : kUnfit;
      return code.has_value() || !fs::exists(folder_);
    });
    std::error_code error;
    fs::remove(file("report", options_.rank), error);
    if (code) return *code;
    if (is_told) return worst_of(report_) == Grade::kBad ? kUnfit : 0;
    return Status(Code::kConfig, "rank " + std::to_string(options_.rank) + " on " + options_.host +
                                     " heard nothing more from rank 0; see rank 0's output");
  }

  Result<int> not_seen() {
    print_error(
        "lockstep: rank %u on %s does not see in %s what rank 0 wrote there: name a run "
        "directory that all hosts share\n",
        options_.rank, options_.host.c_str(), options_.run_dir.c_str());
    (void)wait_until(kLastWordsMs, [] { return false; });
    return kUnfit;
  }

  const PreflightOptions& options_;
  std::string folder_;
  Report report_;
  std::unique_ptr<Logger> logger_ = null_logger();  // everything is in the report
  rpc::AsioLoop loop_;
  rpc::Token token_;
  std::shared_ptr<rpc::TlsIdentity> tls_;
  std::optional<rpc::AsioTransport> transport_;
  std::unique_ptr<Door> door_;
};

}  // namespace

std::vector<uint32_t> doors_of(uint32_t rank, uint32_t size) {
  std::set<uint32_t> doors = {0};
  for (uint64_t distance = 1; distance < size; distance *= 2)
    doors.insert(static_cast<uint32_t>((rank + distance) % size));
  return {doors.begin(), doors.end()};
}

Result<int> run(const PreflightOptions& options) {
  return Preflight(options).run();
}

}  // namespace lockstep::preflight
