#include <gtest/gtest.h>

#include <string>

#include "comm/run/job/data_formats.h"
#include "data/open/formats.h"

namespace lockstep::data {
namespace {

TEST(FormatTable, HasARowForEveryNameAndNoOther) {
  for (const NamedFormat& named : kNamedFormats) {
    const std::string name(named.name);
    const DataFormat* row = find_data_format(name);
    ASSERT_EQ(row == nullptr, name == "auto") << name;
    if (row == nullptr) continue;
    EXPECT_EQ(row->open != nullptr, named.kind == SampleKind::kStored) << name;
    EXPECT_EQ(row->find != nullptr, named.kind == SampleKind::kEncoded) << name;
    EXPECT_NE(row->has_eval, nullptr) << name;
    EXPECT_NE(row->serves_both, nullptr) << name;
  }
  for (const DataFormat* row : data_formats())
    EXPECT_TRUE(row->name.empty() || is_data_format(row->name)) << row->name;
  EXPECT_EQ(find_data_format(""), nullptr);
  EXPECT_EQ(find_data_format("parquet"), nullptr);
}

TEST(FormatTable, NamesOtherFormatsThatAreThere) {
  for (const NamedFormat& named : kNamedFormats)
    for (const std::string_view other : named.may_be)
      EXPECT_TRUE(other.empty() || is_data_format(other)) << named.name << " " << other;
  EXPECT_TRUE(may_be_format("arrow", "tokens"));
  EXPECT_FALSE(may_be_format("npz", ""));
  EXPECT_FALSE(is_open_format("npz"));
}

}  // namespace
}  // namespace lockstep::data
