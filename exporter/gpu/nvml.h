// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what the node's NVIDIA GPUs do and how they are. Each GPU is looked at by a thread
// of its own, within a deadline: one that does not answer is told as such, and the others lose
// nothing by it. Where there is no driver or no GPU, the source says so and looks again now and
// then. One more thread waits for the Xids that the driver tells of. Loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/observation.h"
#include "exporter/gpu/nvml_device.h"
#include "exporter/gpu/nvml_library.h"
#include "exporter/gpu/nvml_samples.h"
#include "exporter/gpu/nvml_xids.h"
#include "exporter/gpu/xid_ledger.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

// How long the driver is waited for. Without persistence mode it wakes a GPU at the first call,
// which takes seconds; a look at one that is awake takes some ten milliseconds.
struct NvmlPatience {
  Duration open = Seconds(30);
  Duration first_look = Seconds(30);
  Duration look = Seconds(3);
  Duration retry = Seconds(5);  // of a GPU that is lost, or that may not be looked at
  Duration first_reopen =
      Seconds(5);  // of a driver that is not there; then twice as long each time
  Duration longest_reopen = Seconds(60);
  Duration recount = Seconds(60);
  // Of Xids: short, for the thread that waits has to end with the daemon.
  Duration listen = Milliseconds(150);
  // An Xid of the library is told without a line of the log that has more to say of it, its process
  // first of all: the log is given so long.
  Duration log = Milliseconds(300);
};

class Nvml final : public exporter::Source {
 public:
  explicit Nvml(Duration interval, std::string library = nvml::kLibraryName,
                NvmlPatience patience = {}, std::shared_ptr<ProcessTable> table = {},
                std::shared_ptr<XidLedger> xids = {});
  ~Nvml() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  std::shared_ptr<const std::vector<GpuStatus>> gpus() const override { return published_; }
  // Of the kernel's log as well: it has no GPUs to show them by.
  XidReport xids() const override { return xids_->Report(); }
  // Xids of more GPUs and kinds than are kept apart.
  int64_t lost() const override { return xids_->lost(); }
  std::vector<LibraryCall> library_calls() const override {
    return library_ == nullptr ? std::vector<LibraryCall>() : library_->calls();
  }

 private:
  struct Gpu;

  void Open();
  void OnOpened(nvml::Opening opening, uint32_t count);
  void OpenLater();
  void Recount();
  void SetCount(uint32_t count);
  void Beat();
  void LookAt(Gpu& gpu);
  void OnLook(Gpu& gpu, GpuStatus status);
  void OnLate(Gpu& gpu);
  void TellEvents(Gpu& gpu);
  void TellGpus();
  void Listen();
  void ListenLater(Duration after);
  void OnHeard(const nvml::Hearing& hearing);
  void OnXid(const nvml::XidHeard& xid);
  void TellXid(const nvml::XidHeard& xid);
  void NoteReset(Gpu& gpu);

  Duration interval_;
  std::string library_path_;
  NvmlPatience patience_;
  std::shared_ptr<ProcessTable> table_;
  std::unique_ptr<exporter::Worker> opener_;
  std::shared_ptr<const nvml::Library> library_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  exporter::EventLoop::TimerId beat_ = 0, reopen_ = 0, recount_ = 0;
  Duration reopen_after_;
  std::shared_ptr<XidLedger> xids_;
  std::unique_ptr<exporter::Worker> listener_worker_;
  std::shared_ptr<nvml::XidListener> listener_;
  exporter::EventLoop::TimerId listen_ = 0;
  bool listen_anew_ = false;  // a GPU has come
  std::map<std::pair<std::string, int32_t>, Timestamp> xids_told_;
  std::set<exporter::EventLoop::TimerId> xids_held_;  // for the log to come first
  std::shared_ptr<const std::vector<GpuStatus>> published_;
};

}  // namespace rankscope::collectors
