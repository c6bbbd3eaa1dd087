// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The real listener on a free port against clients that behave and clients that do not.
#include "exporter/http/listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/http/client.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

using test::Client;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    metrics::SnapshotBuilder builder;
    metrics::Published published = test::OnNode({test::HealthyJob()});
    auto exposition = std::make_shared<const Exposition>(builder.Build(published));
    holder_.Publish(std::make_shared<const State>(
        std::make_shared<const metrics::Published>(std::move(published)), std::move(exposition),
        nullptr));
  }

  void Start(ListenerOptions options = {}, RouterOptions router_options = {}) {
    router_options.names.hosts = {"n", "node7.example"};
    Router router(std::move(router_options));
    options.addresses = {"127.0.0.1:0"};
    auto started = Listener::Start(
        options, [this] { return holder_.Current(); }, std::move(router));
    ASSERT_TRUE(started) << started.error();
    listener_ = *std::move(started);
    port_ = listener_->ports().at(0);
    ASSERT_NE(port_, 0);
  }

  std::string Ask(const std::string& bytes, bool head_only = false) const {
    Client client(port_);
    client.Send(bytes);
    return client.Answer(head_only);
  }

  StateHolder holder_;
  std::unique_ptr<Listener> listener_;
  uint16_t port_ = 0;
};

const std::string kScrape = "GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n";

