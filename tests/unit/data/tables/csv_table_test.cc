#include "data/csv/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/text/utf8.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"
#include "tests/support/fails_with.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<CsvTable> read(const std::vector<std::string>& texts, const CsvTable* training = nullptr,
                      const ColumnNames& wanted = {}) {
  CsvTableReader reader(training, wanted);
  for (const std::string& text : texts) LOCKSTEP_RETURN_IF_ERROR(reader.add(text));
  return reader.finish();
}

std::string failure(const std::string& text) {
  const auto table = read({text});
  if (table.is_ok()) return "no failure";
  EXPECT_EQ(table.status().code(), Code::kBadData);
  return table.status().message();
}

TEST(CsvTable, RowsAreNumbersAndTheLastColumnIsTheLabel) {
  const auto table = read({"1,2.5,0\n-3e2,+.5,2\n1,1,0\n1,1,2\n"});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->values, ElementsAre(1, 2.5F, -300, .5F, 1, 1, 1, 1));
  EXPECT_THAT(table->labels, ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(table->classes, IsEmpty());
  EXPECT_THAT(table->columns.names, IsEmpty());
  EXPECT_THAT(table->lines, ElementsAre(1, 2, 3, 4));
}

TEST(CsvTable, EveryEndOfLineAndSeparatorGivesTheSame) {
  for (const std::string end : {"\n", "\r\n", "\r"})
    for (const std::string between : {",", ";", "\t", " , ", "; "})
      for (const std::string& last : {std::string(), end, end + end}) {
        const auto row = [&](const char* a, const char* b, const char* c) {
          return a + between + b + between + c;
        };
        const std::string text = end + row("a", "\"b\"", "label") + end + row("1", "2", "x") + end +
                                 end + row("3", "4", "y") + last;
        if (text.find(" \"") != std::string::npos) continue;  // a quote is its field's first byte
        const auto table = read({text});
        ASSERT_TRUE(table.is_ok()) << text << table.status().message();
        EXPECT_THAT(table->columns.names, ElementsAre("a", "b", "label"));
        EXPECT_THAT(table->values, ElementsAre(1, 2, 3, 4));
        EXPECT_THAT(table->classes, ElementsAre("x", "y"));
        EXPECT_THAT(table->lines, ElementsAre(3, 5));
      }
}

TEST(CsvTable, AByteOrderMarkIsNoPartOfTheFirstName) {
  const auto table = read({"\xEF\xBB\xBFlabel,a\n1,2\n"});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->columns.names, ElementsAre("label", "a"));
  EXPECT_THAT(table->labels, ElementsAre(1));
  EXPECT_THAT(failure(std::string("\xFF\xFE"
                                  "a\0,\0",
                                  6)),
              HasSubstr("UTF-16"));
}

TEST(CsvTable, QuotedFieldsHoldSeparatorsLinesAndQuotes) {
  const auto table = read({"\"a, b\",\"the\r\n\"\"label\"\"\"\n\"1\",\"x,\ny\"\n2,\"\"\"\"\n"},
                          nullptr, {"", "the\r\n\"label\""});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->columns.names, ElementsAre("a, b", "the\r\n\"label\""));
  EXPECT_THAT(table->values, ElementsAre(1, 2));
  EXPECT_THAT(table->classes, ElementsAre("\"", "x,\ny"));
  EXPECT_THAT(table->labels, ElementsAre(1, 0));
  EXPECT_THAT(table->lines, ElementsAre(3, 5));
}

TEST(CsvTable, TheHeaderSaysWhichColumnIsTheLabel) {
  for (const auto& [header, label] :
       {std::pair("Label,b,c", 0), std::pair("a,target,c", 1), std::pair("x,y,label", 2),
        std::pair("label,x,y", 0), std::pair("y,class,z", 1), std::pair("y,b,c", 0)}) {
    const auto table = read({std::string(header) + "\n1,1,1\n"});
    ASSERT_TRUE(table.is_ok()) << table.status().message();
    EXPECT_EQ(table->columns.label, static_cast<size_t>(label)) << header;
  }
  EXPECT_THAT(failure("a,label,LABEL\n1,1,1\n"), AllOf(Names("label"), Says("several")));
}

