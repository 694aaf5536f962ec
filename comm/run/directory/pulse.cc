#include "comm/run/directory/pulse.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

constexpr size_t kPulseBytes = 128;

}  // namespace

Status write_pulse(const std::string& run_dir, const Pulse& pulse) {
  const std::string path = rundir::file_in(run_dir, rundir::kPulse);
  const std::string temporary = path + ".tmp." + std::to_string(pulse.term);  // a term's own
  const std::string text =
      std::to_string(pulse.term) + " " + std::to_string(pulse.count) +
      (pulse.exit_code ? " ended " + std::to_string(*pulse.exit_code) : " alive") + "\n";
  const int fd = create_own_file(temporary, 0644);
  bool is_written = fd >= 0 && write_all(fd, text);
  if (fd >= 0) is_written = ::close(fd) == 0 && is_written;
  if (is_written && std::rename(temporary.c_str(), path.c_str()) == 0) return Status::ok();
  Status failed(Code::kInternal, "cannot write " + path + ": " + errno_text(errno));
  ::unlink(temporary.c_str());
  return failed;
}

std::optional<Pulse> read_pulse(const std::string& run_dir) {
  const auto text = read_file(rundir::file_in(run_dir, rundir::kPulse), kPulseBytes);
  if (!text.is_ok()) return std::nullopt;
  std::istringstream words(*text);
  Pulse pulse;
  std::string state;
  if (!(words >> pulse.term >> pulse.count >> state)) return std::nullopt;
  if (state == "alive") return pulse;
  int code = 0;
  if (state != "ended" || !(words >> code) || code < 0 || code > 255) return std::nullopt;
  pulse.exit_code = code;
  return pulse;
}

PulseWatch::Verdict PulseWatch::see(const std::optional<Pulse>& pulse, Term newest_claim,
                                    int64_t now_ms) {
  if (pulse && pulse->exit_code) return Verdict::kEnded;
  const bool is_first = !last_look_ms_.has_value();
  if (is_first || pulse != pulse_ || newest_claim != newest_claim_) {
    still_ms_ = 0;
  } else {
    // A longer pause between two looks means that this process was stopped.
    still_ms_ += std::min(now_ms - *last_look_ms_, 2 * kPulseLookMs);
  }
  pulse_ = pulse;
  newest_claim_ = newest_claim;
  last_look_ms_ = now_ms;
  return pulse && still_ms_ >= kStillMs ? Verdict::kLost : Verdict::kWait;
}

}  // namespace lockstep
