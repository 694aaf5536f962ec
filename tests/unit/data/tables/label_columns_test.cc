// A column is the label because its name says so or a job does, in every format that has columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/base/crc32c.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/shards/mds_index.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/shards/webdataset.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Column {
  std::string name;
  std::string kind;  // "image", "int", "str", "ints"
  int value = 0;
};
using Columns = std::vector<Column>;

// How a format writes one sample, and what it says its columns are.
struct WithColumns {
  std::string format;
  Result<TakenColumns> (*choose)(const Columns& columns, const ColumnNames& wanted);
};

ArrowField arrow_field(const Column& column) {
  if (column.kind == "int") return arrow_int(column.name, 8, true);
  if (column.kind == "ints") return arrow_list(column.name, arrow_int("item", 8, true));
  ArrowField field;
  field.name = column.name;
  field.kind = column.kind == "image" ? ArrowKind::kBinary : ArrowKind::kOther;
  field.type_text = column.kind == "image" ? "binary" : "string";
  return field;
}

Result<TakenColumns> in_arrow(const Columns& columns, const ColumnNames& wanted) {
  ArrowSchema schema;
  for (const Column& column : columns) schema.fields.push_back(arrow_field(column));
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrowChoice choice, choose_columns(schema, wanted));
  return choice.columns;
}

// A protobuf field of bytes.
std::string proto(unsigned number, const std::string& content) {
  std::string out(1, static_cast<char>((number << 3) | 2));
  size_t size = content.size();
  for (; size >= 0x80; size >>= 7) out += static_cast<char>((size & 0x7F) | 0x80);
  return out + static_cast<char>(size) + content;
}

std::string tf_feature(const Column& column) {
  std::string value;
  if (column.kind == "image") value = proto(1, proto(1, image_sample("jpeg_420")));
  if (column.kind == "str") value = proto(1, proto(1, "cat"));
  if (column.kind == "int")
    value = proto(3, proto(1, std::string(1, static_cast<char>(column.value))));
  if (column.kind == "ints") value = proto(3, proto(1, std::string("\0\1\0", 3)));
  return proto(1, proto(1, column.name) + proto(2, value));
}

std::string as_record(const Columns& columns) {
  std::string features;
  for (const Column& column : columns) features += tf_feature(column);
  const std::string data = proto(1, features);
  std::string head(8, '\0');
  for (size_t i = 0; i < 8; ++i) head[i] = static_cast<char>(data.size() >> (8 * i));
  const auto sum = [](const std::string& text) {
    const uint32_t crc = masked_crc32c(text);
    return std::string(reinterpret_cast<const char*>(&crc), sizeof crc);
  };
  return head + sum(head) + data + sum(data);
}

Result<TakenColumns> in_tfrecord(const Columns& columns, const ColumnNames& wanted) {
  TakenColumns taken;
  const std::string record = as_record(columns);
  LOCKSTEP_RETURN_IF_ERROR(samples_of_tfrecord(span_of(record), wanted, &taken).status());
  return taken;
}

Result<TakenColumns> in_mds(const Columns& columns, const ColumnNames& wanted) {
  MdsShard shard;
  shard.name = "shard.00000.mds";
  for (const Column& column : columns) {
    const bool is_int = column.kind == "int";
    const std::string encoding = column.kind == "image" ? "jpeg" : is_int ? "int" : column.kind;
    shard.columns.push_back({column.name, encoding, is_int ? uint64_t{8} : 0});
  }
  LOCKSTEP_RETURN_IF_ERROR(choose_mds_columns(shard, wanted));
  return TakenColumns{shard.columns[shard.image].name, shard.columns[shard.label].name, ""};
}

