// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_listener.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "exporter/run/clock.h"

namespace rankscope::run {
namespace {

constexpr int kBacklog = 64;
constexpr int kConnectionsPerTurn = 16;
// Observations of one wrapper, and bytes of text, before another user's turn: a line may have 64
// kB.
constexpr size_t kTurn = 32;
constexpr size_t kTurnBytes = 16 << 10;
// Of one user: batches of 64 kB, read and not yet passed on, with a few megabytes at worst once
// they are observations.
constexpr int kReadsPerUser = 2;
// Of one user whose thread does not come to close them.
constexpr size_t kMaxClosing = 512;
// Unread connections that are kept because nobody can close them now.
constexpr size_t kMaxHeld = 4096;
// For the closing of what users have handed over, when the daemon ends.
constexpr auto kStopPatience = std::chrono::milliseconds(200);

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{"run.socket: '" + path + "' must have 1 to 107 bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Error Failure(const std::string& path, const char* what) {
  return {"run.socket " + path + ": " + what + ": " + std::strerror(errno) +
          "; create its directory, or choose another path"};
}

// Removes the socket that a killed daemon left behind; one that answers belongs to a living daemon.
Status RemoveStale(const sockaddr_un& address, const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode))
    return Error{"run.socket " + path + ": is not a socket; remove it or name another path"};
  const OwnedFd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool answered =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (answered || errno == EAGAIN)
    return Error{"run.socket " + path + ": another daemon listens there; stop it first"};
  unlink(path.c_str());
  return {};
}

// Descriptors are given from the lowest, so the newest says how many there are. The last ones are
// not for wrappers: others need them to read /proc, to answer HTTP and to write what is known.
bool IsLast(int fd) {
  constexpr rlim_t kReserve = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return static_cast<rlim_t>(fd) >= limit.rlim_cur - std::min(kReserve, limit.rlim_cur / 4);
}

// Whether nothing waits in this socket that closing it would have to close: descriptors of a
// stranger's may take long.
bool HoldsNothing(int socket) {
  constexpr int kMostPackets = 16;
  for (int i = 0; i < kMostPackets; ++i) {
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) <= 0) return true;
    if ((message.msg_flags & MSG_CTRUNC) != 0) return false;  // it carries some
    recv(socket, &byte, 1, MSG_DONTWAIT);
  }
  return false;
}

}  // namespace

// Descriptors that a user has handed over, and what reads them. Closed on the user's thread or not
// at all: when the daemon ends, the kernel does it.
struct RunListener::Disposal {
  exporter::UserIdentity who;
  std::vector<OwnedFd> fds;
  RunFiles* files = nullptr;
  std::shared_ptr<std::atomic<int>> undone;
  bool late = false;
  size_t count = 0;

  void Close() {
    fds.clear();
    delete std::exchange(files, nullptr);
    --*undone;
  }
  ~Disposal() {
    for (OwnedFd& fd : fds) fd.Release();
  }
};

RunListener::RunListener(std::string socket_path, Hooks hooks)
    : socket_path_(std::move(socket_path)),
      hooks_(std::move(hooks)),
      claims_([this](const std::string& job_id) { return hooks_.knows && hooks_.knows(job_id); }) {}

RunListener::~RunListener() {
  Stop();
}

Status RunListener::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<sockaddr_un> address = AddressOf(socket_path_);
  if (!address) return Error{address.error()};
  const std::string folder = socket_path_.substr(0, socket_path_.rfind('/'));
  if (!folder.empty() && folder != socket_path_) mkdir(folder.c_str(), 0755);
  if (Status removed = RemoveStale(*address, socket_path_); !removed) return removed;

  OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Failure(socket_path_, "no socket");
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return Failure(socket_path_, "cannot bind");
  }
  if (chmod(socket_path_.c_str(), 0666) != 0 || listen(socket.get(), kBacklog) != 0) {
    const Error error = Failure(socket_path_, "cannot listen");
    unlink(socket_path_.c_str());
    return error;
  }
  loop_ = &loop;
  sink_ = &sink;
  socket_ = std::move(socket);
  if (Status watched = loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnConnection(); });
      !watched) {
    socket_.Reset();
    unlink(socket_path_.c_str());
    return watched;
  }
  workers_ = std::make_unique<exporter::UserWorkers>(loop);
  beat_ = loop.Every(kBeat, [this] { OnBeat(); });
  return {};
}

