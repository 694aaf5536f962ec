// Tests which column of a table is the label.
#include "data/csv/csv_label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/csv/csv_table.h"
#include "tests/support/fails_with.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<CsvTable> read_one(const std::string& text, const ColumnNames& wanted = {}) {
  CsvTableReader reader(nullptr, wanted);
  LOCKSTEP_RETURN_IF_ERROR(reader.add(text));
  return reader.finish();
}

// UCI's wine: the label comes first, and the last of the measures is a large whole number.
TEST(CsvLabel, IsTheFirstColumnOfNumbersWhereTheLastCannotBe) {
  const auto wine = read_one("1,14.2,1065\n2,13.2,1050\n1,13.1,1185\n3,14.3,1480\n3,12.8,735\n");
  ASSERT_TRUE(wine.is_ok()) << wine.status().message();
  EXPECT_THAT(wine->labels, ElementsAre(1, 2, 1, 3, 3));
  EXPECT_THAT(wine->columns.features, ElementsAre(1, 2));
  EXPECT_THAT(wine->columns.note, AllOf(HasSubstr("first column"), Advises("data.label")));
  // mnist_train.csv: the last pixel is always 0.
  const auto digits = read_one("5,0,3,0\n0,1,9,0\n4,0,0,0\n1,7,7,0\n0,2,2,0\n5,1,1,0\n3,3,3,0\n");
  ASSERT_TRUE(digits.is_ok()) << digits.status().message();
  EXPECT_THAT(digits->labels, ElementsAre(5, 0, 4, 1, 0, 5, 3));
  // The last column is a measure.
  const auto letters = read_one("T,2,8.5\nI,5,12.25\nT,4,1.5\n");
  ASSERT_TRUE(letters.is_ok()) << letters.status().message();
  EXPECT_THAT(letters->classes, ElementsAre("I", "T"));
}

TEST(CsvLabel, IsTheLastColumnIfItCanBeAndThatIsSaid) {
  const auto iris = read_one("5.1,3.5,setosa\n4.9,3,virginica\n4.7,3.2,setosa\n");
  ASSERT_TRUE(iris.is_ok()) << iris.status().message();
  EXPECT_EQ(iris->columns.label, 2U);
  EXPECT_THAT(iris->columns.note, AllOf(HasSubstr("last column"), Advises("data.label")));
  const auto headed = read_one("a,b,species\n1,2,x\n3,4,y\n5,6,x\n");
  ASSERT_TRUE(headed.is_ok()) << headed.status().message();
  EXPECT_THAT(headed->columns.note, Not(IsEmpty()));
  EXPECT_THAT(read_one("a,label\n1,x\n")->columns.note, IsEmpty()) << "nothing is guessed";
}

TEST(CsvLabel, IsNotGuessedWhereNoColumnCanBe) {
  for (const char* table :
       {"id,price\n1,100\n2,200\n3,300\n", "a,b\n1,0\n2,0\n3,0\n", "1.5,10\n2.5,20\n3.5,30\n",
        "a,name\n1,x\n2,y\n3,z\n", "first,b\n0,7\n1,9\n0,11\n1,8\n"}) {
    const auto read_so = read_one(table);
    EXPECT_THAT(read_so, FailsWith(Code::kBadData, Says("label"), Advises("data.label"))) << table;
  }
}

TEST(CsvLabel, AllTablesSayWhatTheLastColumnIs) {
  CsvTableReader reader;
  const std::string tables[] = {"1,2,0\n3,4,0\n5,6,0\n", "7,8,1\n9,10,1\n"};
  for (const std::string& table : tables) reader.look(table);
  for (const std::string& table : tables) ASSERT_TRUE(reader.add(table).is_ok());
  EXPECT_THAT(reader.finish()->labels, ElementsAre(0, 0, 0, 1, 1));
}

TEST(CsvLabel, HasOneOfTheNames) {
  for (const char* name :
       {"label", "Labels", "target", "class", "Y", "fine_label", "cls", "image/class/label"}) {
    const auto table = read_one("p1," + std::string(name) + ",p2\n7,1,8\n7,1,8\n");
    ASSERT_TRUE(table.is_ok()) << table.status().message();
    EXPECT_EQ(table->columns.label, 1U) << name;
    EXPECT_THAT(table->columns.note, IsEmpty()) << name;
  }
}

TEST(CsvLabel, IsTheColumnThatTheJobNames) {
  const std::string text = "a,label,b\n1,5,0\n2,6,1\n3,7,1\n";
  EXPECT_THAT(read_one(text, {"", "b"})->labels, ElementsAre(0, 1, 1));
  EXPECT_THAT(read_one(text, {"", "b"})->columns.features, ElementsAre(0, 1));
  EXPECT_THAT(read_one(text, {"", "1"})->labels, ElementsAre(1, 2, 3));
  EXPECT_THAT(read_one("9,1\n8,2\n", {"", "1"})->labels, ElementsAre(9, 8));
  EXPECT_THAT(read_one(text, {"b, a", ""})->values, ElementsAre(0, 1, 1, 2, 1, 3));
  EXPECT_THAT(read_one(text, {"3", "a"})->values, ElementsAre(0, 1, 1));
  EXPECT_THAT(read_one(text, {"", "c"}),
              FailsWith(Code::kBadData, Names("\"c\"", "\"label\""), Advises("data.label")));
  EXPECT_THAT(read_one(text, {"a,c", ""}), FailsWith(Code::kBadData, Names("\"c\"", "data.input")));
  EXPECT_THAT(read_one("1,2\n", {"", "3"}), FailsWith(Code::kBadData, Names("\"3\"", "2 columns")));
  EXPECT_THAT(read_one(text, {"a,label", ""}),
              FailsWith(Code::kBadData, Names("label"), Says("twice")));
  EXPECT_THAT(read_one(text, {"a,a", ""}), FailsWith(Code::kBadData, Names("a"), Says("twice")));
}

}  // namespace
}  // namespace lockstep::data
