// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a node asks of Slurm: nothing of its own accord. Where `slurm.controller_url` names the
// instance beside the controller, its /events is read for the jobs that the engine asks about, as
// often as it takes within a deadline. Else Slurm is asked itself, once when a job has begun and
// once when one has ended abnormally: four thousand nodes that poll would be a fault of their own.
// Of a job that was put back it is asked twice more: why it waits, and what has become of it.
// Where no controller is there to be asked, it is tried again for a while.
// What is left of a job that another goes on from is asked of the instance beside the controller,
// then of accounting, which is no controller, a few times while its comment may be on its way.
// Loop thread only; calls run on a worker.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/http_client.h"
#include "exporter/loop/worker.h"
#include "exporter/slurm/commands.h"
#include "exporter/slurm/questions.h"
#include "exporter/slurm/records.h"
#include "exporter/source.h"

namespace rankscope::exporter::slurm {

class NodeAgent final : public Source {
 public:
  struct Patience {
    Duration call = Seconds(10);
    Duration settle = Seconds(3);  // after an end: the controller hears of it from the nodes
    Duration retry = Seconds(10);  // of /events, and of accounting, which is no controller
    Duration give_up = Seconds(90);
  };

  // Hears the answer to Question::owner; nothing: Slurm does not know the job, or does not answer.
  using OnOwner = std::function<void(const std::string& job_id, std::optional<uint32_t> uid)>;

  // Hears whom the comment of a job wants to be told (WishInComment).
  using OnWish = std::function<void(const std::string& job_id, std::string wish)>;

  // `controller_url`: empty = none.
  NodeAgent(Commands commands, std::string controller_url, std::shared_ptr<Questions> questions,
            Patience patience, OnOwner on_owner = {}, OnWish on_wish = {});
  ~NodeAgent() override;

  Status Start(EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return lost_; }
  std::vector<LibraryCall> library_calls() const override { return book_.calls(); }

 private:
  struct Pending {
    Question question;
    Timestamp due, deadline;
    int tries = 0;
    int later = 0;  // times that it was asked again since the job had been put back
  };

  void Beat();
  void Next();
  HttpRequest PageRequest(std::string_view path, const std::string& job_id) const;
  void AskPage(const Pending& pending);
  void AskSlurm(const Pending& pending);
  void AskParent(const Pending& pending);
  void AskOwner(const std::string& job_id);
  void OnParent(Pending pending, const std::string& line, std::string_view origin);
  void OnPage(Pending pending, const HttpAnswer& page);
  void OnAnswer(Pending pending, Call call, const CommandOutcome& outcome,
                const std::vector<SlurmJob>& jobs);
  void Again(Pending pending);
  void AskLater(Pending pending);
  void TellWish(const std::string& job_id, std::string wish) const;
  void TellNode(const std::string& job_id, const SlurmEvent& event);
  void TellStep(const std::string& job_id, const std::vector<KeyValue>& facts,
                const std::string& state, int64_t end, std::string_view origin);
  void TellRecord(SchedulerRecord record);
  void TellFact(const std::string& job_id, std::string field, std::string value,
                std::string_view origin, int64_t wall_ns, const std::string& node);

  Commands commands_;
  const std::string url_text_;
  const std::shared_ptr<Questions> questions_;
  const Patience patience_;
  const OnOwner on_owner_;
  const OnWish on_wish_;
  bool has_commands_ = false;
  std::unique_ptr<Worker> worker_;
  EventLoop::TimerId timer_ = 0;
  CallBook book_;
  std::deque<Pending> pending_;
  std::map<std::string, int64_t> told_;  // by job, the newest event of /events
  int64_t lost_ = 0;                     // questions that nobody answered
  Timestamp owners_away_until_{};        // nobody answers who could tell whose a job is
  Timestamp away_until_{};  // accounting's answers say nothing of a controller that is asked again
};

}  // namespace rankscope::exporter::slurm
