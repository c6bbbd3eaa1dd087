// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The HTTP client against servers that are slow, huge, rude or somebody else's, and TLS with a
// private CA.
#include "exporter/loop/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "exporter/loop/http_url.h"
#include "tests/support/loopback_service.h"

namespace rankscope::exporter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using End = HttpAnswer::End;

std::string HearHead(int fd) {
  std::string head;
  for (std::string line; line != "\r" && line != "(end)"; line = LoopbackService::Hear(fd))
    head += line + "\n";
  return head;
}

HttpRequest RequestTo(const LoopbackService& service, const std::string& path = "/") {
  HttpRequest request;
  request.url = "http://127.0.0.1:" + std::to_string(service.port()) + path;
  return request;
}

// What a server that says `bytes` and ends the connection is for the client.
HttpAnswer AnswerOf(const std::string& bytes, size_t max_bytes = 1 << 20) {
  const LoopbackService service([&bytes](int fd) {
    HearHead(fd);
    LoopbackService::Say(fd, bytes);
  });
  HttpRequest request = RequestTo(service);
  request.max_bytes = max_bytes;
  return HttpGet(request);
}

// What the server hears.
std::string HeadOf(const HttpOptions& options) {
  std::string head;
  const LoopbackService service([&head](int fd) {
    head = HearHead(fd);
    LoopbackService::Say(fd, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  });
  HttpRequest request = RequestTo(service, "/a/../b?c=d");
  request.options = options;
  EXPECT_EQ(HttpGet(request).error, "");
  return head;
}

TEST(HttpClient, TakesAWholeAnswer) {
  const HttpAnswer answer =
      AnswerOf("HTTP/1.1 200 OK\r\nLINK:  </next>; rel=\"next\" \r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(answer.end, End::kAnswered);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "abc");
  EXPECT_EQ(answer.link, "</next>; rel=\"next\"");
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(AnswerOf("HTTP/1.0 200 OK\r\n\r\nuntil the end").body, "until the end");
  EXPECT_EQ(
      AnswerOf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n").body,
      "ab");
}

TEST(HttpClient, ABodyThatIsNotOfSuccessIsKept) {
  const HttpAnswer answer = AnswerOf("HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nno job");
  EXPECT_EQ(answer.end, End::kAnswered);
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "no job");
  EXPECT_EQ(answer.error, "answers with HTTP status 404");
}

TEST(HttpClient, FollowsNoRedirect) {
  const LoopbackService other([](int) {});
  const HttpAnswer answer =
      AnswerOf("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" + std::to_string(other.port()) +
               "/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer.error, "answers with HTTP status 302");
  EXPECT_EQ(other.connections(), 0);
}

TEST(HttpClient, WhatBreaksOffIsNoAnswer) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
  for (const std::string& bytes :
       {head + "abc",
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc")}) {
    const HttpAnswer answer = AnswerOf(bytes);
    EXPECT_EQ(answer.end, End::kFailed);
    EXPECT_THAT(answer.error, HasSubstr("breaks off"));
    EXPECT_EQ(answer.body, "");
  }
  const LoopbackService closes([](int) {});
  EXPECT_NE(HttpGet(RequestTo(closes)).error, "");
}

TEST(HttpClient, WhatIsNoHttpIsSaidSo) {
  for (const char* bytes : {"SSH-2.0-OpenSSH_9.2\r\n", "220 mail.example.org ESMTP\r\n", "abc"}) {
    const HttpAnswer answer = AnswerOf(bytes);
    EXPECT_EQ(answer.end, End::kFailed) << bytes;
    EXPECT_EQ(answer.error, "does not speak HTTP") << bytes;
  }
}

TEST(HttpClient, TooMuchIsAnError) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string body(5000, 'x');
  for (const std::string& bytes :
       {head + "\r\n" + body, head + "Content-Length: 5000\r\n\r\n" + body,
        head + "X-Long: " + body + "\r\nContent-Length: 0\r\n\r\n"}) {
    const HttpAnswer answer = AnswerOf(bytes, 4096);
    EXPECT_EQ(answer.end, End::kTooLong);
    EXPECT_EQ(answer.error, "answers with more than 4096 bytes");
    EXPECT_EQ(answer.body, "");
  }
}

// A head without end, and a body of which a byte comes now and then.
TEST(HttpClient, ASlowAnswerEndsAtItsDeadline) {
  for (const char* begin : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\nx"}) {
    const LoopbackService service([begin](int fd) {
      HearHead(fd);
      LoopbackService::Say(fd, begin);
      LoopbackService::Hear(fd);  // until the client goes away
    });
    HttpRequest request = RequestTo(service);
    request.timeout = Milliseconds(50);
    const HttpAnswer answer = HttpGet(request);
    EXPECT_EQ(answer.end, End::kLate) << begin;
    EXPECT_EQ(answer.error, "does not answer in time");
  }
}

TEST(HttpClient, NobodyThereIsRefused) {
  std::string url;
  {
    const LoopbackService gone([](int) {});
    url = RequestTo(gone).url;
  }
  HttpRequest request;
  request.url = url;
  const HttpAnswer answer = HttpGet(request);
  EXPECT_EQ(answer.end, End::kRefused);
  EXPECT_EQ(answer.error, "cannot be reached: Connection refused");
}

TEST(HttpClient, OtherProtocolsAreNotSpoken) {
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "", "http://"}) {
    HttpRequest request;
    request.url = url;
    const HttpAnswer answer = HttpGet(request);
    EXPECT_NE(answer.error, "") << url;
    EXPECT_EQ(answer.body, "") << url;
  }
}

