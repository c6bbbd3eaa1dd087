// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Steps, saves and evaluations.

#include <algorithm>
#include <cmath>

#include "tests/generator/dialects.h"
#include "tests/generator/text.h"
#include "tests/generator/world.h"

namespace rankscope::generator {

// When each rank that is simulated enters the step's last collective; returns when all are through.
double World::DrawStep(std::map<int, double>& finish) {
  const double base = plan.step_seconds * (1 - plan.comm_share - plan.data_share);
  const bool warm = step_ - plan.first_step > plan.warmup_steps;
  const bool hiccup = steps_.Chance(plan.hiccup_share);
  double common = warm ? 1 : plan.warmup_factor;
  if (hiccup) common *= steps_.Between(plan.hiccup.low, plan.hiccup.high);
  common *= std::max(0.5, 1 + 0.7 * plan.noise * steps_.Normal());
  double latest = t_;
  for (const auto& [rank, index] : life_of_) {
    RankStep step{rank, step_, t_, 0, 0, 0, 0};
    step.data = plan.data_share * plan.step_seconds * steps_.Between(0.3, 1.7);
    step.compute = base * common * stage_share_[static_cast<size_t>(plan.StageOf(rank))] *
                   std::max(0.5, 1 + 0.5 * plan.noise * steps_.Normal());
    for (const auto& hook : on_step) hook(step);
    double at = t_;
    Life& life = lives_[index];
    life.Do(Doing::kData, at, at + step.data);
    at += step.data;
    life.Do(Doing::kHost, at, at + step.host);
    at += step.host;
    life.Do(Doing::kCompute, at, at + step.compute);
    computing_[rank] = at;
    finish[rank] = at + step.compute;
    latest = std::max(latest, finish[rank]);
  }
  // The slowest of those that are not simulated.
  if (plan.nodes > 1)
    latest = std::max(latest, t_ + plan.step_seconds * plan.data_share +
                                  base * common * (1 + plan.noise * steps_.Between(0.8, 1.8)));
  double comm =
      plan.step_seconds * plan.comm_share * std::max(0.3, 1 + plan.comm_noise * steps_.Normal());
  const double usual = comm;
  for (const auto& hook : on_comm) hook(step_, t_, comm);
  if (plan.inspector && usual > 0)
    comm_factors_.emplace_back(latest + comm, comm / (plan.step_seconds * plan.comm_share));
  return latest + comm;
}

// What the main thread does while its GPU computes from `begin` to `entered` and waits for its
// peers until `end`: it launches all of it, and then waits on a CPU (cudaDeviceScheduleAuto spins).
void World::Pace(Life& life, double begin, double entered, double end) const {
  const double alone = plan.step_seconds * (1 - plan.comm_share - plan.data_share);
  const bool blocking = seconds_per_launch > 5e-5;  // each launch waits for its kernel
  const double ahead = std::min(entered, begin + plan.host_share * alone);
  const bool room = plan.paced_by_launches || blocking;
  const double launched = room ? std::max(begin + 1e-3, entered) : std::max(begin + 1e-3, ahead);
  life.LaunchAll(plan.launches_per_step, begin, launched);
  if (plan.paced_by_launches && !blocking) life.Add(&Second::blocked, ahead, entered);
  const double waits = room ? entered : ahead;
  life.Add(&Second::sync, waits, end);
  for (double at = std::floor(waits) + 1; at < end; at += 1)
    life.At(at - 0.5).sync_age = static_cast<float>(at - waits);
  if (end - ahead >= 0.5 && !blocking) life.Add(&Second::silent, ahead, end);
}

void World::Record(const std::map<int, double>& finish, double end) {
  for (const auto& [rank, index] : life_of_) {
    Life& life = lives_[index];
    const double entered = finish.at(rank);
    life.Do(plan.ranks > 1 ? Doing::kSpin : Doing::kCompute, entered, end);
    for (double at = t_; at < entered; at = std::floor(at) + 1)
      life.At(at).data_read +=
          static_cast<float>(2e7 * (std::min(std::floor(at) + 1, entered) - at));
    Pace(life, computing_[rank], entered, end);
    const auto of = static_cast<uint32_t>(plan.collectives_per_step);
    life.At(entered).enqueued += of;
    life.At(end).completed += of;
    // Open at the end of each second that ends between the two.
    for (double at = std::floor(entered) + 1; of > 0 && at < end; at += 1) {
      Second& second = life.At(at - 0.5);
      second.collective_open = true;
      second.collective_age = static_cast<float>(at - entered);
    }
  }
  collectives_ += plan.collectives_per_step;
}

Numbers World::NumbersOf(int step, double t, double seconds) {
  Numbers numbers;
  numbers.step = step;
  numbers.t = t;
  numbers.seconds = seconds;
  const double decay = std::exp(-static_cast<double>(step) / std::max(plan.loss_tau, 1.0));
  numbers.loss = plan.loss_floor + (plan.loss_first - plan.loss_floor) * decay;
  if (plan.work == Work::kAdversarial)
    numbers.loss = 0.9 + 0.35 * std::sin(step * 0.05) + 0.2 * steps_.Normal();
  if (plan.work == Work::kReinforcement) {
    numbers.loss = 0.004 * steps_.Normal();
    numbers.reward = 0.2 + 1.1 * (1 - decay) + 0.08 * steps_.Normal();
    numbers.reward_std = std::max(0.05, 0.35 + 0.06 * steps_.Normal());
    numbers.kl = 0.0005 + 0.02 * (1 - decay) + 0.001 * steps_.Unit();
  } else {
    numbers.loss *= std::max(0.2, 1 + plan.loss_noise * steps_.Normal());
  }
  numbers.grad_norm = (0.4 + 1.6 * decay) * std::exp(0.2 * steps_.Normal());
  const double warm = std::max(20.0, plan.loss_tau * 0.1);
  numbers.learning_rate = plan.learning_rate * std::min(1.0, step / warm) *
                          (0.1 + 0.9 * std::max(0.0, 1 - step / (plan.loss_tau * 10)));
  if (plan.fp16 && step - plan.first_step < 8) numbers.overflow = true;
  numbers.loss_scale = plan.fp16 ? std::max(16384.0, 2097152.0 / (1 << std::min(step, 7))) : 1;
  for (const auto& hook : on_numbers) hook(numbers);
  return numbers;
}

bool World::Train() {
  const DialectRow& dialect = DialectOf(plan.dialect);
  double logged = t_;
  training_since_ = t_;
  while (true) {
    if (step_ >= plan.max_steps) return true;
    ++step_;
    std::map<int, double> finish;
    const double begin = t_;
    const Interruption* hit = Next(Phase::kTrain, begin, kForever);
    const double since = hit != nullptr && hit->of_attempt ? training_since_ : 0;
    const double at = hit != nullptr ? std::max(since + hit->at, begin) : kForever;
    const double limit = std::max(begin, std::min({stop_at, horizon(), at}));
    const double guess = begin + 1.02 * plan.step_seconds;
    if (limit <= guess) {
      // The step in which it ends: everybody computes until then.
      All(Doing::kCompute, begin, limit);
      if (hit != nullptr && limit == at) {
        for (const auto& [rank, index] : life_of_) finish[rank] = limit;
        Interrupt(*hit, limit, finish);
      } else {
        t_ = limit;
        if (stop_at <= horizon()) Stop(stop_at, stop_how);
      }
      return false;
    }
    const double end = DrawStep(finish);
    Record(finish, end);
    t_ = end;
    const Numbers numbers = NumbersOf(step_, t_, end - begin);
    if (step_ % plan.log_every == 0 || step_ == 1) {
      MarkAs(Mark::kRecord);
      dialect.step(*this, numbers, (t_ - logged) / (step_ == 1 ? 1 : plan.log_every));
      MarkAs(Mark::kNone);
      logged = t_;
    }
    if (plan.save_every > 0 && step_ % plan.save_every == 0) {
      if (!Save()) return false;
      logged = t_;
    }
    if (plan.eval_every > 0 && step_ % plan.eval_every == 0) {
      if (!Evaluate()) return false;
      logged = t_;
    }
    if (t_ >= std::min(stop_at, horizon())) {
      if (stop_at <= horizon()) Stop(t_, stop_how);
      return false;
    }
  }
}

bool World::Save() {
  for (const auto& hook : on_save) hook(*this, step_, t_);
  const DialectRow& dialect = DialectOf(plan.dialect);
  MarkAs(Mark::kSave);
  if (!plan.quiet_save) dialect.save(*this, t_, step_, false);
  const double begin = t_;
  const double end = t_ + plan.save_seconds * random.Between(0.8, 1.3);
  const double bytes = plan.checkpoint_bytes / (plan.sharded ? plan.ranks : 1);
  const Interruption* const hit = Next(Phase::kSave, t_, end);
  const double until =
      std::min({hit != nullptr ? begin + (end - begin) * hit->at : end, stop_at, horizon()});
  for (const auto& [rank, index] : life_of_) {
    const bool writes = plan.sharded || rank == 0;
    Life& life = lives_[index];
    life.Do(writes ? Doing::kWrite : Doing::kSpin, begin, until);
    for (double at = begin; writes && at < until; at = std::floor(at) + 1)
      life.At(at).written +=
          static_cast<float>(bytes / (end - begin) * (std::min(std::floor(at) + 1, until) - at));
    if (writes && until == end)
      Happen(end, Source::kIo, EventType::kCheckpointWritten, rank,
             {{"name", Text("model_%d_rank_%d.pt", step_, rank)}, {"directory", "checkpoints"}},
             {{"bytes", static_cast<int64_t>(bytes)},
              {"seconds", static_cast<int64_t>(end - begin)},
              {"milliseconds", static_cast<int64_t>((end - begin) * 1e3)},
              {"microseconds", static_cast<int64_t>((end - begin) * 1e6)},
              {"complete", 1},
              {"main_thread", 1}},
             end - begin);
  }
  MarkAs(Mark::kNone);
  t_ = until;
  if (hit != nullptr && until < end && until < std::min(stop_at, horizon())) {
    Interrupt(*hit, until, {});
    return false;
  }
  if (until < end) {
    if (stop_at <= horizon()) Stop(stop_at, stop_how);
    return false;
  }
  if (!plan.quiet_save) dialect.save(*this, t_, step_, true);
  saved_step_ = step_;
  return true;
}

bool World::Evaluate() {
  if (!Spend(Phase::kEval, Doing::kCompute, plan.eval_seconds * random.Between(0.85, 1.2)))
    return false;
  DialectOf(plan.dialect).evaluated(*this, NumbersOf(step_, t_, 0), t_);
  return true;
}

}  // namespace rankscope::generator
