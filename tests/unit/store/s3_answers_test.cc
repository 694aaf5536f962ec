#include "comm/store/s3_answers.h"

#include <gtest/gtest.h>

namespace lockstep::store {
namespace {

std::string page(const std::string& inside) {
  return "<?xml version=\"1.0\"?><ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inside + "</ListBucketResult>";
}

TEST(S3Answers, KeysWithOddCharactersComeOutAsTheyAre) {
  const auto parsed = parse_blobs(
      page("<Contents><Key>a b+c%20&amp;&#xe9;&lt;.jpg</Key><ETag>&quot;abc&quot;</ETag>"
           "<Size>12</Size></Contents><IsTruncated>false</IsTruncated>"));
  ASSERT_TRUE(parsed.is_ok());
  ASSERT_EQ(parsed->items.size(), 1U);
  EXPECT_EQ(parsed->items[0].key, "a b+c%20&\xc3\xa9<.jpg");
  EXPECT_EQ(parsed->items[0].version, "\"abc\"");
  EXPECT_EQ(parsed->items[0].bytes, 12U);
  EXPECT_TRUE(parsed->next.empty());
}

TEST(S3Answers, APageThatIsNotTheLastNamesTheNext) {
  const auto parsed = parse_blobs(
      page("<IsTruncated>true</IsTruncated><NextContinuationToken>t/+=</NextContinuationToken>"));
  ASSERT_TRUE(parsed.is_ok());
  EXPECT_EQ(parsed->next, (Query{{"continuation-token", "t/+="}}));
}

TEST(S3Answers, WhatIsNoPageIsNotTakenForAnEmptyOne) {
  for (const std::string& text :
       {std::string("<html>busy</html>"), page("<Contents><Key>a</Key></Contents>"),
        page("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        page("<Contents><Key>a&bad;</Key><Size>1</Size></Contents>"),
        page("<Contents><Key>a&#0;</Key><Size>1</Size></Contents>"),
        page("<IsTruncated>true</IsTruncated>")})
    EXPECT_EQ(parse_blobs(text).status().code(), Code::kUnavailable) << text;
}

TEST(S3Answers, PartsAndUploadsComeInPages) {
  const auto parts = parse_parts(
      "<ListPartsResult><Part><PartNumber>2</PartNumber><ETag>&quot;e&quot;</ETag><Size>7</Size>"
      "<ChecksumCRC32C>4waSgw==</ChecksumCRC32C></Part><IsTruncated>true</"
      "IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>"
      "</ListPartsResult>");
  ASSERT_TRUE(parts.is_ok());
  EXPECT_EQ(parts->items, (std::vector<Part>{{2, "\"e\"", 7, 0xe3069283}}));
  EXPECT_EQ(parts->next, (Query{{"part-number-marker", "2"}}));
  const auto uploads = parse_uploads(
      "<ListMultipartUploadsResult><KeyMarker/><NextKeyMarker>a&amp;b</NextKeyMarker>"
      "<NextUploadIdMarker>u1</NextUploadIdMarker><IsTruncated>true</IsTruncated>"
      "<Upload><Key>a&amp;b</Key><UploadId>u1</UploadId></Upload></ListMultipartUploadsResult>");
  ASSERT_TRUE(uploads.is_ok());
  EXPECT_EQ(uploads->items, (std::vector<Upload>{{"a&b", "u1"}}));
  EXPECT_EQ(uploads->next, (Query{{"key-marker", "a&b"}, {"upload-id-marker", "u1"}}));
}

TEST(S3Answers, AChecksumThatIsNoneIsLeftOut) {
  for (const char* text : {"4waSgw=", "4waSgx==", "4waS!w==", "", "4waSgw==4waSgw=="}) {
    const auto parts = parse_parts(
        std::string("<ListPartsResult><Part><PartNumber>1</PartNumber><ETag>e</ETag><Size>1</Size>"
                    "<ChecksumCRC32C>") +
        text + "</ChecksumCRC32C></Part></ListPartsResult>");
    ASSERT_TRUE(parts.is_ok());
    EXPECT_EQ(parts->items[0].crc32c, std::nullopt) << text;
  }
}

TEST(S3Answers, PartsThatCannotBeAreNoPage) {
  for (const char* inside :
       {"<Part><PartNumber>0</PartNumber><ETag>e</ETag><Size>1</Size></Part>",
        "<Part><PartNumber>10001</PartNumber><ETag>e</ETag><Size>1</Size>"
        "</Part>",
        "<Part><PartNumber>1</PartNumber><Size>1</Size></Part>", "<IsTruncated>true</IsTruncated>"})
    EXPECT_EQ(parse_parts(std::string("<ListPartsResult>") + inside + "</ListPartsResult>")
                  .status()
                  .code(),
              Code::kUnavailable)
        << inside;
}

TEST(S3Answers, ACompletionNamesItsPartsAndAnErrorInAGoodAnswerIsAnError) {
  EXPECT_EQ(completion_of({{1, "\"a\"", 5, 0xe3069283}}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag>"
            "<ChecksumCRC32C>4waSgw==</ChecksumCRC32C></Part></CompleteMultipartUpload>");
  EXPECT_EQ(completion_of({{1, "a", 5, {}}}).find("Checksum"), std::string::npos);
  EXPECT_TRUE(check_completion("<CompleteMultipartUploadResult><ETag>x</ETag>"
                               "</CompleteMultipartUploadResult>")
                  .is_ok());
  EXPECT_EQ(check_completion("\n\n<Error><Code>InternalError</Code></Error>").code(),
            Code::kUnavailable);
  EXPECT_EQ(check_completion("<Error><Code>NoSuchUpload</Code></Error>").code(), Code::kNoInput);
}

TEST(S3Answers, ErrorsAreToldByTheirCodeAndNothingElseOfThem) {
  EXPECT_EQ(s3_error_code("<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA"
                          "</AWSAccessKeyId></Error>"),
            "SignatureDoesNotMatch");
  EXPECT_EQ(s3_error_code("<Error><Code>no word\n</Code></Error>"), "");
  EXPECT_EQ(s3_error_code("<html>"), "");
}

}  // namespace
}  // namespace lockstep::store
