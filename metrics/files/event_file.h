// Writes scalars for TensorBoard: a file of TFRecords, each an Event of tensorflow's event.proto.
// The encoding is by hand, because only a handful of its fields is needed.
//
//   record: length (8 bytes, little-endian), masked CRC-32C of these, Event, masked CRC-32C of it
//   Event:  1 wall_time (double), 2 step (int64), and one of 3 file_version (string),
//           5 summary { 1 value { 1 tag, 2 simple_value (float) } }, 7 session_log { 1 status }
//
// A file whose session starts at step s replaces what older files of its directory say about steps
// from s on (SessionLog.START). A file is older if its name sorts first.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// "events.out.tfevents.1763704800.node.7". It sorts after the names of earlier seconds.
std::string event_file_name(int64_t wall_s, const std::string& host, uint64_t number);

class EventFile {
 public:
  // Begins a new file with its version. Refuses an existing file.
  static Result<std::unique_ptr<EventFile>> create(const std::string& path, double wall_s);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void start_session(uint64_t step, double wall_s);
  void scalar(std::string_view tag, uint64_t step, double wall_s, float value);

  // Makes added scalars visible to readers.
  Status flush();

 private:
  EventFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  void add(double wall_s, uint64_t step, std::string_view rest);

  int fd_;
  std::string path_;
  std::string pending_;
};

}  // namespace lockstep