void RunListener::Stop() {
  if (!socket_) return;
  loop_->Cancel(beat_);
  loop_->Unwatch(socket_.get());
  socket_.Reset();
  unlink(socket_path_.c_str());
  sessions_.clear();
  const auto until = std::chrono::steady_clock::now() + kStopPatience;
  while (*undone_ > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  workers_.reset();
  held_.clear();
  closing_.clear();
  late_.clear();
  told_reason_.clear();
}

// A socket that nobody can be accepted from stays readable: without a rest the loop would turn
// without end.
void RunListener::RestIfFull(int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  ++counters_.without_descriptor;
  resting_ = loop_->Modify(socket_.get(), 0).ok();
}

void RunListener::OnConnection() {
  for (int i = 0; i < kConnectionsPerTurn; ++i) {
    OwnedFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return RestIfFull(errno);
    if (IsLast(socket.get())) {
      ++counters_.without_descriptor;
      continue;
    }
    const std::optional<Peer> peer = ReadPeer(socket.get());
    if (!peer) continue;
    if (!HasRoom(peer->uid)) {
      ++counters_.refused;
      Refuse(std::move(socket), *peer);
      continue;
    }
    ++counters_.accepted;
    sessions_.push_back(std::make_unique<RunSession>(std::move(socket), *peer, *loop_, *sink_,
                                                     CallbacksFor(*peer)));
    // A wrapper has said Hello before it was accepted, and is none of the silent ones.
    sessions_.back()->Hear();
  }
}

bool RunListener::HasRoom(uint32_t uid) const {
  size_t runs = 0;
  size_t of_user = 0;
  size_t silent_of_user = 0;
  for (const auto& session : sessions_) {
    if (session->state() == RunSession::State::kClosed) continue;
    const bool silent = session->state() == RunSession::State::kGreeting;
    if (!silent) ++runs;
    if (session->uid() != uid) continue;
    ++(silent ? silent_of_user : of_user);
  }
  const auto closing = closing_.find(uid);
  if (closing != closing_.end() && closing->second > kMaxClosing) return false;
  return silent_of_user < kMaxSilentPerUser && of_user < kMaxRunsPerUser &&
         of_user < kMaxRuns - std::min(runs, kMaxRuns);
}

RunSession::Callbacks RunListener::CallbacksFor(const Peer& peer) {
  RunSession::Callbacks callbacks;
  callbacks.admit = [this](const std::string& job_id, const Peer& who) {
    return Admit(job_id, who);
  };
  callbacks.resume_after = [this](const std::string& job_id, int slot) {
    return hooks_.resume_after ? hooks_.resume_after(job_id, slot)
                               : std::numeric_limits<int64_t>::min();
  };
  callbacks.submit = [this, who = peer.identity](RunSession::Job job,
                                                 std::function<void()> on_late) {
    return workers_->Submit(who, std::move(job), RunSession::kReadPatience, std::move(on_late));
  };
  callbacks.dispose = [this, who = peer.identity](std::vector<OwnedFd> fds, RunFiles* files) {
    Dispose(who, std::move(fds), files);
  };
  callbacks.settle_status = [this](const std::string& job_id, int32_t wait_status, bool last) {
    return SettleStatus(job_id, wait_status, last);
  };
  callbacks.on_ready = [this] { Pump(); };
  callbacks.on_end = [this](const std::string& job_id) {
    if (hooks_.on_end) hooks_.on_end(job_id);
  };
  callbacks.on_malformed = [this] { ++counters_.malformed; };
  callbacks.on_fds_lost = [this] { ++counters_.fds_lost; };
  callbacks.on_refused = [this] { ++counters_.refused; };
  callbacks.on_late = [this, uid = peer.uid](bool late) { NoteLate(uid, late); };
  callbacks.has_company = [this](const RunSession& self, bool RunSession::*told) {
    return HasCompany(self, told);
  };
  return callbacks;
}

// The lowest slot that no other wrapper of the job has; none for a job that is another user's.
int RunListener::Admit(const std::string& job_id, const Peer& peer) {
  const auto owner = hooks_.owner_of ? hooks_.owner_of(job_id) : std::nullopt;
  const Proof proof = claims_.Judge(job_id, peer, owner);
  if (proof == Proof::kRefused) {
    ++counters_.denied;
    return -1;
  }
  if (proof == Proof::kFree && claims_.IsOpen(job_id, owner) && AsksOwner(job_id, peer.uid))
    return RunSession::kLater;
  if (claims_.Take(job_id, peer.uid, proof)) Disown(job_id, peer.uid);
  std::set<int> taken;
  for (const auto& session : sessions_) {
    if (session->job_id() == job_id && session->state() != RunSession::State::kClosed)
      taken.insert(session->slot());
  }
  int slot = 0;
  while (taken.contains(slot)) ++slot;
  return slot;
}

// True while there is an answer to wait for.
bool RunListener::AsksOwner(const std::string& job_id, uint32_t uid) {
  if (!hooks_.ask_owner) return false;
  const Timestamp now = loop_->Now();
  std::erase_if(asked_, [&](const auto& entry) {
    return now - entry.second.since > kOwnerPatience + kOwnerPatience;
  });
  if (const auto found = asked_.find(job_id); found != asked_.end())
    return !found->second.told && now - found->second.since <= kOwnerPatience;
  const auto own = std::count_if(asked_.begin(), asked_.end(), [uid](const auto& entry) {
    return entry.second.uid == uid && !entry.second.told;
  });
  // His turn to ask comes when another of his has been told.
  if (static_cast<size_t>(own) >= kMaxAskedOfUser || asked_.size() >= kMaxAsked) return true;
  if (!hooks_.ask_owner(job_id)) return false;
  asked_[job_id] = {now, uid, false};
  return true;
}

void RunListener::OwnerTold(const std::string& job_id, std::optional<uint32_t> uid) {
  if (uid) NoteOwner(job_id, *uid);
  if (const auto found = asked_.find(job_id); found != asked_.end()) found->second.told = true;
}

void RunListener::Hold(const std::string& job_id, uint32_t uid) {
  static_cast<void>(claims_.Take(job_id, uid, Proof::kFree));
}

void RunListener::NoteOwner(const std::string& job_id, uint32_t uid) {
  if (claims_.Own(job_id, uid)) Disown(job_id, uid);
}

// Who has spoken for the job without being its owner goes, and with him what he has said.
void RunListener::Disown(const std::string& job_id, uint32_t owner) {
  for (const auto& session : sessions_) {
    const bool stranger = session->job_id() == job_id && session->uid() != owner &&
                          session->uid() != 0 && session->peer().cgroup_job != job_id;
    if (!stranger || !session->speaks()) continue;
    ++counters_.evicted;
    session->Evict();
  }
  failed_.erase(job_id);
  if (sink_ == nullptr) return;
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kDisowned;
  mark.uid = owner;
  Tell(std::move(mark), loop_->Now());
}

bool RunListener::HasCompany(const RunSession& self, bool RunSession::*told) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
    return other.get() != &self && other->job_id() == self.job_id() && other->speaks() &&
           !((*other).*told);
  });
}