// A header that is taken for a row, or a row for a header, would be a sample too many or too few.
TEST(CsvTable, WhatMayBeAHeaderOrARowIsRefused) {
  EXPECT_THAT(failure("0,1,label\n1,2,3\n"), Says("header or a row"));
  EXPECT_THAT(failure("1,abc,0\n1,2,1\n1,2,0\n"), Names("\"abc\"", "line 1, column 2"));
  EXPECT_THAT(failure("1,abc,def,0\n1,2,3,1\n1,2,3,0\n"), Names("\"abc\"", "line 1, column 2"));
  EXPECT_THAT(failure("nan,nan,a\n1,2,b\n1,2,a\n"), Says("finite"));
  EXPECT_THAT(failure(",a,label\n0,2,1\n"),
              AllOf(Names("line 1, column 1"), Says("without a name")));
  EXPECT_EQ(read({"1,2,y\n1,2,n\n1,2,y\n"})->classes.size(), 2U);
}

TEST(CsvTable, AHeaderThatTheCallerKnowsMayHaveNumbers) {
  const std::string text = "\"1\",\"0\",\"label\"\n3,4,0\n5,6,1\n";
  EXPECT_FALSE(read({text}).is_ok());
  const auto table = read({text}, nullptr, {.has_header = true});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->columns.names, ElementsAre("1", "0", "label"));
  EXPECT_THAT(table->values, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(table->labels, ElementsAre(0, 1));
}

TEST(CsvTable, NamesOfClassesAreInTheOrderOfTheirBytes) {
  const auto table = read({"1,pear\n2,Zebra\n3,apple\n4,pear\n5,\xC3\xA4pfel\n"});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->classes, ElementsAre("Zebra", "apple", "pear", "\xC3\xA4pfel"));
  EXPECT_THAT(table->labels, ElementsAre(2, 0, 1, 2, 3));
}

// pandas writes the labels of a column with gaps as floats, and numbers the columns of an array.
TEST(CsvTable, WhatPandasWritesIsTakenAsItIsMeant) {
  const auto floats = read({"a,label\n5,2.0\n6,0.0\n7,1\n"});
  ASSERT_TRUE(floats.is_ok()) << floats.status().message();
  EXPECT_THAT(floats->labels, ElementsAre(2, 0, 1));
  const auto numbered = read({"0,1,2\n0.5,7,1\n0.25,8,0\n0.5,8,0\n"});
  ASSERT_TRUE(numbered.is_ok()) << numbered.status().message();
  EXPECT_THAT(numbered->columns.names, ElementsAre("0", "1", "2"));
  EXPECT_THAT(numbered->labels, ElementsAre(1, 0, 0));
  EXPECT_THAT(numbered->columns.header, HasSubstr("line 1, 0 to 2, is taken for a header"));
  const auto two = read({"0,1\n5,0\n6,1\n"});
  EXPECT_EQ(two->labels.size(), 3U) << "two columns may be a row";
  EXPECT_THAT(two->columns.header,
              AllOf(HasSubstr("line 1, 0 to 1, is taken for a row"), Advises("name the columns")));
  EXPECT_THAT(read({"7,1\n5,0\n"}, &*two)->columns.header, IsEmpty()) << "of evaluation";
  EXPECT_THAT(read({"7,1\n5,0\n6,0\n", "0,1\n"})->columns.header, HasSubstr("taken for a row"));
  EXPECT_THAT(read({"0,1\n5,0\n6,1\n7,1\n"}, nullptr, {.has_header = true})->columns.header,
              IsEmpty());
}