TEST(HttpClient, SendsWhatItIsGivenAndNothingElse) {
  HttpOptions options;
  options.headers = {"X-SLURM-USER-TOKEN: secret"};
  const std::string head = HeadOf(options);
  EXPECT_THAT(head, HasSubstr("GET /a/../b?c=d HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\nAccept: */*\r\n"));
  EXPECT_THAT(head, HasSubstr("\nX-SLURM-USER-TOKEN: secret\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Authorization")));
}

TEST(HttpClient, ProvesWhoAsks) {
  HttpOptions basic, bearer;
  basic.user = "me:hunter2";
  bearer.bearer = "a.b.c";
  EXPECT_THAT(HeadOf(basic), HasSubstr("\nAuthorization: Basic bWU6aHVudGVyMg==\r\n"));
  EXPECT_THAT(HeadOf(bearer), HasSubstr("\nAuthorization: Bearer a.b.c\r\n"));
}

TEST(HttpClient, UsesAProxyOnlyWhereOneIsConfigured) {
  std::string heard;
  const LoopbackService proxy([&heard](int fd) {
    heard = LoopbackService::Hear(fd);
    HearHead(fd);
    LoopbackService::Say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");
  });
  const std::string place = "http://127.0.0.1:" + std::to_string(proxy.port());
  setenv("http_proxy", place.c_str(), 1);
  const LoopbackService service([](int fd) {
    HearHead(fd);
    LoopbackService::Say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserver");
  });
  HttpRequest request = RequestTo(service, "/x");
  EXPECT_EQ(HttpGet(request).body, "server");
  unsetenv("http_proxy");
  setenv("no_proxy", "127.0.0.1", 1);
  request.options.proxy = place;
  EXPECT_EQ(HttpGet(request).body, "proxy");
  unsetenv("no_proxy");
  EXPECT_THAT(heard, HasSubstr("GET " + request.url + " HTTP/1.1"));
}