int32_t RunListener::SettleStatus(const std::string& job_id, int32_t wait_status, bool last) {
  const auto failed = failed_.find(job_id);
  const int32_t settled = failed == failed_.end() ? wait_status : failed->second;
  if (last) {
    failed_.erase(job_id);
  } else if (wait_status != 0 && failed == failed_.end()) {
    failed_[job_id] = wait_status;
  }
  return settled;
}

void RunListener::OnBeat() {
  if (resting_) resting_ = !loop_->Modify(socket_.get(), EPOLLIN).ok();
  for (const auto& session : sessions_) session->OnBeat();
  // Only here: a session may close itself in the middle of a callback of its own.
  std::erase_if(sessions_, [this](const auto& session) {
    if (session->state() != RunSession::State::kClosed) return false;
    lost_in_closed_ += session->gaps();
    counters_.foreign += session->foreign();
    return true;
  });
  for (const auto& disposal : std::exchange(held_, {})) SubmitDisposal(disposal);
  left_of_beat_ = kShareOfBeat;
  Pump();
}

// Reads and passes on, by turns of users, until there is nothing, or this beat's share is spent.
void RunListener::Pump() {
  if (std::exchange(pumping_, true)) return;
  StartReads();
  while (left_of_beat_ > Duration{}) {
    RunSession* const next = NextToDeliver();
    if (next == nullptr) break;
    const Timestamp began = MonotonicNow();
    next->Deliver(kTurn, kTurnBytes);
    left_of_beat_.ns -= (MonotonicNow() - began).ns;
    StartReads();
  }
  pumping_ = false;
}

