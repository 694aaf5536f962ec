#include "data/formats/arrays/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/support/idx_writer.h"
#include "tests/unit/data/samples/npy_samples.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<NpyHeader> parse_npy(const std::string& file) {
  return parse_npy_header(std::span(reinterpret_cast<const uint8_t*>(file.data()), file.size()));
}

std::string npy_error(const std::string& file) {
  const auto header = parse_npy(file);
  EXPECT_EQ(header.status().code(), Code::kBadData) << header.status().message();
  return header.status().message();
}

// A header of version 1.0 around any text.
std::string npy_with_text(const std::string& text) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size() & 255);
  file += static_cast<char>(text.size() >> 8);
  return file + text;
}

std::string npy_with_shape(const std::string& shape) {
  return npy_with_text("{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }\n");
}

TEST(NpyHeader, ReadsWhatNumPyWroteInEveryVersion) {
  for (const auto& [name, bytes, kind] :
       {std::tuple{"tokens_uint16", 2U, 'u'}, std::tuple{"tokens_uint32_version_2", 4U, 'u'},
        std::tuple{"tokens_int32_version_3", 4U, 'i'}, std::tuple{"tokens_int64", 8U, 'i'}}) {
    const std::string file = npy_sample(name);
    const auto header = parse_npy(file);
    ASSERT_TRUE(header.is_ok()) << header.status().message();
    EXPECT_EQ(header->kind, kind);
    EXPECT_EQ(header->element_bytes, bytes);
    EXPECT_THAT(header->dims, ElementsAre(11));
    EXPECT_TRUE(check_npy_size(*header, file.size()).is_ok());
    const auto* content = reinterpret_cast<const uint8_t*>(file.data()) + header->header_bytes;
    for (uint64_t i = 0; i < 11; ++i) EXPECT_EQ(npy_integer(*header, content, i), 100 + int64_t(i));
  }
  EXPECT_THAT(parse_npy(npy_sample("images_nhwc"))->dims, ElementsAre(4, 5, 6, 3));
  EXPECT_TRUE(parse_npy(npy_sample("scalar"))->dims.empty());
}

TEST(NpyHeader, NamesWhatItRefusesAndSaysHowToWriteItAgain) {
  EXPECT_THAT(npy_error(npy_sample("fortran_order")), HasSubstr("numpy.ascontiguousarray(a)"));
  EXPECT_THAT(npy_error(npy_sample("big_endian")),
              AllOf(Says("big-endian", ">u2"), Advises("numpy.save")));
  EXPECT_THAT(npy_error(npy_sample("python_objects")), Says("Python objects"));
  EXPECT_THAT(npy_error(npy_sample("structured")), Says("structured"));
  EXPECT_THAT(npy_error(npy_sample("texts")), Says("no numbers", "<U3"));
  EXPECT_THAT(npy_error(npy_sample("dates")), Says("no numbers", "<M8[D]"));
}

TEST(NpyHeader, TakesTheSpellingsOfOtherWriters) {
  // Python 2 wrote long numbers with an L, others leave out the last comma or take other quotes.
  EXPECT_THAT(parse_npy(npy_with_shape("(3L, 4L)"))->dims, ElementsAre(3, 4));
  const auto header =
      parse_npy(npy_with_text(R"({"shape":(7,),"fortran_order":True,"descr":"<i4"})"));
  ASSERT_TRUE(header.is_ok()) << header.status().message();
  EXPECT_THAT(header->dims, ElementsAre(7));
  EXPECT_EQ(header->type_text(), "int32");
}

TEST(NpyHeader, RefusesEveryTruncation) {
  const std::string file = npy_sample("tokens_uint32_version_2");
  const uint64_t header_bytes = parse_npy(file)->header_bytes;
  for (size_t bytes = 0; bytes < header_bytes; ++bytes)
    EXPECT_THAT(npy_error(file.substr(0, bytes)), HasSubstr(bytes < 6 ? "is not a" : "truncated"));
  const NpyHeader header = *parse_npy(file);
  EXPECT_THAT(check_npy_size(header, file.size() - 1).message(), Says("truncated"));
  EXPECT_THAT(check_npy_size(header, file.size() + 1).message(), Says("173 bytes"));
}

TEST(NpyHeader, RefusesAbsurdSizes) {
  EXPECT_THAT(npy_error(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              Says("header", "4294967295"));
  EXPECT_THAT(npy_error(std::string("\x93NUMPY\x04\x00\x00\x00", 10)), HasSubstr("version 4.0"));
  EXPECT_THAT(npy_error(std::string("\x93NUMPY\x01\x01\x00\x00", 10)), HasSubstr("version 1.1"));
  EXPECT_THAT(npy_error(npy_with_shape("(18446744073709551616,)")), HasSubstr("too large"));
  EXPECT_THAT(npy_error(npy_with_shape("(4294967296, 4294967296)")), Says("more than"));
  EXPECT_THAT(npy_error(npy_with_shape("(18446744073709551615,)")), Says("more than"));
  std::string many = "(";
  for (size_t i = 0; i <= limits::kNpyDims; ++i) many += "1,";
  EXPECT_THAT(npy_error(npy_with_shape(many + ")")), Says("dimensions"));
  EXPECT_EQ(parse_npy(npy_with_shape("(0, 4294967296)"))->content_bytes, 0U);
}

TEST(NpyHeader, RefusesTextThatIsNoDictionaryOfNumPys) {
  for (const char* text :
       {"", "{", "{}", "()", "{'descr': '|u1'}", "{'descr': '|u1', 'fortran_order': False}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} 1",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': '1'}",
        "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|u1' 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': ((1,),)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,",
        "{'descr': '\\x75', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|u1, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'fortran_order': False}"})
    EXPECT_THAT(npy_error(npy_with_text(text)), HasSubstr("damaged header")) << text;
}

TEST(NpyHeader, RefusesTypesThatNumPyDoesNotHave) {
  for (const char* descr : {"", "u", "<u", "<u3", "u1", "<u0", "<u16", "<u2x", "<u02", "|u2",
                            "<u99999999999999999999", "<x2"}) {
    const std::string text =
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,)}";
    EXPECT_FALSE(npy_error(npy_with_text(text)).empty()) << descr;
  }
}

}  // namespace
}  // namespace lockstep::data
