// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_listener.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace rankscope::run {
namespace {

constexpr int kBacklog = 64;
constexpr int kConnectionsPerTurn = 16;

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
          "; make its folder or name another path"};
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

}  // namespace

RunListener::RunListener(std::string socket_path, Hooks hooks)
    : socket_path_(std::move(socket_path)), hooks_(std::move(hooks)) {}

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
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) continue;
    const auto of_user =
        std::count_if(sessions_.begin(), sessions_.end(),
                      [&](const auto& session) { return session->uid() == peer.uid; });
    if (sessions_.size() >= kMaxRuns || static_cast<size_t>(of_user) >= kMaxRunsPerUser) {
      ++counters_.refused;
      continue;
    }
    ++counters_.accepted;
    RunSession::Callbacks callbacks;
    callbacks.admit = [this](const std::string& job_id, uint32_t uid) {
      return Admit(job_id, uid);
    };
    callbacks.resume_after = [this](const std::string& job_id, int slot) {
      return hooks_.resume_after ? hooks_.resume_after(job_id, slot)
                                 : std::numeric_limits<int64_t>::min();
    };
    callbacks.on_end = [this](const std::string& job_id) {
      if (hooks_.on_end) hooks_.on_end(job_id);
    };
    callbacks.on_malformed = [this] { ++counters_.malformed; };
    sessions_.push_back(std::make_unique<RunSession>(std::move(socket), peer.uid, *loop_, *sink_,
                                                     std::move(callbacks)));
  }
}

// The lowest slot that no other wrapper of the job has; none for a job that another user's wrapper
// speaks for.
int RunListener::Admit(const std::string& job_id, uint32_t uid) const {
  std::set<int> taken;
  for (const auto& session : sessions_) {
    if (session->job_id() != job_id) continue;
    if (session->uid() != uid) return -1;
    taken.insert(session->slot());
  }
  int slot = 0;
  while (taken.contains(slot)) ++slot;
  return slot;
}

void RunListener::OnBeat() {
  if (resting_) resting_ = !loop_->Modify(socket_.get(), EPOLLIN).ok();
  for (const auto& session : sessions_) session->OnBeat();
  // Only here: a session may close itself in the middle of a callback of its own.
  std::erase_if(sessions_, [this](const auto& session) {
    if (session->state() != RunSession::State::kClosed) return false;
    lost_in_closed_ += session->lost();
    return true;
  });
}

void RunListener::Answer(std::string_view job_id, std::string_view json, std::string_view text) {
  for (const auto& session : sessions_) {
    if (session->job_id() == job_id) session->Answer(json, text);
  }
}

int64_t RunListener::lost() const {
  int64_t lost = lost_in_closed_ + counters_.without_descriptor;
  for (const auto& session : sessions_) lost += session->lost();
  return lost;
}

RunListener::Counters RunListener::counters() const {
  Counters counters = counters_;
  for (const auto& session : sessions_) {
    if (session->state() == RunSession::State::kOrphaned) ++counters.orphaned;
  }
  return counters;
}

}  // namespace rankscope::run