void RunListener::StartReads() {
  std::map<uint32_t, int> reads;
  for (const auto& session : sessions_) {
    if (session->reads()) ++reads[session->uid()];
  }
  for (const auto& session : sessions_) {
    if (!session->WantsRead() || reads[session->uid()] >= kReadsPerUser) continue;
    session->Read();
    if (session->reads()) ++reads[session->uid()];
  }
  // Next time others of the same user come first.
  if (sessions_.size() > 1) std::rotate(sessions_.begin(), sessions_.begin() + 1, sessions_.end());
}

// Of the next user who has something.
RunSession* RunListener::NextToDeliver() {
  RunSession* next = nullptr;
  RunSession* first = nullptr;
  for (const auto& session : sessions_) {
    if (!session->HasBatch()) continue;
    const uint32_t uid = session->uid();
    if (first == nullptr || uid < first->uid()) first = session.get();
    if (uid > last_uid_ && (next == nullptr || uid < next->uid())) next = session.get();
  }
  if (next == nullptr) next = first;
  if (next != nullptr) last_uid_ = next->uid();
  return next;
}

void RunListener::Dispose(const exporter::UserIdentity& who, std::vector<OwnedFd> fds,
                          RunFiles* files) {
  auto disposal = std::make_shared<Disposal>();
  disposal->who = who;
  disposal->count = fds.size() + (files == nullptr ? 0 : 1);
  disposal->fds = std::move(fds);
  disposal->files = files;
  disposal->undone = undone_;
  ++*undone_;
  closing_[who.uid] += disposal->count;
  SubmitDisposal(disposal);
}

void RunListener::SubmitDisposal(const std::shared_ptr<Disposal>& disposal) {
  auto finish = [this, disposal] {
    const auto closing = closing_.find(disposal->who.uid);
    if (closing != closing_.end() && (closing->second -= disposal->count) == 0)
      closing_.erase(closing);
    if (disposal->late) NoteLate(disposal->who.uid, false);
  };
  const bool submitted = workers_->Submit(
      disposal->who,
      [disposal, finish] {
        disposal->Close();
        return finish;
      },
      RunSession::kReadPatience,
      [this, disposal] {
        disposal->late = true;
        NoteLate(disposal->who.uid, true);
      });
  if (!submitted) held_.push_back(disposal);
}

// A connection that there is no room for. Where it carries nothing it is closed here; else its
// user's thread does it.
void RunListener::Refuse(OwnedFd socket, const Peer& peer) {
  shutdown(socket.get(), SHUT_RDWR);
  if (HoldsNothing(socket.get()) || held_.size() >= kMaxHeld) return;
  std::vector<OwnedFd> fds;
  fds.push_back(std::move(socket));
  Dispose(peer.identity, std::move(fds), nullptr);
}

void RunListener::NoteLate(uint32_t uid, bool late) {
  int& count = late_[uid];
  count += late ? 1 : -1;
  if (count <= 0) late_.erase(uid);
  std::string reason;
  if (!late_.empty()) {
    reason = "files of user " + std::to_string(late_.begin()->first) + " do not answer";
    if (late_.size() > 1) reason += ", nor of " + std::to_string(late_.size() - 1) + " more";
    reason += "; their runs are not followed meanwhile";
  }
  if (reason == told_reason_) return;
  told_reason_ = reason;
  TellState(Availability::kUp, std::move(reason));
}

void RunListener::Answer(std::string_view job_id, std::string_view json, std::string_view text,
                         bool notifies) {
  for (const auto& session : sessions_) {
    if (session->job_id() == job_id) session->Answer(json, text, notifies);
  }
}

int64_t RunListener::lost() const {
  int64_t lost = lost_in_closed_ + counters_.without_descriptor + counters_.fds_lost;
  for (const auto& session : sessions_) lost += session->gaps();
  return lost;
}

RunListener::Counters RunListener::counters() const {
  Counters counters = counters_;
  for (const auto& session : sessions_) {
    if (session->state() == RunSession::State::kOrphaned) ++counters.orphaned;
    if (late_.contains(session->uid())) ++counters.stalled;
    counters.foreign += session->foreign();
  }
  return counters;
}

std::vector<exporter::Source::Count> RunListener::counts() const {
  const Counters counters = this->counters();
  return {{"refused", counters.refused},
          {"denied", counters.denied},
          {"evicted", counters.evicted},
          {"malformed", counters.malformed},
          {"foreign", counters.foreign},
          {"packets_without_descriptor", counters.fds_lost},
          {"connections_without_descriptor", counters.without_descriptor}};
}

}  // namespace rankscope::run