TEST(CsvTable, LabelsAreAllNumbersOrAllNames) {
  EXPECT_THAT(failure("1,0\n2,a\n"), Names("\"a\"", "line 2, column 2"));
  EXPECT_THAT(failure("1,a\n2,0\n"), Says("are names"));
  for (const char* label : {"-1", "1.5", "1.01", "1e3", "nan", "inf"})
    EXPECT_THAT(failure(std::string("1,0\n1,") + label + "\n"), Advises("whole numbers", "names"));
  EXPECT_THAT(failure("1,65536\n"), Says("0 to 65535"));
  EXPECT_THAT(failure("1,99999999999999999999\n"), Advises("whole numbers"));
  EXPECT_THAT(failure("1,0\n1,\n"), AllOf(Names("line 2, column 2"), Says("no label")));
}

TEST(CsvTable, WhatIsNoFeatureIsSaidWithLineColumnAndName) {
  const std::string good = "age,mass,label\n1,2,0\n";
  EXPECT_THAT(failure(good + "1,,0\n"),
              AllOf(Names("line 3, column 2", "\"mass\""), Says("nothing")));
  EXPECT_THAT(failure(good + "1, \t,0\n"), AllOf(Names("line 3, column 2"), Says("nothing")));
  EXPECT_THAT(failure(good + "\n\n1,abc,0\n"), Names("\"abc\"", "line 5, column 2", "\"mass\""));
  for (const char* odd : {"1,2", "0x10", "1 2", "1e", "--1", "+-1", "1_000", "true", "\u00A01"})
    EXPECT_THAT(failure(good + "\"" + odd + "\",2,0\n"), Advises("decimal point")) << odd;
  for (const char* odd : {"nan", "-NaN", "inf", "Infinity", "-inf", "nan(1)"})
    EXPECT_THAT(failure(good + "1," + odd + ",0\n"), Says("finite")) << odd;
  for (const char* odd : {"1e400", "-1e400", "3.4028236e38", "1e4000", "-1e99999"})
    EXPECT_THAT(failure(good + "1," + odd + ",0\n"), Says("range")) << odd;
}

TEST(CsvTable, ARowOfAnotherWidthIsRefused) {
  EXPECT_THAT(failure("1,2,0\n1,0\n"), AllOf(Names("line 2", "line 1"), Says("2 columns", "3 in")));
  EXPECT_THAT(failure("1,2,0\n1,2,3,0\n"), AllOf(Names("line 2"), Says("4 columns")));
  EXPECT_THAT(failure("1,2,0\n \n"), AllOf(Names("line 2"), Says("1 columns")));
  EXPECT_THAT(failure("1\n2\n"), AllOf(Names("line 1"), Says("one column")));
}

TEST(CsvTable, DamageIsSeen) {
  EXPECT_THAT(failure(""), HasSubstr("is empty"));
  EXPECT_THAT(failure("\n\r\n\n"), HasSubstr("is empty"));
  EXPECT_THAT(failure("\xEF\xBB\xBF"), HasSubstr("is empty"));
  EXPECT_THAT(failure("a,label\n"), Says("no row"));
  EXPECT_THAT(failure("1,0\n\"2,0\n3,0\n"), AllOf(Names("line 2, column 1"), Says("quoted")));
  EXPECT_THAT(failure("1,0\n2,\""), HasSubstr("line 2, column 2"));
  EXPECT_THAT(failure("1,0\n\"2\"x,0\n"), Says("closing quote"));
  EXPECT_THAT(failure("1,0\n2\",0\n"), AllOf(Names("line 2, column 1"), Says("quote")));
  EXPECT_THAT(failure(std::string("1,0\n2\0,0\n", 9)), Says("NUL"));
  EXPECT_THAT(failure(std::string("1,0\n\"\0\",0\n", 10)),
              AllOf(Names("line 2, column 1"), Says("NUL")));
  EXPECT_THAT(failure("a,label\n1,caf\xE9\n"),
              AllOf(Names("\"caf?\"", "line 2, column 2"), Says("UTF-8")));
  EXPECT_THAT(failure("\xFF,label\n1,0\n"), HasSubstr("not UTF-8"));
}

