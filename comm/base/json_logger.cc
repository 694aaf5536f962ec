#include "comm/base/json_logger.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

struct ValueText {
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(uint64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    return std::isfinite(v) ? fmt::format("{:.9g}", v) : "\"" + fmt::format("{}", v) + "\"";
  }
  std::string operator()(std::string_view v) const { return "\"" + json_escape(v) + "\""; }
};

// The context fields that the line does not have itself.
std::string context_text(const LogContext& context, LogFields fields) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    const auto is_it = [key](const LogField& field) { return field.key == key; };
    if (std::none_of(fields.begin(), fields.end(), is_it))
      text += fmt::format(R"(,"{}":{})", key, value);
  };
  if (!context.run.empty()) add("run", "\"" + json_escape(context.run) + "\"");
  if (context.rank) add("rank", std::to_string(*context.rank));
  if (context.generation != 0) add("generation", std::to_string(context.generation));
  if (context.step) add("step", std::to_string(*context.step));
  return text;
}

class JsonLogger final : public Logger {
 public:
  JsonLogger(std::shared_ptr<spdlog::sinks::sink> sink, std::string process, bool echo,
             LogContextSource context)
      : logger_("", std::move(sink)),
        process_(std::move(process)),
        echo_(echo),
        context_(std::move(context)) {
    logger_.set_pattern("%v");
    logger_.flush_on(spdlog::level::trace);
  }

  void write(std::string_view level, std::string_view event, std::string_view message,
             LogFields fields) override {
    std::string line = fmt::format(
        R"({{"ts":"{}","level":"{}","process":"{}","event":"{}","message":"{}")", log_timestamp(),
        level, json_escape(process_), json_escape(event), json_escape(message));
    if (context_) line += context_text(context_(), fields);
    for (const LogField& field : fields)
      line +=
          fmt::format(R"(,"{}":{})", json_escape(field.key), std::visit(ValueText{}, field.value));
    line += '}';
    logger_.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
    if (echo_ && level != "info")
      std::fprintf(stderr, "%s: %s\n", process_.c_str(), printable_message(message).c_str());
  }

 private:
  spdlog::logger logger_;
  std::string process_;
  bool echo_;
  LogContextSource context_;
};

}  // namespace

std::string log_timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", date, ms);
}

Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr) {
  return open_json_logger(path, std::move(process), echo_to_stderr, nullptr);
}

Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr, LogContextSource context) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode))
    return Status(
        Code::kConfig,
        "the log " + path + " is a symbolic link, which Lockstep does not follow: remove it");
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    return std::unique_ptr<Logger>(std::make_unique<JsonLogger>(
        std::move(sink), std::move(process), echo_to_stderr, std::move(context)));
  } catch (const spdlog::spdlog_ex& error) {
    return Status(Code::kInternal, "cannot open the log " + path + ": " + error.what());
  }
}

}  // namespace lockstep
