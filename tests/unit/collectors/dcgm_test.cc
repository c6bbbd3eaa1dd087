// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source over dcgm-exporter's page, against a server of the test's own: what it says when that
// is away, slow, another's or stands still, and that none of it becomes a number.
#include "exporter/gpu/dcgm.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "exporter/loop/owned_fd.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

// Answers each connection with the same bytes; with none: not at all.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
    listener_ = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_.get(), 16) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Server() { Close(); }

  void Say(std::string answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void Close() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    listener_.Reset();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/metrics"; }

 private:
  void Serve() {
    std::vector<OwnedFd> silent;
    while (!ends_) {
      pollfd entry{listener_.get(), POLLIN, 0};
      if (poll(&entry, 1, 20) <= 0) continue;
      OwnedFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char request[4096];
      if (recv(client.get(), request, sizeof request, 0) <= 0) continue;
      const std::lock_guard lock(mutex_);
      if (answer_.empty()) {
        silent.push_back(std::move(client));
      } else if (send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) {
        continue;
      }
    }
  }

  std::mutex mutex_;
  std::string answer_;
  OwnedFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

std::string Page(const std::string& body) {
  return "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string CardPage(const std::string& sm, const std::string& power) {
  const auto sample = [](const std::string& name, const std::string& value) {
    return name + "{gpu=\"0\",UUID=\"GPU-1\",Hostname=\"n1\"} " + value + "\n";
  };
  return Page(sample("DCGM_FI_DEV_POWER_USAGE", power) + sample("DCGM_FI_PROF_SM_ACTIVE", sm) +
              sample("DCGM_FI_PROF_PCIE_RX_BYTES", "1e9"));
}

class DcgmTest : public testing::Test {
 protected:
  void Start(const std::string& url, DcgmPatience patience = {}) {
    source_ = std::make_unique<Dcgm>(url, Milliseconds(10), patience);
    ASSERT_TRUE(source_->Start(loop_, sink_).ok());
  }
  ~DcgmTest() override {
    if (source_) source_->Stop();
  }
  bool Until(const std::function<bool()>& condition) {
    bool met = false;
    const auto look = loop_.Every(Milliseconds(5), [&] {
      met = condition();
      if (met) loop_.Stop();
    });
    const auto end = loop_.After(Seconds(10), [&] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(look);
    loop_.Cancel(end);
    return met;
  }
  bool Tells(Availability state, const std::string& reason) const {
    const std::vector<SourceState> states = sink_.Of<SourceState>();
    return !states.empty() && states.back().state == state &&
           states.back().reason.find(reason) != std::string::npos;
  }
  size_t Shown() const {
    return source_->gpu_profiles() == nullptr ? 0 : source_->gpu_profiles()->size();
  }

  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::unique_ptr<Dcgm> source_;
};

TEST_F(DcgmTest, ShowsTheCardAndSumsItsRates) {
  const Server server(CardPage("0.82", "300.5"));
  Start(server.url());
  ASSERT_TRUE(Until([&] { return Shown() == 1; }));
  EXPECT_TRUE(Tells(Availability::kUp, ""));
  const GpuProfile card = source_->gpu_profiles()->front();
  EXPECT_EQ(card.uuid, "GPU-1");
  EXPECT_EQ(card.sm_active, 0.82);
  EXPECT_EQ(card.dram_active, std::nullopt);
  EXPECT_EQ(card.pcie_sent_bytes, std::nullopt);
  const double first = card.pcie_received_bytes.value_or(-1);
  EXPECT_GE(first, 0);
  ASSERT_TRUE(Until([&] {
    return source_->gpu_profiles()->front().pcie_received_bytes.value_or(0) >= first + 50e6;
  }));
  EXPECT_TRUE(sink_.Of<SampleBatch>().empty());  // nothing for the detectors
}

TEST_F(DcgmTest, APageThatStandsStillIsNotBelieved) {
  Server server(CardPage("0.82", "300.5"));
  Start(server.url(), {.stale = Milliseconds(200)});
  ASSERT_TRUE(Until([&] { return Shown() == 1; }));
  ASSERT_TRUE(Until([&] { return Tells(Availability::kStale, "have not changed"); }));
  EXPECT_EQ(Shown(), 0u);
  server.Say(CardPage("0.82", "300.6"));  // the same activity, of a card that lives
  ASSERT_TRUE(Until([&] { return Shown() == 1; }));
  EXPECT_TRUE(Tells(Availability::kUp, ""));
}

TEST_F(DcgmTest, NobodyListensIsNoFault) {
  Server server(CardPage("0.82", "300.5"));
  const std::string url = server.url();
  server.Close();
  Start(url);
  ASSERT_TRUE(
      Until([&] { return Tells(Availability::kNotApplicable, "no dcgm-exporter at " + url); }));
  EXPECT_EQ(Shown(), 0u);
}

TEST_F(DcgmTest, WhoeverWasThereAndIsGoneIsDown) {
  Server server(CardPage("0.82", "300.5"));
  Start(server.url());
  ASSERT_TRUE(Until([&] { return Shown() == 1; }));
  server.Close();
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDown, "cannot be reached"); }));
  EXPECT_EQ(Shown(), 0u);
}