TEST(CsvTable, AHugeLineIsRefusedBeforeItTakesMemory) {
  EXPECT_THAT(failure(std::string(50'000'000, ',')), AllOf(Names("line 1"), Says("16385 columns")));
  EXPECT_THAT(failure("a," + std::string(2'000, 'n') + "\n1,0\n"), Says("name", "2000 bytes"));
  EXPECT_THAT(failure("a,label\n1,0\n" + std::string(10'000'000, '1') + ",0\n"), Says("range"));
  EXPECT_LT(failure("a,label\n1,0\n" + std::string(10'000'000, 'n') + ",0\n").size(), 300U);
}

TEST(CsvTable, SeveralTablesHaveTheSameColumns) {
  const auto both = read({"a,label\n1,x\n", "a,label\n2,b\n3,x\n"});
  ASSERT_TRUE(both.is_ok()) << both.status().message();
  EXPECT_THAT(both->labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(both->lines, ElementsAre(2, 2, 3));
  for (const char* other : {"b,label\n2,b\n", "2,b\n", "label,a\nb,2\n", "a,b,label\n1,2,b\n"})
    EXPECT_THAT(read({"a,label\n1,x\n", other}).status().message(),
                HasSubstr("columns that differ"));
}

TEST(CsvTable, EvaluationHasTheColumnsAndClassesOfTraining) {
  const auto training = read({"a,label\n1,x\n2,b\n3,c\n"});
  const auto evaluation = read({"a,label\n5,x\n"}, &*training);
  ASSERT_TRUE(evaluation.is_ok()) << evaluation.status().message();
  EXPECT_THAT(evaluation->labels, ElementsAre(2));
  EXPECT_EQ(evaluation->classes, training->classes);
  EXPECT_THAT(read({"a,label\n5,new\n"}, &*training).status().message(),
              AllOf(Names("\"new\"", "line 2, column 2", "\"label\""), Says("training")));
  EXPECT_THAT(read({"b,label\n5,x\n"}, &*training).status().message(),
              HasSubstr("columns that differ"));
  EXPECT_THAT(read({"a,label\n5,1\n"}, &*training).status().message(), HasSubstr("are names"));
}

TEST(CsvTable, NumbersAreRoundedAsFloat64AndThenToFloat32) {
  float out = 0;
  for (const auto& [text, value] :
       {std::pair("0.1", 0.1F), std::pair("3.4028235e38", 3.4028235e38F),
        std::pair("-3.4028235e+38", -3.4028235E38F), std::pair("1e-300", 0.0F),
        std::pair("-0", -0.0F), std::pair("16777217", 16777216.0F), std::pair("1e-400", 0.0F),
        std::pair("-1e-400", -0.0F), std::pair("4.9e-324", 0.0F), std::pair("1e-99999", 0.0F),
        std::pair("1e-45", 1e-45F)}) {
    ASSERT_EQ(parse_csv_number(text, &out), CsvNumber::kFinite) << text;
    EXPECT_EQ(out, value) << text;
  }
}

TEST(CsvText, IsShownInOneLineAndShort) {
  EXPECT_EQ(shown("a\n\x1b\x7f\xff\xC3\xA4"), "\"a????\xC3\xA4\"");
  EXPECT_EQ(shown(std::string(99, 'a')), "\"" + std::string(40, 'a') + "...\"");
}

TEST(CsvText, Utf8HasNoOverlongFormAndNoSurrogate) {
  for (const char* good : {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xC0\x80", "\xC3", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xFF"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

Result<CsvTable> with_targets(const std::string& text, const std::vector<std::string>& targets,
                              const std::string& weight = "", const CsvTable* training = nullptr) {
  return read({text}, training, {.targets = targets, .weight = weight});
}

TEST(CsvTargets, AreNumbersUnlessAllValuesCanBeClasses) {
  const auto number = with_targets("a,b,price\n1,2,-3.5\n4,5,6\n", {"price"});
  ASSERT_TRUE(number.is_ok()) << number.status().message();
  EXPECT_THAT(number->values, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(number->targets, ElementsAre(ElementsAre(-3.5F, 6)));
  EXPECT_THAT(number->labels, ElementsAre(0, 0));
  EXPECT_EQ(number->columns.label, kNoCsvColumn);

  const auto both = with_targets("p,kind,n,a\n1,x,2,9\n2.5,y,4,8\n", {"p", "kind", "n"});
  ASSERT_TRUE(both.is_ok()) << both.status().message();
  EXPECT_EQ(both->columns.label, 1U) << "the first that can be classes";
  EXPECT_THAT(both->classes, ElementsAre("x", "y"));
  EXPECT_THAT(both->labels, ElementsAre(0, 1));
  EXPECT_THAT(both->targets, ElementsAre(ElementsAre(1, 2.5F), IsEmpty(), ElementsAre(2, 4)));
  EXPECT_THAT(both->values, ElementsAre(9, 8));
}

TEST(CsvTargets, OfEvaluationAreWhatThoseOfTrainingWere) {
  const auto numbers = with_targets("a,t\n1,0.5\n2,1\n", {"t"});
  const auto whole = with_targets("a,t\n1,0\n2,1\n", {"t"}, "", &*numbers);
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  EXPECT_THAT(whole->targets, ElementsAre(ElementsAre(0, 1)));
  const auto classes = with_targets("a,t\n1,0\n2,1\n", {"t"});
  EXPECT_EQ(classes->columns.label, 1U);
  EXPECT_THAT(with_targets("a,t\n1,0.5\n", {"t"}, "", &*classes),
              FailsWith(Code::kBadData, Names("\"0.5\"", "line 2"), Says("whole numbers")));
  const auto names = with_targets("a,t\n1,x\n2,y\n", {"t"});
  EXPECT_THAT(with_targets("a,t\n1,z\n", {"t"}, "", &*names),
              FailsWith(Code::kBadData, Names("\"z\""), Says("no row for training")));
}

TEST(CsvTargets, WeightsAreNumbersFromZeroOn) {
  const auto table = with_targets("a,t,w\n1,0,0\n2,1,2.5\n", {"t"}, "w");
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_THAT(table->weights, ElementsAre(0, 2.5F));
  EXPECT_THAT(table->values, ElementsAre(1, 2));
  const auto by_label = with_targets("a,label,w\n1,0,1\n2,1,1\n", {}, "w");
  EXPECT_THAT(by_label->values, ElementsAre(1, 2)) << "a weight is no feature";
  for (const char* weight : {"-0.5", "nan", "inf", "much", ""})
    EXPECT_THAT(with_targets("a,t,w\n1,0,1\n2,1," + std::string(weight) + "\n", {"t"}, "w"),
                FailsWith(Code::kBadData, Names("line 3", "\"w\"")));
}

TEST(CsvTargets, ThatCannotBeAreRefused) {
  EXPECT_THAT(with_targets("a,t\n1,0.5\n2,x\n", {"t"}),
              FailsWith(Code::kBadData, Names("\"x\"", "line 3"), Says("not a number")));
  EXPECT_THAT(with_targets("a,t\n1,x\n2,0.5\n", {"t"}),
              FailsWith(Code::kBadData, Names("\"0.5\"", "line 3"), Says("whole numbers")));
  EXPECT_THAT(with_targets("a,t\n1,1e39\n", {"t"}),
              FailsWith(Code::kBadData, Names("1e39"), Says("float32")));
  EXPECT_THAT(with_targets("a,s,t\n1,x,y\n", {"s", "t"}),
              FailsWith(Code::kBadData, Names("t", "s"), Advises("leave one out")));
  EXPECT_THAT(with_targets("a,t\n1,2\n", {"t", "2"}),
              FailsWith(Code::kBadData, Says("twice among the targets")));
  EXPECT_THAT(with_targets("t,u\n1,2\n", {"t", "u"}),
              FailsWith(Code::kBadData, Says("no column left")));
  EXPECT_THAT(with_targets("a,t\n1,2\n", {"t"}, "t"),
              FailsWith(Code::kBadData, Advises("data.weight")));
}

}  // namespace
}  // namespace lockstep::data
