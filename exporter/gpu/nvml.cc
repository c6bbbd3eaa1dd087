// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml.h"

#include <algorithm>
#include <utility>

#include "detectors/model/pci_card.h"
#include "exporter/gpu/nvml_events.h"
#include "exporter/gpu/nvml_reset.h"

namespace rankscope::collectors {
namespace {

// No node has more; a driver that says so is not believed.
constexpr uint32_t kMaxGpus = 64;

constexpr char kNoGpu[] = "no NVIDIA GPU on this node";
constexpr char kSilent[] = "NVML: a call does not return";

struct Counted {
  nvml::Return error = nvml::kSuccess;
  uint32_t count = 0;
};

Counted CountGpus(const nvml::Library& library) {
  Counted counted;
  counted.error = library.Call(&nvml::Functions::device_count, &counted.count);
  counted.count = std::min(counted.count, kMaxGpus);
  return counted;
}

}  // namespace

struct Nvml::Gpu {
  // Outlives this where a call hangs: the worker's thread holds it.
  std::shared_ptr<nvml::DeviceReader> reader;
  std::unique_ptr<exporter::Worker> worker;
  GpuStatus status;
  nvml::Samples samples;
  nvml::Events events;
  nvml::ResetWatch resets;
  Timestamp next_try;
  bool looked = false;  // once, whatever came of it
};

Nvml::Nvml(Duration interval, std::string library, NvmlPatience patience,
           std::shared_ptr<ProcessTable> table, std::shared_ptr<XidLedger> xids)
    : interval_(interval),
      library_path_(std::move(library)),
      patience_(patience),
      table_(table ? std::move(table) : std::make_shared<ProcessTable>()),
      xids_(xids ? std::move(xids) : std::make_shared<XidLedger>()) {}

Nvml::~Nvml() {
  Stop();
}

Status Nvml::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  reopen_after_ = patience_.first_reopen;
  TellState(Availability::kNotApplicable, "NVML has not listed the GPUs yet");
  opener_ = std::make_unique<exporter::Worker>(loop);
  Open();
  return {};
}

void Nvml::Stop() {
  if (loop_ == nullptr) return;
  for (exporter::EventLoop::TimerId* timer : {&beat_, &reopen_, &recount_, &listen_}) {
    loop_->Cancel(std::exchange(*timer, 0));
  }
  for (const exporter::EventLoop::TimerId timer : std::exchange(xids_held_, {}))
    loop_->Cancel(timer);
  if (listener_worker_) listener_worker_->BeginStop();
  for (const auto& gpu : gpus_) gpu->worker->BeginStop();
  opener_.reset();
  gpus_.clear();
  listener_worker_.reset();
  listener_.reset();
  xids_->SetHeard(XidLedger::Teller::kLibrary, false);
  library_.reset();
  published_.reset();
  loop_ = nullptr;
}

void Nvml::Open() {
  const bool submitted = opener_->Submit(
      [this, path = library_path_]() -> std::function<void()> {
        nvml::Opening opening = nvml::Library::Open(path);
        Counted counted;
        if (opening.library != nullptr) counted = CountGpus(*opening.library);
        if (counted.error != nvml::kSuccess) opening = nvml::Refused(counted.error);
        return [this, opening = std::move(opening), count = counted.count] {
          OnOpened(opening, count);
        };
      },
      patience_.open,
      [this] {
        TellState(Availability::kDown,
                  "NVML: nvmlInit does not return; check the driver's messages in dmesg");
      });
  if (!submitted) OpenLater();
}

void Nvml::OpenLater() {
  reopen_ = loop_->After(reopen_after_, [this] { Open(); });
  reopen_after_ = {std::min(2 * reopen_after_.ns, patience_.longest_reopen.ns)};
}

