// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The real listener with a node's largest page against clients that mean harm: in each format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "exporter/http/listener.h"
#include "tests/unit/http/client.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

using test::Client;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kAccepts[] = {
    "text/plain", "application/openmetrics-text;version=1.0.0",
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"};

std::string Get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: n\r\n" + headers + "\r\n";
}

class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<JobStatus> jobs;
    for (int i = 0; i < 100; ++i) jobs.push_back(test::HangingJob(std::to_string(i)));
    auto published = std::make_shared<metrics::Published>(test::OnNode(std::move(jobs)));
    auto exposition = std::make_shared<const Exposition>(
        metrics::SnapshotBuilder({.max_series = 16000}).Build(*published));
    holder_.Publish(
        std::make_shared<const State>(std::move(published), std::move(exposition), nullptr));
    auto started = Listener::Start(
        {.addresses = {"127.0.0.1:0"}}, [this] { return holder_.Current(); },
        Router({.names = {"", {"n"}}}));
    ASSERT_TRUE(started) << started.error();
    listener_ = *std::move(started);
    port_ = listener_->ports().front();
  }

  std::string Ask(const std::string& bytes) const {
    Client client(port_);
    client.Send(bytes);
    return client.Answer();
  }

  void ExpectServing() const { EXPECT_THAT(Ask(Get("/-/healthy")), StartsWith("HTTP/1.1 200 ")); }

  StateHolder holder_;
  std::unique_ptr<Listener> listener_;
  uint16_t port_ = 0;
};

TEST_F(HostileTest, EveryFormatArrivesWhole) {
  for (const char* accept : kAccepts) {
    const std::string answer = Ask(Get("/metrics", "Accept: " + std::string(accept) + "\r\n"));
    const std::string_view body = std::string_view(answer).substr(answer.find("\r\n\r\n") + 4);
    EXPECT_GT(body.size(), 400000u) << accept;
    EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: " + std::to_string(body.size()) + "\r\n"));
  }
  const metrics::HttpStatus counts = listener_->Counts();
  for (const int64_t scrapes : counts.scrapes) EXPECT_EQ(scrapes, 1);
  EXPECT_EQ(counts.responses[0], 3);
}

