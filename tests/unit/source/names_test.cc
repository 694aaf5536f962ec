#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/source/base/object_names.h"
#include "data/source/stores/http_store.h"

namespace lockstep::source {
namespace {

std::vector<ObjectInfo> named(const std::vector<std::string>& names) {
  std::vector<ObjectInfo> objects;
  for (const std::string& name : names) objects.push_back({name, 1, "v"});
  return objects;
}

TEST(ObjectNames, WhatWouldLeaveTheDirectoryIsRefused) {
  for (const char* name :
       {"../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "a\nb", "a/\x7f"}) {
    const Status status = check_names(named({"good", name}));
    EXPECT_EQ(status.code(), Code::kBadData) << name;
  }
  EXPECT_FALSE(check_names(named({std::string(256, 'a')})).is_ok());
  EXPECT_FALSE(check_names(named({std::string("a\0b", 3)})).is_ok());
  EXPECT_FALSE(check_names(named({"a", "a"})).is_ok());
  EXPECT_FALSE(check_names(named({"a", "a-b", "a/b"})).is_ok());  // '-' sorts before '/'
}

TEST(ObjectNames, OddOnesThatFilesMayHaveAreTaken) {
  EXPECT_TRUE(check_names(named({"a b+c%20.jpg", "\xc3\xa9/..x", "a.b/c", "a.b-c"})).is_ok());
}

TEST(ObjectNames, ShardsAndImagesAreReadInPartsAndWhatDescribesThemWhole) {
  EXPECT_EQ(fetching_of(named({"a.tar", "index.json", "README.md", "x/B.JPG", "t-00000-of-00010",
                               "t.tfrecord", "a.tar.gz"})),
            (std::vector{Fetching::kRanges, Fetching::kWhole, Fetching::kLeft, Fetching::kRanges,
                         Fetching::kHeadFirst, Fetching::kHeadFirst, Fetching::kLeft}));
  EXPECT_EQ(fetching_of(named({"train.bin", "notes"})),
            (std::vector{Fetching::kWhole, Fetching::kWhole}));
}

TEST(ObjectNames, AManifestIsNoData) {
  EXPECT_EQ(fetching_of(named({"a.txt", "manifest.txt", "x/manifest.txt", "a-manifest.txt"})),
            (std::vector{Fetching::kWhole, Fetching::kLeft, Fetching::kLeft, Fetching::kWhole}));
  EXPECT_EQ(fetching_of(named({"a.tar", "manifest.txt"})),
            (std::vector{Fetching::kRanges, Fetching::kLeft}));
  EXPECT_EQ(fetching_of(named({"manifest.txt"})), std::vector{Fetching::kWhole}) << "asked for";
}

TEST(ObjectNames, HiddenOnesAreNoData) {
  EXPECT_EQ(fetching_of(named({"._a.txt", "a.txt", "__MACOSX/a.txt", ".git/x"})),
            (std::vector{Fetching::kLeft, Fetching::kWhole, Fetching::kLeft, Fetching::kLeft}));
  EXPECT_EQ(fetching_of(named({"._a.tar", "a.txt"})),
            (std::vector{Fetching::kLeft, Fetching::kWhole}));
  EXPECT_EQ(fetching_of(named({".a.tar"})), std::vector{Fetching::kRanges}) << "asked for";
}

TEST(Manifest, NamesOneALineAsFindWritesThem) {
  EXPECT_EQ(*names_in_manifest("# data\n./a/b c.jpg\r\nd\n\n./x/manifest.txt\nmanifest.txt"),
            (std::vector<std::string>{"a/b c.jpg", "d"}));
  EXPECT_EQ(names_in_manifest("\n# nothing\n").status().code(), Code::kBadData);
}

TEST(Manifest, AnIndexOfMdsNamesItsShards) {
  EXPECT_EQ(*names_in_mds_index(R"({"shards": [{"raw_data": {"basename": "s.mds"}}]})"),
            (std::vector<std::string>{"index.json", "s.mds"}));
  for (const char* text : {"", "[]", "{\"shards\": 1}", "{\"shards\": [1]}",
                           "{\"shards\": [{\"raw_data\": {\"basename\": 1}}]}"})
    EXPECT_EQ(names_in_mds_index(text).status().code(), Code::kBadData) << text;
}

}  // namespace
}  // namespace lockstep::source