Result<TakenColumns> in_json_of_tar(const Columns& columns, const ColumnNames& wanted) {
  std::string archive;
  nlohmann::json json = nlohmann::json::object();
  for (const Column& column : columns) {
    if (column.kind == "image")
      archive += tar_entry(
          {"0." + (wanted.input.empty() ? "jpg" : column.name), image_sample("jpeg_420")});
    if (column.kind == "int") json[column.name] = column.value;
    if (column.kind == "str") json[column.name] = "cat";
  }
  archive += tar_entry({"0.json", json.dump()});
  SourceNotes notes;
  LOCKSTEP_RETURN_IF_ERROR(samples_of_tar(span_of(archive), wanted, &notes).status());
  TakenColumns taken = notes.columns;
  const std::string place = "json: ";
  if (taken.label.starts_with(place)) taken.label = taken.label.substr(place.size());
  return taken;
}

class LabelColumns : public testing::TestWithParam<WithColumns> {
 protected:
  static Result<TakenColumns> choose(const Columns& columns, const ColumnNames& wanted = {}) {
    return GetParam().choose(columns, wanted);
  }
};

TEST_P(LabelColumns, AreKnownByTheSameNames) {
  // Written out: a name that goes from the table must be missed here.
  for (const char* name : {"label", "labels", "target", "class", "y", "fine_label", "cls",
                           "image/class/label", "Label", "TARGET"}) {
    const auto taken =
        choose({{"id", "int", 9}, {"image", "image"}, {std::string(name), "int", 1}});
    ASSERT_TRUE(taken.is_ok()) << name << taken.status().message();
    EXPECT_EQ(taken->label, name);
  }
  const auto cifar =
      choose({{"coarse_label", "int", 1}, {"img", "image"}, {"fine_label", "int", 2}});
  ASSERT_TRUE(cifar.is_ok()) << cifar.status().message();
  EXPECT_EQ(cifar->label, "fine_label");
  const auto both = choose({{"target", "int", 1}, {"img", "image"}, {"label", "int", 2}});
  EXPECT_EQ(both->label, "label");
}

TEST_P(LabelColumns, AreNoOtherNumbers) {
  for (const char* other : {"image_id", "height", "sample_id", "index", "i", "label_id"}) {
    const auto taken = choose({{"image", "image"}, {other, "int", 7}, {"class_name", "str"}});
    EXPECT_THAT(taken, FailsWith(Code::kBadData, Says("label"), Advises("data.label"))) << other;
  }
  const auto named = choose({{"image", "image"}, {"image_id", "int", 7}, {"label", "str"}});
  EXPECT_THAT(named, FailsWith(Code::kBadData, Says("label"), Advises("data.label")));
}

TEST_P(LabelColumns, AreWhatAJobNames) {
  const Columns columns{{"image", "image"}, {"label", "int", 1}, {"coarse", "int", 2}};
  const auto taken = choose(columns, {"", "coarse"});
  ASSERT_TRUE(taken.is_ok()) << taken.status().message();
  EXPECT_EQ(taken->label, "coarse");
  EXPECT_THAT(choose(columns, {"", "other"}),
              FailsWith(Code::kBadData, Names("other", "data.label")));
}