void Nvml::OnOpened(nvml::Opening opening, uint32_t count) {
  if (opening.library == nullptr) {
    TellState(opening.state, opening.reason);
    OpenLater();
    return;
  }
  library_ = std::move(opening.library);
  listener_ = std::make_shared<nvml::XidListener>(library_);
  listener_worker_ = std::make_unique<exporter::Worker>(*loop_);
  SetCount(count);
  Listen();
  beat_ = loop_->Every(interval_, [this] { Beat(); });
  recount_ = loop_->Every(patience_.recount, [this] { Recount(); });
}

void Nvml::Recount() {
  if (opener_->pending() > 0) return;
  const bool submitted = opener_->Submit(
      [this, library = library_]() -> std::function<void()> {
        return [this, counted = CountGpus(*library)] {
          if (counted.error == nvml::kSuccess && counted.count != gpus_.size())
            SetCount(counted.count);
        };
      },
      patience_.open, {});
  if (!submitted) return;  // cannot be: nothing was pending
}

void Nvml::SetCount(uint32_t count) {
  for (const auto& gpu : gpus_) gpu->worker->BeginStop();
  gpus_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    auto gpu = std::make_unique<Gpu>();
    gpu->reader = std::make_shared<nvml::DeviceReader>(library_, static_cast<int32_t>(i));
    gpu->worker = std::make_unique<exporter::Worker>(*loop_);
    gpu->status.identity.index = static_cast<int32_t>(i);
    gpus_.push_back(std::move(gpu));
  }
  listen_anew_ = true;
  TellGpus();
  Beat();
}

void Nvml::Beat() {
  for (const auto& gpu : gpus_) {
    // A look that is still under way is waited for, and one that failed is not repeated at once.
    if (gpu->worker->pending() == 0 && loop_->Now() >= gpu->next_try) LookAt(*gpu);
  }
}

void Nvml::LookAt(Gpu& gpu) {
  const Duration deadline = gpu.looked ? patience_.look : patience_.first_look;
  const bool submitted = gpu.worker->Submit(
      [this, &gpu, reader = gpu.reader, now = loop_->Now()]() -> std::function<void()> {
        return
            [this, &gpu, status = reader->Look(now)]() mutable { OnLook(gpu, std::move(status)); };
      },
      deadline, [this, &gpu] { OnLate(gpu); });
  if (!submitted) return;  // cannot be: nothing was pending
}

void Nvml::OnLook(Gpu& gpu, GpuStatus status) {
  if (gpu.looked && gpu.status.state == GpuState::kLost && status.state == GpuState::kUp)
    listen_anew_ = true;
  gpu.looked = true;
  gpu.status = std::move(status);
  NoteReset(gpu);
  TellEvents(gpu);
  if (gpu.status.state == GpuState::kUp) {
    Tell(gpu.samples.Of(gpu.status));
  } else {
    gpu.next_try = {loop_->Now().ns + patience_.retry.ns};
  }
  TellGpus();
}

void Nvml::OnLate(Gpu& gpu) {
  gpu.status.state = GpuState::kUnresponsive;
  gpu.status.reason = kSilent;
  gpu.status.reading = {};  // of before: as good as none
  TellEvents(gpu);
  TellGpus();
}

// Before its numbers: whose they are comes first.
void Nvml::TellEvents(Gpu& gpu) {
  const XidPending pending = xids_->PendingOf(PciCard(gpu.status.identity.bus_id));
  for (Event& event : gpu.events.Of(gpu.status, pending, *table_, loop_->Now())) {
    Tell(std::move(event), loop_->Now());
  }
}

void Nvml::TellGpus() {
  auto published = std::make_shared<std::vector<GpuStatus>>();
  size_t up = 0;
  size_t unknown = 0;
  std::string trouble;
  for (const auto& gpu : gpus_) {
    const GpuStatus& status = gpu->status;
    if (status.state == GpuState::kNotLookedAt) {
      ++unknown;
      continue;
    }
    published->push_back(status);
    xids_->AddCard(PciCard(status.identity.bus_id));
    if (status.state == GpuState::kUp) {
      ++up;
      continue;
    }
    trouble += (trouble.empty() ? "gpu " : "; gpu ") + std::to_string(status.identity.index) +
               ": " + status.reason;
  }
  published_ = std::move(published);
  if (gpus_.empty()) {
    TellState(Availability::kNotApplicable, kNoGpu);
  } else if (up > 0) {
    TellState(Availability::kUp, trouble);
  } else if (unknown == 0) {
    const bool denied = std::all_of(gpus_.begin(), gpus_.end(), [](const auto& gpu) {
      return gpu->status.state == GpuState::kDenied;
    });
    TellState(denied ? Availability::kDenied : Availability::kDown, trouble);
  }
}