TEST_F(HostileTest, WhoAsksAndDoesNotReadHoldsNobodyUp) {
  std::vector<Client> silent;
  for (int i = 0; i < 80; ++i) {
    silent.emplace_back(port_, 4096);
    // Ten pages pipelined are more than the kernel's buffers take.
    std::string requests;
    for (int j = 0; j < 10; ++j) {
      requests += Get("/metrics", "Accept: " + std::string(kAccepts[i % 3]) + "\r\n");
    }
    silent.back().Send(requests);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) ExpectServing();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(HostileTest, WhoReadsInDropsIsCutOff) {
  Client slow(port_, 4096);
  constexpr int kPages = 40;  // many more than the kernel's buffers take
  std::string requests;
  for (int i = 0; i < kPages; ++i) requests += Get("/metrics");
  ASSERT_TRUE(slow.Send(requests));
  // Some bytes every 100 ms keep each wait of the server short; only a limit for the whole answer
  // ends it, after 10 s: of the first page that does not fit into the kernel's buffers, or, where
  // little of that is left over, of the one behind it.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(22);
  while (std::chrono::steady_clock::now() < end && slow.ReadSome(2048, 100) > 0) {
  }
  size_t pages = 0;
  while (slow.Answer().find("\r\n\r\n") != std::string::npos) ++pages;
  EXPECT_LT(pages, kPages / 2);
  EXPECT_TRUE(slow.ClosedWithin(0));
}

TEST_F(HostileTest, HugeAcceptIsRefusedOrRead) {
  std::string accept = "Accept: ";
  while (accept.size() < 7000) accept += "application/x-a;q=0.1,";
  EXPECT_THAT(Ask(Get("/metrics", accept + "text/plain\r\n")), StartsWith("HTTP/1.1 200 "));
  while (accept.size() < 100000) accept += "application/x-a;q=0.1,";
  EXPECT_THAT(Ask(Get("/metrics", accept + "\r\n")), Not(HasSubstr("200 OK")));
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "Accept: text/plain\r\n";
  EXPECT_THAT(Ask(Get("/metrics", lines)), StartsWith("HTTP/1.1 "));
  ExpectServing();
}

TEST_F(HostileTest, ThousandsOfCollectAreRefused) {
  std::string target = "/metrics?collect[]=rank";
  for (int i = 0; i < 80; ++i) target += "&collect[]=rank";
  EXPECT_THAT(Ask(Get(target)), StartsWith("HTTP/1.1 400 "));
  while (target.size() < 4000) target += "&collect[]=rank";
  EXPECT_THAT(Ask(Get(target)), StartsWith("HTTP/1.1 414 "));
  while (target.size() < 100000) target += "&collect[]=rank";
  EXPECT_THAT(Ask(Get(target)), Not(HasSubstr("200 OK")));
  ExpectServing();
}

// What follows an ambiguous request is never answered: not even when it looks like one.
TEST_F(HostileTest, SmuggledRequestsAreNotAnswered) {
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: n\r\n\r\n";
  const std::string length = std::to_string(smuggled.size());
  const std::string heads[] = {
      "POST /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: " + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: " + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 0\r\nContent-Length: " + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: " + length + "\r\nContent-Length: 0\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 0, " + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: +" + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 0x2\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: -1\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 99999999999999999999999\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nContent-Length : " + length + "\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: identity\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 5\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nTransfer_Encoding: x\r\nTransfer-Encoding : chunked\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nHost: m\r\n",
      "GET /metrics HTTP/1.1\r\nX: no host\r\n",
  };
  for (const std::string& head : heads) {
    Client client(port_);
    client.Send(head + "\r\n" + smuggled);
    const std::string first = client.Answer();
    EXPECT_THAT(first, AnyOf("", StartsWith("HTTP/1.1 "))) << head;
    EXPECT_EQ(client.Answer(), "") << head;
    EXPECT_TRUE(client.ClosedWithin(5000)) << head;
  }
  ExpectServing();
}

TEST_F(HostileTest, OddLinesAreRefusedOrHarmless) {
  using namespace std::string_literals;  // a NUL inside
  const std::string cases[] = {
      "GET /metrics HTTP/1.1\r\nHost: n\r\n folded: x\r\n\r\n",
      "GET /metrics HTTP/1.1\r\n Host: n\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\nno colon\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: n\r\n: empty\r\n\r\n",
      "GET  /metrics HTTP/1.1\r\nHost: n\r\n\r\n",
      "GET /metrics HTTP/9.9\r\nHost: n\r\n\r\n",
      "GET /metrics HTTP/1.1 HTTP/1.1\r\nHost: n\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET /metrics\0 HTTP/1.1\r\nHost: n\r\n\r\n"s,
      "GET /metrics HTTP/1.1\r\nHost: n\r\nAccept: a\x01\r\n\r\n",
      "G\xC3\x84T /metrics HTTP/1.1\r\nHost: n\r\n\r\n",
      "GET /metrics HTTP/1.1\nHost: n\n\n",
      "\r\n\r\n\r\n",
  };
  for (const std::string& one : cases) {
    const std::string answer = Ask(one);
    EXPECT_THAT(answer, AnyOf("", StartsWith("HTTP/1.1 200 "), StartsWith("HTTP/1.1 4"),
                              StartsWith("HTTP/1.1 5")))
        << one;
    ExpectServing();
  }
}

TEST_F(HostileTest, HeadHasHeadersAndNoBodyOnEveryRoute) {
  for (const char* path : {"/", "/metrics", "/verdict", "/verdict?job_id=1", "/evidence?job_id=1",
                           "/events?job_id=1", "/explain?pid=1", "/-/healthy", "/-/ready",
                           "/health", "/nothing", "/%zz", "/verdict?job_id=none"}) {
    Client client(port_);
    ASSERT_TRUE(client.Send("HEAD " + std::string(path) + " HTTP/1.1\r\nHost: n\r\n\r\n" +
                            Get("/-/healthy")));
    const std::string head = client.Answer(true);
    EXPECT_THAT(head, StartsWith("HTTP/1.1 ")) << path;
    EXPECT_THAT(head, HasSubstr("\r\nContent-Length: ")) << path;
    EXPECT_THAT(head, Not(HasSubstr("Content-Length: 0\r\n"))) << path;
    EXPECT_THAT(client.Answer(), testing::EndsWith("rankscope is healthy.\n")) << path;
  }
}

}  // namespace
}  // namespace rankscope::http
