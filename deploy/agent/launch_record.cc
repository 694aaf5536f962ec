#include "deploy/agent/launch_record.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kStates = {"preparing", "running", "ended"};

std::optional<LaunchState> state_of(std::string_view text) {
  for (size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == text) return static_cast<LaunchState>(i);
  return std::nullopt;
}

std::string path_of(const std::string& run_dir) {
  return run_dir + "/" + kLaunchRecordName;
}

// A network file system may remember for half a minute that a file is not there, but looks anew
// when its directory is listed.
void look_anew(const std::string& run_dir) {
  std::error_code ignored;
  const std::filesystem::directory_iterator listed(run_dir, ignored);
}

}  // namespace

Status write_launch_record(const std::string& run_dir, const LaunchRecord& record) {
  const json text = {{"launch", record.launch_id},
                     {"state", kStates[static_cast<size_t>(record.state)]},
                     {"beat", record.beat},
                     {"exit_code", record.exit_code}};
  return replace_file(path_of(run_dir), text.dump() + "\n");
}

std::optional<LaunchRecord> read_launch_record(const std::string& run_dir) {
  look_anew(run_dir);
  const auto text = read_file(path_of(run_dir), limits::kJobFileBytes);
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
  if (seen_ && seen_->state == LaunchState::kEnded) return Verdict::kEnded;
  return now_ms - changed_ms_ > kLaunchSilenceMs ? Verdict::kGiveUp : Verdict::kWait;
}

}  // namespace lockstep
