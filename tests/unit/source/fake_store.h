// A source in memory that counts what it is asked for, and fails as it is told.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "data/source/base/object_store.h"

namespace lockstep::source {

class FakeStore final : public ObjectStore {
 public:
  std::map<std::string, std::string> objects;
  std::string version = "v1";
  bool is_one = false;
  std::function<Status()> before_read = [] { return Status::ok(); };
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> bytes{0};

  const std::string& place() const override { return place_; }
  bool is_one_object() const override { return is_one; }
  Result<std::vector<ObjectInfo>> list() override {
    std::vector<ObjectInfo> listed;
    for (const auto& [name, content] : objects) listed.push_back({name, content.size(), version});
    return listed;
  }
  Status read(const ObjectInfo& object, uint64_t offset, uint64_t count, uint8_t* out) override {
    ++reads;
    LOCKSTEP_RETURN_IF_ERROR(before_read());
    if (object.version != version) return {Code::kBadData, "it has changed"};
    const std::string& content = objects.at(object.name);
    EXPECT_LE(offset + count, content.size());
    std::memcpy(out, content.data() + offset, count);
    bytes += count;
    return Status::ok();
  }

 private:
  std::string place_ = "test://store";
};

inline std::string some_bytes(size_t count, uint32_t seed = 1) {
  std::string bytes(count, '\0');
  for (char& c : bytes) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return bytes;
}

inline std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace lockstep::source
