// Writes scalars as TensorBoard reads them: a file of TFRecords, each an Event of tensorflow's
// event.proto, encoded by hand since a handful of its fields is all there is.
//
//   record: length (8 bytes, little-endian), masked CRC-32C of these, Event, masked CRC-32C of it
//   Event:  1 wall_time (double), 2 step (int64), and one of 3 file_version (string),
//           5 summary { 1 value { 1 tag, 2 simple_value (float) } }, 7 session_log { 1 status }
//
// A file whose session starts at step s takes the place of what older files of its directory say of
// steps from s on (SessionLog.START); older means: first by name.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// "events.out.tfevents.1763704800.node.7", which sorts after those of earlier seconds.
std::string event_file_name(int64_t wall_s, const std::string& host, uint64_t number);

class EventFile {
 public:
  // Begins a new file with its version; refuses one that is there.
  static Result<std::unique_ptr<EventFile>> create(const std::string& path, double wall_s);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void start_session(uint64_t step, double wall_s);
  void scalar(std::string_view tag, uint64_t step, double wall_s, float value);

  // What was added is visible to readers after it.
  Status flush();

 private:
  EventFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  void add(double wall_s, uint64_t step, std::string_view rest);

  int fd_;
  std::string path_;
  std::string pending_;
};

}  // namespace lockstep
