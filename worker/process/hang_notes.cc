#include "worker/process/hang_notes.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/base/limits.h"
#include "comm/run/directory/folder.h"
#include "worker/process/nccl_log.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Times as milliseconds before the note was made; null: it has not come so far.
json ago(int64_t at_ns, int64_t now_ns) {
  return at_ns == 0 ? json(nullptr) : json((now_ns - at_ns) / 1'000'000);
}

json line_of(const FlightLine& line, int64_t now_ns) {
  return {{"operation", name_of(line.operation)},
          {"state", name_of(line.state)},
          {"generation", line.place.generation},
          {"step", line.place.step},
          {"bucket", line.place.bucket},
          {"queued_ms", ago(line.queued_ns, now_ns)},
          {"running_ms", ago(line.running_ns, now_ns)},
          {"ended_ms", ago(line.ended_ns, now_ns)}};
}

// A line of the file for each element, so that a person can read it.
void add_list(std::string& text, const char* name, const json& list) {
  text += ",\n\"" + std::string(name) + "\":[";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "\n" : ",\n") + dumped(list[i]);
  text += "]";
}

Status write(const std::string& path, std::string text, const std::string& nccl_log) {
  add_list(text, "nccl", nccl_log.empty() ? std::vector<std::string>() : read_nccl_log(nccl_log));
  rundir::make_folder_of(path);
  return replace_file(path, text + "}\n");
}

}  // namespace

// All of the file but NCCL's lines, which come from storage that may hang.
std::string HangNotes::beginning(const std::string& why, const Progress& at) const {
  const FlightWorld world = parts_.flight.world();
  const int64_t now_ns = parts_.flight.now_ns();
  const json head = {{"format", kFormat},
                     {"written", log_timestamp()},
                     {"why", why},
                     {"process", parts_.process},
                     {"node", parts_.node},
                     {"pid", ::getpid()},
                     {"generation", world.generation},
                     {"rank", world.rank},
                     {"world", world.world},
                     {"applied", at.step},
                     {"buckets_finished", at.bucket},
                     {"buckets_given", at.enqueued}};
  std::string text = dumped(head);
  text.pop_back();  // the bracket
  json lines = json::array();
  for (const FlightLine& line : parts_.flight.newest(limits::kHangLines))
    lines.push_back(line_of(line, now_ns));
  add_list(text, "operations", lines);
  return text;
}

Status HangNotes::save(const std::string& why, const Progress& at) {
  looked_in_ = parts_.flight.world().generation;  // this file says more than look()'s
  return write(parts_.path, beginning(why, at), parts_.nccl_log);
}

bool HangNotes::look(const Progress& at) {
  const Generation generation = parts_.flight.world().generation;
  if (generation == std::exchange(looked_in_, generation)) return false;
  const int64_t still_ms = parts_.flight.stands_still_ms();
  if (still_ms < std::max<int64_t>(1, parts_.standstill_ms)) return false;
  const std::string why = "the generation was closed after its collectives had stood still for " +
                          std::to_string(still_ms / 1'000) + " s";
  try {
    std::thread([path = parts_.path, text = beginning(why, at), log = parts_.nccl_log] {
      (void)write(path, text, log);
    }).detach();
  } catch (const std::system_error&) {
    return false;  // no thread to be had: the worker goes on without the file
  }
  return true;
}

}  // namespace lockstep
