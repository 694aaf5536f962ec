#include "metrics/files/event_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "comm/base/file.h"

namespace lockstep {
namespace {

std::string path_of(const char* name) {
  return testing::TempDir() + name + std::to_string(::getpid());
}

std::string hex_of(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

TEST(EventFile, HasTheBytesThatTensorBoardWrites) {
  const std::string path = path_of("events-");
  {
    auto file = EventFile::create(path, 1763704800.25);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    (*file)->start_session(3, 1763704801.5);
    (*file)->scalar("train/loss", 3, 1763704802.0, 2.302585F);
    (*file)->scalar("train/loss", 300, 1763704803.0, 0.125F);
    ASSERT_TRUE((*file)->flush().is_ok());
    (*file)->scalar("eval/accuracy", 5'000'000'000, 1763704803.0, 0);
    (*file)->scalar(std::string(200, 'x'), 5'000'000'001, 1763704804.0, -1e-30F);
    ASSERT_TRUE((*file)->flush().is_ok());
  }
  std::ifstream golden(TENSORBOARD_HEX);
  std::stringstream text;
  text << golden.rdbuf();
  std::string expected = text.str();
  std::erase(expected, '\n');
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(hex_of(*read_file(path, 100'000)), expected);
  EXPECT_FALSE(EventFile::create(path, 1).is_ok()) << "it is never written over";
  std::filesystem::remove(path);
}

TEST(EventFile, ANewerNameComesLater) {
  EXPECT_EQ(event_file_name(1763704800, "node", 7), "events.out.tfevents.1763704800.node.7");
  EXPECT_LT(event_file_name(1763704800, "z", 9), event_file_name(1763704801, "a", 0));
}

}  // namespace
}  // namespace lockstep