TEST_P(LabelColumns, BesideAnImageThatAJobNames) {
  const Columns columns{{"left", "image"}, {"right", "image"}, {"label", "int", 1}};
  for (const char* name : {"left", "right"}) {
    const auto taken = choose(columns, {name, ""});
    ASSERT_TRUE(taken.is_ok()) << taken.status().message();
    EXPECT_EQ(taken->input, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LabelColumns,
                         testing::Values(WithColumns{"arrow", in_arrow},
                                         WithColumns{"tfrecord", in_tfrecord},
                                         WithColumns{"mds", in_mds},
                                         WithColumns{"webdataset", in_json_of_tar}),
                         [](const auto& format) { return format.param.format; });

TEST(LabelColumnsOfArrow, ListsOfNumbersBesideImagesAreNoTokens) {
  const Columns columns{{"image", "image"}, {"bbox", "ints"}, {"id", "int", 1}};
  EXPECT_THAT(in_arrow(columns, {}), FailsWith(Code::kBadData, Says("no label")));
  EXPECT_EQ(in_arrow(columns, {"bbox", ""})->input, "bbox") << "asked for";
  EXPECT_EQ(in_arrow({{"image", "image"}, {"input_ids", "ints"}}, {})->input, "input_ids");
}

TEST(LabelColumnsOfTfrecord, AreOneInAllRecords) {
  const std::string shard = as_record({{"image", "image"}, {"label", "int", 1}}) +
                            as_record({{"image", "image"}, {"target", "int", 1}});
  EXPECT_THAT(samples_of_tfrecord(span_of(shard)).status(),
              FailsWith(Code::kBadData, Names("target", "label"), Advises("data.label")));
}

TEST(LabelColumnsOfTar, FilesOfTheSampleComeBeforeItsJson) {
  const auto labels = [](const std::string& archive, const ColumnNames& wanted = {}) {
    const auto samples = samples_of_tar(span_of(archive), wanted);
    EXPECT_TRUE(samples.is_ok()) << samples.status().message();
    std::vector<uint32_t> found;
    for (size_t i = 0; samples.is_ok() && i < samples->size(); ++i)
      found.push_back((*samples)[i].label);
    return found;
  };
  const std::string archive = tar_entry({"0.json", R"({"label": 1, "cls": 2})"}) +
                              tar_entry({"0.cls", "3"}) + tar_entry({"0.target", "4"}) +
                              tar_entry({"0.jpg", image_sample("jpeg_420")});
  EXPECT_THAT(labels(archive), ElementsAre(3));
  EXPECT_THAT(labels(archive, {"", "target"}), ElementsAre(4));
  EXPECT_THAT(labels(archive, {"", "label"}), ElementsAre(1));
}

// Every way to open data knows the columns, and says which it took.
TEST(ColumnsOfAJob, AreRefusedWhereThereAreNone) {
  const TemporaryDirectory dir;
  write_file(dir.path("images-idx3-ubyte"), some_images(6, 3, 4));
  write_file(dir.path("labels-idx1-ubyte"), some_labels(6));
  SampleCut cut;
  cut.columns.label = "label";
  EXPECT_THAT(inspect_data(spec_of(dir.path()), dir.path("cache"), {}, cut),
              FailsWith(Code::kUsage, Names("data.label", dir.path(), "idx"), Advises("leave")));
  write_file(dir.path("t.arrow"), arrow_sample("list_uint16"));
  cut.block = 4;
  EXPECT_THAT(inspect_data(spec_of(dir.path("t.arrow")), dir.path("cache"), {}, cut),
              FailsWith(Code::kUsage, Names("data.label", "arrow_tokens"), Advises("leave")));
}

TEST(ColumnsOfAJob, AreShownByInspectAlsoFromAnIndex) {
  const TemporaryDirectory dir;
  write_file(dir.path("x.tfrecord"),
             as_record({{"a", "image"}, {"n", "int", 3}, {"y", "int", 1}}) +
                 as_record({{"a", "image"}, {"n", "int", 2}, {"y", "int", 0}}));
  for (const std::string label : {"y", "n", "y"}) {
    SampleCut cut;
    cut.columns.label = label;
    const auto seen = inspect_data(spec_of(dir.path("x.tfrecord")), dir.path("cache"), {}, cut);
    ASSERT_TRUE(seen.is_ok()) << seen.status().message();
    EXPECT_EQ(seen->splits[0].notes.columns.label, label);
    EXPECT_EQ(seen->splits[0].notes.columns.input, "a");
    EXPECT_EQ(seen->splits[0].classes, label == "y" ? 2U : 4U);
    EXPECT_THAT(to_text(*seen), AllOf(HasSubstr("input"), HasSubstr("label        " + label)));
  }
}

}  // namespace
}  // namespace lockstep::data
