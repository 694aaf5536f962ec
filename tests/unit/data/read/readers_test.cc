// Every format by every reader, little and far ahead: the same batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/fails_with.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class EveryReaderOf : public BatchesOfAFormat {
 protected:
  SeenBatches read_all(PrefetchPolicy* reading, uint32_t threads, SlotRun slots = {0, kSlots}) {
    LoaderOptions wanted = options();
    wanted.slots = slots;
    wanted.skips.add(1, 1, 2);
    wanted.prefetch = reading;
    wanted.threads = threads;
    return read(wanted);
  }
};

INSTANTIATE_TEST_SUITE_P(, EveryReaderOf, testing::ValuesIn(every_format_name()),
                         [](const auto& param) { return param.param; });

TEST_P(EveryReaderOf, HasTheSameBatchesByEveryReaderLittleAndFarAhead) {
  const SeenBatches plain = read_all(nullptr, 1);
  const SeenBatches some_slots = read_all(nullptr, 1, {1, 2});
  ASSERT_EQ(plain.error, "");
  ASSERT_GT(plain.by_slot.size(), 2U);
  for (const std::string reader : kReaders)
    for (const uint64_t mib : {0, 1, 64}) {
      PrefetchPolicy reading = reading_of(reader, mib);
      EXPECT_TRUE(read_all(&reading, 3) == plain) << reader << " " << mib;
      EXPECT_TRUE(read_all(&reading, 1, {1, 2}) == some_slots) << reader << " " << mib;
      // Pixels that are cut are copied from where they are mapped.
      const bool is_encoded = dataset_->is<EncodedImages>();
      const bool is_read =
          mib > 0 && dataset_->extent(0) && (reader == "pread" || (is_encoded && reader != "auto"));
      EXPECT_EQ(reading.figures().reads > 0, is_read) << reader << " " << mib;
    }
}

TEST_P(EveryReaderOf, EndsByNameWithEveryReaderWhereAFileIsCutOff) {
  const auto first = dataset_->extent(0);
  if (!first) GTEST_SKIP() << "is read in one way only";
  const std::string path = first->path;
  fs::resize_file(path, first->offset + 1);
  for (const std::string reader : kReaders) {
    PrefetchPolicy reading = reading_of(reader, 1);
    const std::string said = read_all(&reading, 2).error;
    EXPECT_THAT(said, HasSubstr(path)) << reader;
    EXPECT_THAT(said, testing::AnyOf(Says("since", "indexed"), Says("changed"))) << reader;
  }
}

}  // namespace
}  // namespace lockstep::data