TEST_F(DcgmTest, ASlowOneIsDownAndTheOthersWaitForNothing) {
  const Server server("");
  Start(server.url(), {.answer = Milliseconds(100)});
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDown, "does not answer in time"); }));
  EXPECT_EQ(Shown(), 0u);
}

TEST_F(DcgmTest, ANumberOfOthersIsNotTaken) {
  struct Case {
    const char* what;
    std::string answer;
    Availability state;
    const char* reason;
  };
  const Case cases[] = {
      {"another exporter", Page("node_load1 0.2\n"), Availability::kDown, "not dcgm-exporter"},
      {"a page for people", Page("<html><body>It works</body></html>"), Availability::kDown,
       "serves no metrics"},
      {"an error", "HTTP/1.0 503 Service Unavailable\r\n\r\n", Availability::kDown, "status 503"},
      {"no HTTP", "220 mail.example.org ESMTP\r\n", Availability::kDown, "does not speak HTTP"},
      {"half of it", "HTTP/1.0 200 OK\r\nContent-Length: 999\r\n\r\nDCGM_FI_PROF_SM_A",
       Availability::kDown, "breaks off"},
      {"no counters", Page("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-1\"} 40\n"), Availability::kUnsupported,
       "DCGM_FI_PROF_"},
      {"parts only", Page("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\",GPU_I_ID=\"1\"} 0.4\n"),
       Availability::kUnsupported, "MIG instances"},
      {"too much", Page(std::string(9 << 20, '#')), Availability::kDown, "more than 8388608 bytes"},
  };
  Server server(CardPage("0.82", "300.5"));
  Start(server.url());
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    server.Say(CardPage("0.82", "300.5"));
    ASSERT_TRUE(Until([&] { return Shown() == 1; }));
    server.Say(one.answer);
    ASSERT_TRUE(Until([&] { return Tells(one.state, one.reason); }));
    EXPECT_EQ(Shown(), 0u);
  }
}

TEST_F(DcgmTest, SwitchedOffAsksNobody) {
  Start("");
  EXPECT_TRUE(Tells(Availability::kNotApplicable, "gpu.dcgm_url is empty"));
}

TEST(FillFrom, TheCardsOwnValuesStay) {
  GpuReading reading;
  reading.sm_active = 0.25;
  reading.engine_active = 0.5;
  GpuProfile profile;
  profile.sm_active = 0.75;
  profile.tensor_active = 0.125;
  profile.pcie_sent_bytes = 7;
  FillFrom(profile, false, reading);
  EXPECT_EQ(reading.sm_active, 0.25);
  EXPECT_EQ(reading.pipe_active[0], 0.125);
  EXPECT_EQ(reading.pcie_sent_bytes, std::nullopt);
  EXPECT_TRUE(reading.dcgm);
  FillFrom(profile, true, reading);
  EXPECT_EQ(reading.pcie_sent_bytes, 7);
}

TEST(FillFrom, UnitsThatDoNothingOnACardAtWorkAreNotBelieved) {
  GpuProfile nothing;
  nothing.sm_active = nothing.engine_active = nothing.tensor_active = 0;
  GpuReading works;
  works.engine_active = 0.98;
  FillFrom(nothing, true, works);
  EXPECT_EQ(works.sm_active, std::nullopt);
  EXPECT_FALSE(works.dcgm);
  GpuReading rests;
  rests.engine_active = 0;
  FillFrom(nothing, true, rests);
  EXPECT_EQ(rests.sm_active, 0);
}

}  // namespace
}  // namespace rankscope::collectors