TEST_F(ListenerTest, AnswersGetAndHead) {
  Start();
  const std::string get = Ask(kScrape);
  EXPECT_THAT(get, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(get, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(get, HasSubstr("rankscope_verdict{job_id=\"8841\",family=\"healthy\"} 1\n"));
  EXPECT_THAT(get, HasSubstr("Vary: Accept, Accept-Encoding\r\n"));
  EXPECT_THAT(get, Not(HasSubstr("Access-Control")));
  Client client(port_);
  ASSERT_TRUE(client.Send("HEAD /metrics HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n"));
  const std::string head = client.Answer(true);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: "));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  EXPECT_EQ(client.Answer(), "");  // no body follows
}

TEST_F(ListenerTest, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
  Start();
  Client client(port_);
  ASSERT_TRUE(client.Send(
      "GET /-/healthy HTTP/1.1\r\nHost: n\r\n\r\nGET /nothing HTTP/1.1\r\nHost: n\r\n\r\n"
      "HEAD /-/ready HTTP/1.1\r\nHost: n\r\n\r\nGET /verdict HTTP/1.1\r\nHost: n\r\n\r\n"));
  EXPECT_THAT(client.Answer(), HasSubstr("rankscope is healthy."));
  EXPECT_THAT(client.Answer(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(client.Answer(true), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(client.Answer(), HasSubstr("\"verdicts\":["));
}

TEST_F(ListenerTest, SaysCloseAndCloses) {
  Start();
  for (const char* request : {"GET /-/healthy HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n",
                              "GET /-/healthy HTTP/1.0\r\n\r\n",
                              "POST /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\n"}) {
    Client client(port_);
    ASSERT_TRUE(client.Send(request));
    EXPECT_THAT(client.Answer(), HasSubstr("Connection: close\r\n")) << request;
    EXPECT_TRUE(client.ClosedWithin(5000)) << request;
  }
}

TEST_F(ListenerTest, BodiesAreNeverTakenForRequests) {
  Start();
  Client client(port_);
  ASSERT_TRUE(
      client.Send("POST /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 47\r\n\r\n"
                  "GET /-/healthy HTTP/1.1\r\nHost: smuggled\r\n\r\n"));
  EXPECT_THAT(client.Answer(), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(client.Answer(), "");
}

TEST_F(ListenerTest, MalformedRequestsAreRefused) {
  Start();
  const struct {
    std::string bytes;
    const char* status;
  } kCases[] = {
      {"GET /%zz HTTP/1.1\r\nHost: n\r\n\r\n", "400"},
      {"GET /verdict?job_id=% HTTP/1.1\r\nHost: n\r\n\r\n", "400"},
      {"GET /%00 HTTP/1.1\r\nHost: n\r\n\r\n", "400"},
      {"GET /../../etc/passwd HTTP/1.1\r\nHost: n\r\n\r\n", "404"},
      {"GET /" + std::string(4000, 'a') + " HTTP/1.1\r\nHost: n\r\n\r\n", "414"},
      {"DELETE /metrics HTTP/1.1\r\nHost: n\r\n\r\n", "405"},
      {"OPTIONS /metrics HTTP/1.1\r\nHost: n\r\nOrigin: http://x\r\n\r\n", "405"},
      {"PUT /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 0\r\n\r\n", "405"},
      {"GET /metrics\r\n\r\n", "400"},
      {"\x16\x03\x01\x02\r\n\r\n", "400"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(Ask(one.bytes), StartsWith("HTTP/1.1 " + std::string(one.status))) << one.bytes;
  }
  EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
}

TEST_F(ListenerTest, AbsoluteFormIsServed) {
  Start();
  for (const std::string host : {"127.0.0.1:", "node7.example:"}) {
    const std::string authority = host + std::to_string(port_);
    EXPECT_THAT(
        Ask("GET http://" + authority + "/-/healthy HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"),
        StartsWith("HTTP/1.1 200"));
  }
  // Another port: we are no proxy.
  EXPECT_THAT(Ask("GET http://other.example/-/healthy HTTP/1.1\r\nHost: other.example\r\n\r\n"),
              Not(HasSubstr("200")));
}

TEST_F(ListenerTest, UpgradesAreNotOffered) {
  Start();
  EXPECT_THAT(
      Ask("GET /metrics HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
      StartsWith("HTTP/1.1 200"));
}

TEST_F(ListenerTest, MegabyteOfHeaderIsRefused) {
  Start();
  Client client(port_);
  client.Send("GET /metrics HTTP/1.1\r\nHost: n\r\nX: ");
  client.Send(std::string(1 << 20, 'x'));
  EXPECT_TRUE(client.ClosedWithin(10000));
  EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
}

TEST_F(ListenerTest, ScrapeIsAnsweredWhileSlowClientsStall) {
  Start();
  std::vector<Client> slow;
  for (int i = 0; i < 64; ++i) {
    slow.emplace_back(port_);
    ASSERT_TRUE(slow.back().Send("GET /metrics HTTP/1.1\r\nHost: n\r\nX-Slow: "));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // Without room beside the slow, the first would wait for their 5 s timeout.
  EXPECT_LT(took.count(), 3.0);
}

// As many as there is room for, and more: each that comes is answered, and the longest waiting
// goes.
TEST_F(ListenerTest, WhoComesIsAnsweredHoweverManyStall) {
  Start();
  std::vector<Client> stalled;
  for (size_t i = 0; i < kMaxConnections + 100; ++i) {
    stalled.emplace_back(port_);
    if (i % 2 == 0) {
      ASSERT_TRUE(stalled.back().Send("GET /metrics HTTP/1.1\r\nHost: n\r\n"));
    }
  }
  EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(stalled.front().ClosedWithin(2000));
  EXPECT_GE(listener_->Counts().evicted, 100);
}

TEST_F(ListenerTest, OverlongLinesAndHeadersAreToldApart) {
  Start();
  EXPECT_THAT(Ask("GET /" + std::string(20000, 'a') + " HTTP/1.1\r\nHost: n\r\n\r\n"),
              StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: n\r\nX: " + std::string(20000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(ListenerTest, ItsThreadsOpenNothing) {
  std::optional<int> error;
  Start({}, {.explain = [&](int32_t, Duration) -> std::optional<std::string> {
          const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
          error = fd < 0 ? errno : 0;
          if (fd >= 0) close(fd);
          return "x";
        }});
  ASSERT_EQ(listener_->trouble(), "");
  EXPECT_THAT(Ask("GET /explain?pid=1 HTTP/1.1\r\nHost: n\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(error, EPERM);
  // Others do.
  const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  close(fd);
}

TEST_F(ListenerTest, SlowlorisIsCutOffThoughItDrips) {
  Start();
  Client client(port_);
  ASSERT_TRUE(client.Send("GET /metrics HTTP/1.1\r\nHost: n\r\n"));
  const auto begin = std::chrono::steady_clock::now();
  // A byte each 200 ms keeps an idle timer alive for ever; only a deadline for the whole head ends
  // it.
  while (client.Send("X: y\r\n") && !client.ClosedWithin(200)) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
}

// Holds requests inside the handler until told.
class Gate {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void AwaitWaiting(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST_F(ListenerTest, RequestsBeyondTheLimitAre503) {
  Gate gate;
  Start({.max_requests = 2}, {.explain = [&](int32_t, Duration) -> std::optional<std::string> {
          gate.Wait();
          return "done\n";
        }});
  std::vector<Client> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back(port_);
    ASSERT_TRUE(busy.back().Send("GET /explain?pid=1 HTTP/1.1\r\nHost: n\r\n\r\n"));
  }
  gate.AwaitWaiting(2);
  const std::string refused = Ask("GET /verdict HTTP/1.1\r\nHost: n\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  // What watches the daemon is answered all the same.
  EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask("GET /-/healthy HTTP/1.1\r\nHost: n\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  gate.Open();
  for (Client& client : busy) EXPECT_THAT(client.Answer(), HasSubstr("done\n"));
  EXPECT_THAT(Ask(kScrape), StartsWith("HTTP/1.1 200"));
}

TEST_F(ListenerTest, DeadlineFollowsTheScraper) {
  std::mutex mutex;
  std::vector<double> deadlines;
  Start({}, {.explain = [&](int32_t, Duration deadline) -> std::optional<std::string> {
          const std::lock_guard lock(mutex);
          deadlines.push_back(deadline.seconds());
          return "x";
        }});
  for (const char* timeout : {"1.5", "100", "0.2", "-3", "nan", "x"}) {
    Ask("GET /explain?pid=1 HTTP/1.1\r\nHost: n\r\nX-Prometheus-Scrape-Timeout-Seconds: " +
        std::string(timeout) + "\r\n\r\n");
  }
  EXPECT_EQ(deadlines, (std::vector<double>{1.0, 5.0, 0.1, 5.0, 5.0, 5.0}));
}

TEST_F(ListenerTest, ListensOnSeveralAddresses) {
  auto started = Listener::Start(
      {.addresses = {"127.0.0.1:0", "127.0.0.1:0"}}, [this] { return holder_.Current(); },
      Router({.names = {"", {"n"}}}));
  ASSERT_TRUE(started) << started.error();
  const std::vector<uint16_t> ports = (*started)->ports();
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_NE(ports[0], ports[1]);
  for (const uint16_t port : ports) {
    Client client(port);
    client.Send(kScrape);
    EXPECT_THAT(client.Answer(), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(ListenerTest, ListensOnIpv6AndIpv4Alike) {
  auto started = Listener::Start(
      {.addresses = {"[::1]:0", "[::]:0"}}, [this] { return holder_.Current(); },
      Router({.names = {"", {"n"}}}));
  ASSERT_TRUE(started) << started.error();
  Client client((*started)->ports().at(1));  // by IPv4
  client.Send(kScrape);
  EXPECT_THAT(client.Answer(), StartsWith("HTTP/1.1 200"));
  // Both families on one port are two sockets.
  const std::string port = std::to_string(port_ = (*started)->ports().at(1));
  started->reset();
  auto both = Listener::Start(
      {.addresses = {"0.0.0.0:" + port, "[::]:" + port}}, [this] { return holder_.Current(); },
      Router());
  EXPECT_TRUE(both) << both.error();
}

TEST_F(ListenerTest, BindErrorsNameTheAddressAndTheRemedy) {
  Start();
  const auto error = [this](const std::string& address) {
    auto started = Listener::Start(
        {.addresses = {address}}, [this] { return holder_.Current(); }, Router());
    return started ? std::string() : started.error();
  };
  const std::string taken = "127.0.0.1:" + std::to_string(port_);
  EXPECT_THAT(error(taken), StartsWith("cannot listen on " + taken + ": port in use; "));
  EXPECT_THAT(error("203.0.113.7:10177"), HasSubstr("no interface of this host has this address"));
  for (const char* bad : {"", "10177", ":10177", "localhost:10177", "127.0.0.1:", "127.0.0.1:99999",
                          "127.0.0.1:1x", "::1:10177", "127.0.0.1:80s,1"}) {
    EXPECT_THAT(error(bad), HasSubstr("write it like 127.0.0.1:10177")) << bad;
  }
}

TEST_F(ListenerTest, StopsWithConnectionsOpenAndFreesThePort) {
  Start();
  Client idle(port_);
  idle.Send(kScrape);
  EXPECT_THAT(idle.Answer(), StartsWith("HTTP/1.1 200"));
  const std::string address = "127.0.0.1:" + std::to_string(port_);
  listener_.reset();
  auto again = Listener::Start(
      {.addresses = {address}}, [this] { return holder_.Current(); }, Router());
  EXPECT_TRUE(again) << again.error();
}

}  // namespace
}  // namespace rankscope::http
