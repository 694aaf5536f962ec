#include "data/files/zip_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/little_endian.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string zip_error(const std::string& archive) {
  const auto entries = zip_entries(span_of(archive));
  return entries.is_ok() ? "taken" : entries.status().message();
}

// Where the list of files begins, and the record at the end of the archive.
size_t list_in(const std::string& archive) {
  return archive.find("PK\x01\x02");
}
size_t end_in(const std::string& archive) {
  return archive.rfind("PK\x05\x06");
}

void put(std::string& archive, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) archive[at + i] = static_cast<char>(value >> (8 * i));
}

TEST(ZipEntries, AreFoundWhereTheyLie) {
  const std::string archive = npz_sample("pair");
  const auto entries = zip_entries(span_of(archive));
  ASSERT_TRUE(entries.is_ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].name, "images.npy");
  EXPECT_EQ((*entries)[1].name, "labels.npy");
  for (const ZipEntry& entry : *entries) {
    EXPECT_FALSE(entry.is_deflated);
    EXPECT_EQ(archive.substr(entry.offset + 1, 5), "NUMPY");
    EXPECT_EQ(archive.substr(entry.offset + entry.bytes, 2), "PK") << "what follows is the next";
  }
  EXPECT_TRUE(zip_entries(span_of(npz_sample("empty")))->empty());
}

// With sizes and places in 64 bits, as archives beyond 4 GiB have them.
TEST(ZipEntries, NumbersMayBeInTheExtension) {
  std::string archive = npz_sample("pair");
  const auto before = *zip_entries(span_of(archive));
  const size_t list = list_in(archive);
  const size_t end = end_in(archive);
  std::string wide(28, '\0');
  put(wide, 0, 1, 2);
  put(wide, 2, 24, 2);
  put(wide, 4, load_le<uint32_t>(span_of(archive).data() + list + 24), 8);
  put(wide, 12, load_le<uint32_t>(span_of(archive).data() + list + 20), 8);
  put(wide, 20, load_le<uint32_t>(span_of(archive).data() + list + 42), 8);
  for (const size_t at : {20, 24, 42}) put(archive, list + at, 0xffffffff, 4);
  put(archive, list + 30, wide.size(), 2);
  put(archive, end + 12, end - list + wide.size(), 4);
  std::string record(56, '\0');
  record.replace(0, 4, "PK\x06\x06");
  put(record, 32, 2, 8);
  put(record, 40, end - list + wide.size(), 8);
  put(record, 48, list, 8);
  std::string place(20, '\0');
  place.replace(0, 4, "PK\x06\x07");
  put(place, 8, end + wide.size(), 8);
  put(archive, end + 16, 0xffffffff, 4);  // only in 64 bits
  archive.insert(end, record + place);
  archive.insert(list + 46 + std::string("images.npy").size(), wide);
  const auto entries = zip_entries(span_of(archive));
  ASSERT_TRUE(entries.is_ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].offset, before[0].offset);
  EXPECT_EQ((*entries)[0].bytes, before[0].bytes);
}

TEST(ZipEntries, DamageIsSeen) {
  const std::string good = npz_sample("pair");
  const size_t list = list_in(good);
  const size_t end = end_in(good);
  const auto with = [&](size_t at, uint64_t value, size_t bytes) {
    std::string archive = good;
    put(archive, at, value, bytes);
    return zip_error(archive);
  };
  EXPECT_EQ(zip_error(good), "taken");
  EXPECT_THAT(zip_error(""), Says("truncated", "zip"));
  EXPECT_THAT(zip_error(good.substr(0, good.size() - 1)), HasSubstr("is truncated"));
  EXPECT_THAT(zip_error(good + "x"), HasSubstr("is truncated"));
  EXPECT_THAT(with(list + 20, 1'000'000, 4),
              AllOf(Names("images.npy"), Says("two different sizes")));
  std::string longer = good;
  for (const size_t at : {20, 24}) put(longer, list + at, 1'000'000, 4);
  EXPECT_THAT(zip_error(longer), AllOf(Names("images.npy"), Says("beyond the archive")));
  EXPECT_THAT(with(list + 42, 0xfffffffe, 4), AllOf(Names("images.npy"), Says("list")));
  EXPECT_THAT(with(list + 42, 1, 4), AllOf(Names("images.npy"), Says("list")));
  EXPECT_THAT(with(list + 42, 0xffffffff, 4), AllOf(Names("images.npy"), Says("no size")));
  EXPECT_THAT(with(end + 16, 0xfffffff0, 4), Says("beyond the archive"));
  EXPECT_THAT(with(end + 10, 3, 2), HasSubstr("ends early"));
  EXPECT_THAT(with(end + 10, 60'000, 2), Says("limit", "4096"));
  EXPECT_THAT(with(list + 8, 1, 2), AllOf(Names("images.npy"), Says("encrypted")));
  EXPECT_THAT(with(list + 10, 93, 2), Says("method 93"));
  // Both files at the place of the first.
  const size_t second = good.find("PK\x01\x02", list + 4);
  EXPECT_THAT(with(second + 42, 0, 4), Says("overlap"));
}

TEST(ZipEntries, NothingIsReadBeyondTheArchive) {
  const std::string good = npz_sample("mnist_compressed");
  const auto check = [](const std::string& archive) {
    const auto entries = zip_entries(span_of(archive));
    if (!entries.is_ok()) return;
    for (const ZipEntry& entry : *entries)
      ASSERT_TRUE(entry.offset <= archive.size() &&
                  entry.stored_bytes <= archive.size() - entry.offset);
  };
  for (size_t n = 0; n < good.size(); ++n) check(good.substr(0, n));
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(good[i] ^ flip);
      check(damaged);
    }
  }
}

}  // namespace
}  // namespace lockstep::data
