#include "deploy/agent/launch_record.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/trust.h"
#include "deploy/agent/exit_decision.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kStates = {"preparing", "running", "ended"};

std::optional<LaunchState> state_of(std::string_view text) {
  for (size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == text) return static_cast<LaunchState>(i);
  return std::nullopt;
}

// A network file system may remember for half a minute that a file is not there, but looks again
// when a process lists its directory.
void look_anew(const std::string& run_dir) {
  std::error_code ignored;
  const std::filesystem::directory_iterator listed(run_dir, ignored);
}

Status write_record(const std::string& path, const LaunchRecord& record) {
  const json text = {{"launch", record.launch_id},
                     {"state", kStates[static_cast<size_t>(record.state)]},
                     {"beat", record.beat},
                     {"exit_code", record.exit_code}};
  return replace_file(path, text.dump() + "\n");
}

std::optional<LaunchRecord> read_record(const std::string& path) {
  const auto text = read_file(path, limits::kJobFileBytes);
  if (!text.is_ok()) return std::nullopt;
  const json object = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto is = [&object](const char* key, auto has_type) {
    const auto it = object.find(key);
    return it != object.end() && ((*it).*has_type)();
  };
  if (!object.is_object() || !is("launch", &json::is_string) || !is("state", &json::is_string) ||
      !is("beat", &json::is_number_unsigned) || !is("exit_code", &json::is_number_integer))
    return std::nullopt;
  const auto state = state_of(object["state"].get<std::string>());
  if (!state) return std::nullopt;
  return LaunchRecord{object["launch"].get<std::string>(), *state, object["beat"].get<uint64_t>(),
                      object["exit_code"].get<int>()};
}

}  // namespace

Status write_launch_record(const std::string& run_dir, const LaunchRecord& record) {
  return write_record(rundir::file_in(run_dir, rundir::kLaunch), record);
}

Status write_launch_refusal(const std::string& run_dir, const std::string& launch_id,
                            int exit_code) {
  (void)make_run_dir(run_dir);  // if not, the next line says why
  return write_record(rundir::file_in(run_dir, rundir::kLaunchRefusal),
                      {launch_id, LaunchState::kEnded, 0, exit_code});
}

std::optional<LaunchRecord> read_launch_record(const std::string& run_dir,
                                               const std::string& launch_id) {
  look_anew(run_dir);
  auto record = read_record(rundir::file_in(run_dir, rundir::kLaunch));
  if (record && record->launch_id == launch_id) return record;
  auto refusal = read_record(rundir::file_in(run_dir, rundir::kLaunchRefusal));
  return refusal && refusal->launch_id == launch_id ? refusal : record;
}

int64_t look_pause_ms(uint32_t looks, Prng& jitter) {
  constexpr uint32_t kLooksPerPace = 10;
  int64_t pause_ms = kLaunchPollMs;
  for (uint32_t i = kLooksPerPace; i <= looks && pause_ms < kLaunchPollMostMs; ++i)
    pause_ms = std::min(kLaunchPollMostMs, pause_ms * 3 / 2);
  if (pause_ms == kLaunchPollMs) return pause_ms;
  const int64_t spread_ms = pause_ms / 4;
  return pause_ms - spread_ms +
         static_cast<int64_t>(jitter.below(static_cast<uint64_t>(spread_ms) + 1));
}

void LaunchRecorder::still_preparing(int64_t now_ms) {
  if (beat_ms_ && now_ms - *beat_ms_ < kLaunchBeatMs) return;
  beat_ms_ = now_ms;
  ++record_.beat;
  (void)write_launch_record(run_dir_, record_);
}

Status LaunchRecorder::running() {
  record_.state = LaunchState::kRunning;
  return write_launch_record(run_dir_, record_);
}

Status LaunchRecorder::ended(int exit_code) {
  record_.state = LaunchState::kEnded;
  record_.exit_code = exit_code;
  return write_launch_record(run_dir_, record_);
}

LaunchWait::Verdict LaunchWait::see(const std::optional<LaunchRecord>& record, int64_t now_ms) {
  if (record && record->launch_id == launch_id_ && record != seen_) {
    seen_ = record;
    changed_ms_ = now_ms;
  }
  if (seen_ && seen_->state == LaunchState::kRunning) return Verdict::kJoin;
  const bool is_over = seen_ && seen_->state == LaunchState::kEnded;
  if (is_over && !(begins_again_ && seen_->exit_code == kCheckpointedExit)) return Verdict::kEnded;
  return now_ms - changed_ms_ > kLaunchSilenceMs ? Verdict::kGiveUp : Verdict::kWait;
}

bool LaunchWait::should_say(int64_t now_ms) {
  if (!say_ms_ || now_ms < *say_ms_) return false;
  say_ms_.reset();
  return true;
}

}  // namespace lockstep
