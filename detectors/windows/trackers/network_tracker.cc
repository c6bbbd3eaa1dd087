// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/network_tracker.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "detectors/model/event_types.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

struct KindRow {
  EventType type;
  Contact::Kind kind;
  std::string_view subject;  // the key of the peer, address or name
};
constexpr KindRow kKinds[] = {
    {EventType::kConnect, Contact::Kind::kConnect, "peer"},
    {EventType::kListen, Contact::Kind::kListen, "address"},
    {EventType::kResolve, Contact::Kind::kResolve, "name"},
    {EventType::kConnectionReset, Contact::Kind::kReset, "peer"},
};

int64_t PortOf(std::string_view text) {
  int64_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && port > 0 && port < 65536 ? port : 0;
}

// "node1:29500", "[fd00::1]:29500", "tcp://node1:29500"; the port is 0 where there is none.
std::pair<std::string_view, int64_t> SplitEndpoint(std::string_view text) {
  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos)
    text.remove_prefix(scheme + 3);
  text = text.substr(0, text.find_first_of("/?"));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, 0};
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, PortOf(text.substr(colon + 1))};
}

// The value of an option in a command line, whether it is written with dashes or underscores.
std::optional<std::string_view> OptionValue(std::string_view command, std::string_view name) {
  size_t at = 0;
  while ((at = command.find("--", at)) != std::string_view::npos) {
    at += 2;
    const std::string_view rest = command.substr(at);
    const size_t end = std::min(rest.find_first_of(" ="), rest.size());
    std::string option(rest.substr(0, end));
    std::replace(option.begin(), option.end(), '-', '_');
    if (option != name || end == rest.size()) continue;
    const std::string_view value = rest.substr(end + 1);
    return value.substr(0, value.find(' '));
  }
  return std::nullopt;
}

}  // namespace

void NetworkTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  for (const KindRow& row : kKinds) {
    if (event.type != WireType(row.type)) continue;
    Contact contact;
    contact.kind = row.kind;
    contact.rank = speaker.rank;
    contact.process = speaker.process;
    contact.peer = TextOf(event, row.subject).substr(0, kTextCap);
    contact.host = TextOf(event, "host").substr(0, kTextCap);
    contact.outcome = TextOf(event, "outcome").substr(0, kTextCap);
    contact.port = NumberOf(event, "port");
    contact.error = NumberOf(event, row.kind == Contact::Kind::kResolve ? "code" : "errno");
    contact.attempts = NumberOf(event, "attempts");
    contact.seconds = static_cast<double>(NumberOf(event, "milliseconds")) / 1000;
    contact.waiting = NumberOf(event, "waiting") != 0;
    contact.first = event.begin.ns > 0 && event.begin < t ? event.begin : t;
    contact.last = t;
    Add(std::move(contact));
  }
}

void NetworkTracker::Add(Contact contact) {
  for (Contact& known : contacts_) {
    if (known.kind != contact.kind || known.process != contact.process ||
        known.peer != contact.peer || known.outcome != contact.outcome)
      continue;
    known.attempts = std::max(known.attempts, contact.attempts);
    known.seconds = std::max(known.seconds, contact.seconds);
    known.first = std::min(known.first, contact.first);
    known.last = contact.last;
    known.waiting = contact.waiting;
    known.error = contact.error;
    return;
  }
  if (contacts_.size() >= kMost) {
    ++dropped_;
    const auto fine = std::find_if(contacts_.begin(), contacts_.end(), [](const Contact& known) {
      return known.outcome == "connected" || known.outcome == "abandoned";
    });
    if (fine == contacts_.end()) return;
    contacts_.erase(fine);
  }
  contacts_.push_back(std::move(contact));
}

void NetworkTracker::OnEnvironment(const std::vector<KeyValue>& environment) {
  std::string_view address;
  int64_t port = 0;
  for (const KeyValue& variable : environment) {
    if (variable.key == "MASTER_ADDR") address = variable.value;
    if (variable.key == "MASTER_PORT") port = PortOf(variable.value);
    if (variable.key == "PET_RDZV_ENDPOINT") {
      const auto [host, number] = SplitEndpoint(variable.value);
      AddCoordinator(host, number, variable.key);
    }
  }
  AddCoordinator(address, port, "MASTER_ADDR, MASTER_PORT");
}

void NetworkTracker::OnCommand(std::string_view command) {
  if (const auto endpoint = OptionValue(command, "rdzv_endpoint")) {
    const auto [host, port] = SplitEndpoint(*endpoint);
    AddCoordinator(host, port, "--rdzv_endpoint");
  }
  if (const auto port = OptionValue(command, "master_port")) {
    AddCoordinator(OptionValue(command, "master_addr").value_or(""), PortOf(*port),
                   "--master_port");
  }
  for (const std::string_view name : {"init_method", "dist_url"}) {
    const auto url = OptionValue(command, name);
    if (!url || !url->starts_with("tcp://")) continue;
    const auto [host, port] = SplitEndpoint(*url);
    AddCoordinator(host, port, name);
  }
}

void NetworkTracker::AddCoordinator(std::string_view host, int64_t port, std::string_view said_by) {
  if (port == 0 && host.empty()) return;
  host = host.substr(0, kTextCap);
  for (Coordinator& known : coordinators_) {
    if (known.host == host && known.port == port) return;
  }
  if (coordinators_.size() >= kMostCoordinators) return;
  coordinators_.push_back({std::string(host), port, std::string(said_by)});
}

}  // namespace rankscope::windows