void Nvml::NoteReset(Gpu& gpu) {
  const std::string card = PciCard(gpu.status.identity.bus_id);
  switch (gpu.resets.Of(gpu.status)) {
    case nvml::ResetWatch::Sign::kNone:
      return;
    case nvml::ResetWatch::Sign::kReset:
      return xids_->OnReset(card, false);
    case nvml::ResetWatch::Sign::kReturned:
      return xids_->OnReset(card, true);
    case nvml::ResetWatch::Sign::kSettled:
      return xids_->OnSettled(card);
    case nvml::ResetWatch::Sign::kNothingAsked:
      return xids_->OnNothingAsked(card);
  }
}

void Nvml::Listen() {
  listen_ = 0;
  const auto count = static_cast<uint32_t>(gpus_.size());
  // The first of a set asks each GPU; a lost one may take its time.
  const Duration deadline = patience_.first_look + patience_.listen;
  const bool submitted = listener_worker_->Submit(
      [this, listener = listener_, anew = std::exchange(listen_anew_, false), count,
       wait = patience_.listen]() -> std::function<void()> {
        return [this, hearing = listener->Listen(anew, count, wait)] { OnHeard(hearing); };
      },
      deadline, [this] { xids_->SetHeard(XidLedger::Teller::kLibrary, false); });
  if (!submitted) ListenLater(patience_.retry);
}

void Nvml::ListenLater(Duration after) {
  listen_ = loop_->After(after, [this] { Listen(); });
}

void Nvml::OnHeard(const nvml::Hearing& hearing) {
  const bool listened = xids_->heard(XidLedger::Teller::kLibrary);
  xids_->SetHeard(XidLedger::Teller::kLibrary, hearing.listens);
  for (const nvml::XidHeard& xid : hearing.xids) OnXid(xid);
  if (hearing.listens || listened) {  // a GPU was lost: at once again, for the others
    Listen();
  } else {
    // Of a library or GPUs that cannot tell, nothing is expected soon.
    const bool never =
        hearing.error == nvml::kFunctionNotFound || hearing.error == nvml::kNotSupported;
    ListenLater(never ? patience_.recount : patience_.retry);
  }
}

void Nvml::OnXid(const nvml::XidHeard& xid) {
  const Timestamp now = loop_->Now();
  if (!xids_->Add(XidLedger::Teller::kLibrary, {xid.card, xid.code}, now)) return;
  constexpr Duration kAgain = Seconds(1);  // as of the log
  constexpr size_t kMaxTold = XidLedger::kMaxXids;
  const std::pair key{xid.card, xid.code};
  const auto told = xids_told_.find(key);
  if (told == xids_told_.end() ? xids_told_.size() >= kMaxTold : now - told->second < kAgain)
    return;
  xids_told_[key] = now;
  if (!xids_->heard(XidLedger::Teller::kKernelLog)) return TellXid(xid);
  const auto timer = std::make_shared<exporter::EventLoop::TimerId>();
  *timer = loop_->After(patience_.log, [this, xid, timer] {
    xids_held_.erase(*timer);
    if (xids_->OnlyLibrary(xid.card, xid.code, loop_->Now())) TellXid(xid);
  });
  xids_held_.insert(*timer);
}

void Nvml::TellXid(const nvml::XidHeard& xid) {
  KernelEvent event;
  event.type = KernelEventType::kXid;
  event.gpu_bus_id = xid.card;
  event.code = xid.code;
  Tell(std::move(event), loop_->Now());
}

}  // namespace rankscope::collectors
