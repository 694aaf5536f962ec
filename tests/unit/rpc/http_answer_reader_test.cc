#include "comm/http/http_answer_reader.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

TEST(HttpAnswerReader, IsTheSameHoweverItIsCut) {
  const std::string text = "HTTP/1.1 404 Not Found\r\nContent-LENGTH:  5 \r\nX: y\r\n\r\nhello";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    HttpAnswerReader answer(100);
    ASSERT_TRUE(answer.take(text.substr(0, cut)).is_ok());
    if (!answer.is_done()) {
      ASSERT_TRUE(answer.take(text.substr(cut)).is_ok());
    }
    ASSERT_TRUE(answer.is_done());
    const GetResult result = std::move(answer).result();
    EXPECT_EQ(result.status, 404);
    EXPECT_EQ(result.body, "hello");
  }
}

TEST(HttpAnswerReader, WithoutALengthEndsWithTheStream) {
  HttpAnswerReader answer(100);
  ASSERT_TRUE(answer.take("HTTP/1.0 200 OK\r\n\r\nabc").is_ok());
  EXPECT_FALSE(answer.is_done());
  ASSERT_TRUE(answer.end().is_ok());
  EXPECT_EQ(std::move(answer).result().body, "abc");
}

TEST(HttpAnswerReader, CutShortIsAnError) {
  HttpAnswerReader answer(100);
  ASSERT_TRUE(answer.take("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nabc").is_ok());
  EXPECT_EQ(answer.end().code(), Code::kUnavailable);
}

TEST(HttpAnswerReader, WhatIsNoHttpOrTooLargeIsRefused) {
  EXPECT_EQ(HttpAnswerReader(100).take("SSH-2.0-OpenSSH\r\n\r\n").code(), Code::kRefused);
  EXPECT_EQ(HttpAnswerReader(100).take("HTTP/1.1 abc x\r\n\r\n").code(), Code::kRefused);
  EXPECT_EQ(HttpAnswerReader(100).take(std::string(10'000, 'x')).code(), Code::kRefused);
  EXPECT_EQ(HttpAnswerReader(2).take("HTTP/1.0 200 OK\r\n\r\nabc").code(), Code::kRefused);
  EXPECT_EQ(HttpAnswerReader(2).take("HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n").code(),
            Code::kRefused);
}

}  // namespace
}  // namespace lockstep::http
