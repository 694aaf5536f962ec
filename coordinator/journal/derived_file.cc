#include "coordinator/journal/derived_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstdio>

#include "comm/base/file.h"

namespace lockstep::coordinator {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

std::string metrics_text(const std::vector<MetricValue>& metrics) {
  std::string text;
  for (const MetricValue& metric : metrics)
    text += (text.empty() ? "\"" : ",\"") + metric.name + "\":" + number_text(metric.value);
  return text.empty() ? text : ",\"metrics\":{" + text + "}";
}

Status derived_file_error(const std::string& doing, const std::string& path) {
  return {Code::kInternal, doing + " " + path + ": " + errno_text(errno)};
}

bool is_still_there(int fd, const std::string& path, off_t bytes) {
  struct stat ours {};
  struct stat there {};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino && ours.st_size == bytes;
}

}  // namespace lockstep::coordinator