TEST(HttpClient, ServesManyThreadsAtOnce) {
  const LoopbackService service([](int fd) {
    HearHead(fd);
    LoopbackService::Say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  std::vector<std::future<std::string>> bodies;
  for (int thread = 0; thread < 8; ++thread) {
    bodies.push_back(std::async(std::launch::async, [&service] {
      std::string all;
      for (int i = 0; i < 5; ++i) all += HttpGet(RequestTo(service)).body;
      return all;
    }));
  }
  for (auto& body : bodies) EXPECT_EQ(body.get(), "okokokokok");
}

// A server of Python's, with a CA of its own.
class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rankscope_tls_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    const std::string ready = folder_ + "/ready";
    ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
    const std::string command = "exec python3 " RANKSCOPE_SOURCE_DIR
                                "/tests/unit/agent/tls_server.py " +
                                folder_ + " >" + ready;
    server_ = popen(command.c_str(), "we");
    ASSERT_NE(server_, nullptr);
    FILE* const said = std::fopen(ready.c_str(), "re");
    int port = 0;
    const int read = std::fscanf(said, "%d", &port);
    std::fclose(said);
    ASSERT_EQ(read, 1) << "tls_server.py has not started";
    request_.url = "https://127.0.0.1:" + std::to_string(port) + "/";
  }
  ~TlsTest() override {
    if (server_ != nullptr) pclose(server_);  // it ends with its standard input
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
  FILE* server_ = nullptr;
  HttpRequest request_;
};

TEST_F(TlsTest, TrustsWhomItIsToldToAndShowsItsCertificate) {
  const HttpAnswer stranger = HttpGet(request_);
  EXPECT_EQ(stranger.end, End::kFailed);
  EXPECT_THAT(stranger.error, HasSubstr("certificate"));
  EXPECT_EQ(stranger.body, "");

  request_.options.ca_file = folder_ + "/ca.pem";
  EXPECT_EQ(HttpGet(request_).body, "nobody");
  HttpRequest other_name = request_;
  other_name.url.replace(8, 9, "localhost");
  EXPECT_THAT(HttpGet(other_name).error, HasSubstr("subject"));

  request_.options.certificate = folder_ + "/client.pem";
  request_.options.key = folder_ + "/client.key";
  EXPECT_EQ(HttpGet(request_).body, "client");

  request_.options.ca_file = folder_ + "/none.pem";
  EXPECT_EQ(HttpGet(request_).body, "");
  request_.options = {};
  request_.options.insecure = true;
  EXPECT_EQ(HttpGet(request_).body, "nobody");

  request_.options.unix_socket = folder_ + "/socket";
  request_.url = "http://localhost/";
  EXPECT_EQ(HttpGet(request_).body, "nobody");
  request_.options.unix_socket = folder_ + "/no_socket";
  EXPECT_THAT(HttpGet(request_).error, HasSubstr("cannot be reached"));
}

TEST(HttpOptions, AreReadAsCurlReadsThem) {
  const auto options = ReadHttpOptions(
      "# of slurmrestd\n\n"
      "header = \"X-SLURM-USER-TOKEN: a\\\"b\"\n"
      "  -H \"X-SLURM-USER-NAME: slurm\"\r\n"
      "--user me:hunter2 and more\n"
      "unix-socket: /run/slurmrestd.socket\n"
      "oauth2-bearer=t\ncacert /ca\ncapath /cas\ncert /c\nkey /k\npass = \"p q\"\n"
      "proxy = http://p:3128\nsilent\ninsecure");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->headers,
              ElementsAre("X-SLURM-USER-TOKEN: a\"b", "X-SLURM-USER-NAME: slurm"));
  EXPECT_EQ(options->user, "me:hunter2");
  EXPECT_EQ(options->unix_socket, "/run/slurmrestd.socket");
  EXPECT_EQ(options->bearer, "t");
  EXPECT_EQ(options->ca_file, "/ca");
  EXPECT_EQ(options->ca_folder, "/cas");
  EXPECT_EQ(options->certificate, "/c");
  EXPECT_EQ(options->key, "/k");
  EXPECT_EQ(options->key_password, "p q");
  EXPECT_EQ(options->proxy, "http://p:3128");
  EXPECT_TRUE(options->insecure);
  EXPECT_TRUE(ReadHttpOptions(""));
}

TEST(HttpOptions, AnErrorNamesTheLineAndNoSecret) {
  const struct {
    const char *text, *error;
  } cases[] = {
      {"silent\nlocation = s3cret", "line 2: 'location' is not an option"},
      {"header = \"s3cret\"", "line 1: 'header' has a value that is not"},
      {"header = @/etc/s3cret:x", "line 1: 'header' has a value that is not"},
      {"header = \"A: s3cret\\r\\nB: c\"", "line 1: 'header' has a value with a control"},
      {"user", "line 1: 'user' has no value"},
      {"S3cret=x", "line 1: its first word is not an option"},
      {"= s3cret", "line 1: its first word is not an option"},
  };
  for (const auto& one : cases) {
    const auto options = ReadHttpOptions(one.text);
    ASSERT_FALSE(options) << one.text;
    EXPECT_THAT(options.error(), HasSubstr(one.error));
    EXPECT_THAT(options.error(), Not(testing::ContainsRegex("[sS]3cret")));
  }
}

TEST(HttpUrl, IsAcceptedOrRefused) {
  for (const char* url : {"http://127.0.0.1:9400/metrics", "http://n1", "http://n1/",
                          "https://n1/metrics", "http://[::1]:9400/m?a=b"})
    EXPECT_TRUE(CheckHttpUrl(url).ok()) << url;
  for (const char* wrong : {"", "127.0.0.1:9400", "ftp://n1/metrics", "http://", "http://:9400/",
                            "http://n1:0/", "http://n1:65536/", "http://n1:94 00/",
                            "http://n1/\r\nX: y", "http://u@n1/", "http://n1:/", "http://n1?a=b"})
    EXPECT_FALSE(CheckHttpUrl(wrong).ok()) << wrong;
  EXPECT_FALSE(CheckHttpUrl("http://" + std::string(600, 'a')).ok());
}

}  // namespace
}  // namespace rankscope::exporter
