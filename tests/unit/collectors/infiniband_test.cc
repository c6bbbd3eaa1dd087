// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ports of RDMA devices from trees of files, as mlx5 and EFA lay them out.
#include "exporter/infiniband/infiniband.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "detectors/model/event_types.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;

TEST(PortTexts, Numbers) {
  EXPECT_EQ(ParsePortCounter("0"), 0);
  EXPECT_EQ(ParsePortCounter("18446744073"), 18446744073);
  for (const std::string_view text :
       {"N/A (no PMA)", "", "-1", "1 2", "0x10", "99999999999999999999"})
    EXPECT_FALSE(ParsePortCounter(text)) << text;
  EXPECT_EQ(ParsePortRate("200 Gb/sec (4X HDR)"), 200'000'000'000);
  EXPECT_EQ(ParsePortRate("2.5 Gb/sec (1X SDR)"), 2'500'000'000);
  for (const std::string_view text : {"", "fast", "-1 Gb/sec", "1e99 Gb/sec"})
    EXPECT_FALSE(ParsePortRate(text)) << text;
}

class InfinibandTest : public ::testing::Test {
 protected:
  InfinibandTest() {
    std::string name = (fs::temp_directory_path() / "rankscope_ib_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~InfinibandTest() override { fs::remove_all(root_); }

  void Put(const std::string& device, int port, const std::string& file, const std::string& text) {
    const fs::path path =
        root_ / "class/infiniband" / device / "ports" / std::to_string(port) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void PutMlx5(const std::string& device, int64_t words, const std::string& state = "4: ACTIVE") {
    Put(device, 1, "state", state);
    Put(device, 1, "phys_state", "5: LinkUp");
    Put(device, 1, "link_layer", "InfiniBand");
    Put(device, 1, "rate", "400 Gb/sec (4X NDR)");
    Put(device, 1, "counters/port_rcv_data", std::to_string(words));
    Put(device, 1, "counters/port_xmit_data", std::to_string(2 * words));
    Put(device, 1, "counters/link_downed", "3");
    Put(device, 1, "counters/symbol_error", "N/A (no PMA)");
    Put(device, 1, "hw_counters/np_cnp_sent", "10");
    Put(device, 1, "hw_counters/rp_cnp_handled", "5");
  }
  void PutEfa() {
    Put("rdmap16s27", 1, "state", "4: ACTIVE");
    Put("rdmap16s27", 1, "link_layer", "Unspecified");
    Put("rdmap16s27", 1, "rate", "100 Gb/sec (4X EDR)");
    Put("rdmap16s27", 1, "hw_counters/rx_bytes", "5000");
    Put("rdmap16s27", 1, "hw_counters/tx_bytes", "7000");
    Put("rdmap16s27", 1, "hw_counters/rdma_read_wr_err", "1");
    Put("rdmap16s27", 1, "hw_counters/rdma_write_wr_err", "2");
  }
  static size_t Kind(std::string_view name) {
    return static_cast<size_t>(FindPortCounterKind(name) - kPortCounterKinds.data());
  }
  static Duration Milliseconds(int64_t ms) { return {ms * 1'000'000}; }
  // Looks every 10 ms; `then` runs after some looks.
  void Run(const std::function<void()>& then = {}) {
    Infiniband source(table_, Milliseconds(10), root_.string());
    ASSERT_TRUE(source.Start(loop_, sink_).ok());
    if (then) loop_.After(Milliseconds(150), then);
    loop_.After(Milliseconds(500), [&] { loop_.Stop(); });
    loop_.Run();
    source.Stop();
  }
  void PutJob() {
    TrackedProcess process;
    process.key = {41, 100};
    process.job_id = "8841";
    table_->Add(process);
    process.key = {42, 101};
    process.parent = {41, 100};
    table_->Add(process);
  }
  std::vector<double> Samples(SignalId signal) const {
    std::vector<double> values;
    for (const SampleBatch& batch : sink_.Of<SampleBatch>()) {
      for (const Sample& sample : batch.samples) {
        if (sample.signal == signal) values.push_back(sample.value);
      }
    }
    return values;
  }

  fs::path root_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
  exporter::EventLoop loop_;
  RecordingSink sink_;
};

TEST_F(InfinibandTest, ReadsWhatAPortCounts) {
  PutMlx5("mlx5_0", 1000);
  PutMlx5("mlx5_1", 0, "1: DOWN");
  PutEfa();
  const std::vector<PortReading> ports = ReadPorts(root_);
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_EQ(ports[0].device, "mlx5_0");
  EXPECT_EQ(ports[0].link, "infiniband");
  EXPECT_TRUE(ports[0].up);
  EXPECT_EQ(ports[0].received_bytes, 4000) << "words of four bytes";
  EXPECT_EQ(ports[0].sent_bytes, 8000);
  EXPECT_EQ(ports[0].bits_per_second, 400'000'000'000);
  EXPECT_EQ(ports[0].counts[Kind("link_downs")], 3);
  EXPECT_EQ(ports[0].counts[Kind("congestion_notifications")], 15) << "of both ends";
  EXPECT_EQ(ports[0].counts[Kind("symbol_errors")], kNotCounted) << "not 0";
  EXPECT_EQ(ports[0].counts[Kind("timeouts")], kNotCounted);
  EXPECT_FALSE(ports[1].up);
  EXPECT_EQ(ports[2].link, "efa");
  EXPECT_EQ(ports[2].received_bytes, 5000) << "bytes here";
  EXPECT_EQ(ports[2].counts[Kind("rdma_request_errors")], 3);
}

TEST_F(InfinibandTest, NoDeviceIsNotApplicable) {
  PutJob();
  Run();
  const std::vector<SourceState> states = sink_.Of<SourceState>();
  ASSERT_FALSE(states.empty());
  for (const SourceState& state : states) EXPECT_EQ(state.state, Availability::kNotApplicable);
  EXPECT_TRUE(sink_.Of<SampleBatch>().empty());
}

TEST_F(InfinibandTest, CountsSinceItLooked) {
  PutMlx5("mlx5_0", 1'000'000'000'000);
  PutMlx5("mlx5_1", 0, "1: DOWN");
  PutJob();
  Run([&] { PutMlx5("mlx5_0", 1'000'000'000'500); });
  EXPECT_EQ(sink_.Of<SourceState>().back().state, Availability::kUp);
  const std::vector<double> received = Samples(SignalId::kRdmaReceivedBytes);
  ASSERT_FALSE(received.empty());
  EXPECT_EQ(received.front(), 0);
  EXPECT_EQ(received.back(), 2000) << "to the byte, whatever it had counted before";
  EXPECT_EQ(Samples(SignalId::kRdmaPortsDown).back(), 1);
}

TEST_F(InfinibandTest, ACounterThatBeginsAgainDoesNotRunBackwards) {
  PutMlx5("mlx5_0", 1000);
  PutJob();
  Run([&] { PutMlx5("mlx5_0", 10); });
  const std::vector<double> received = Samples(SignalId::kRdmaReceivedBytes);
  EXPECT_TRUE(std::is_sorted(received.begin(), received.end()));
  EXPECT_EQ(received.back(), 40);
}

TEST_F(InfinibandTest, TellsAJobItsPortsAndWhatChanges) {
  PutMlx5("mlx5_0", 1000);
  PutJob();
  Run([&] {
    Put("mlx5_0", 1, "counters/link_downed", "5");
    Put("mlx5_0", 1, "state", "1: DOWN");
  });
  const std::vector<Event> events = sink_.Of<Event>();
  ASSERT_GE(events.size(), 2u);
  EXPECT_LE(events.size(), 3u) << "what changes, and nothing else";
  EXPECT_EQ(events[0].type, WireType(EventType::kPortCounters));
  EXPECT_EQ(events[0].process, (ProcessKey{41, 100})) << "the topmost process of the job";
  EXPECT_EQ(events[0].num[0].value, 1);
  EXPECT_EQ(events.back().num[0].value, 0);
  for (const IntKeyValue& pair : events.back().num) {
    if (pair.key == "link_downs") {
      EXPECT_EQ(pair.value, 2);
    }
  }
}

TEST_F(InfinibandTest, DailyLifeIsNoNews) {
  PutMlx5("mlx5_0", 1000);
  PutJob();
  int64_t sent = 10;
  loop_.Every(Milliseconds(10),
              [&] { Put("mlx5_0", 1, "hw_counters/np_cnp_sent", std::to_string(++sent)); });
  Run();
  EXPECT_LE(sink_.Of<Event>().size(), 2u);
}

}  // namespace
}  // namespace rankscope::collectors
