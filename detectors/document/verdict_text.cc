// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The verdict for a terminal. Whatever a job printed may be quoted here, so nothing reaches the
// terminal that could steer it.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"

namespace rankscope {

namespace {

// "node a", or "nodes a,b,c and 5 more".
template <typename Repeated>
std::string Listed(std::string_view what, const Repeated& values, int limit) {
  const std::vector<typename Repeated::value_type> first(
      values.begin(), values.begin() + std::min(values.size(), limit));
  std::string out = std::string(what) + (values.size() == 1 ? " " : "s ") + Join(first, ",");
  if (values.size() > limit) out += " and " + std::to_string(values.size() - limit) + " more";
  return out;
}

std::string Headline(const proto::Verdict& verdict) {
  std::string out = "job " + verdict.job_id();
  if (verdict.attempt().ordinal() > 1)
    out += " attempt " + std::to_string(verdict.attempt().ordinal());
  out += "  " + verdict.code() + " " + verdict.family();
  if (!verdict.sub().empty()) out += " (" + verdict.sub() + ")";
  if (!verdict.fault_class().empty()) out += "  " + verdict.fault_class();
  if (!verdict.exception_type().empty()) out += "  " + verdict.exception_type();
  out += "  confidence " + ConfidenceWords(verdict);
  if (verdict.ranks_size() > 0) {
    constexpr size_t kRanges = 8;
    out += verdict.ranks_size() == 1 ? "  rank " : "  ranks ";
    out += Ranges(verdict.ranks(), kRanges);
  }
  return out + "  " + std::string(Word(verdict.state()));
}

// Empty where the citation has no text.
std::string Cited(const proto::Citation& cite) {
  switch (cite.c_case()) {
    case proto::Citation::kLog:
      return cite.log().stream() + " @" + std::to_string(cite.log().offset()) + ": " +
             cite.log().line();
    case proto::Citation::kPromql:
      return cite.promql();
    case proto::Citation::kScheduler:
      if (cite.scheduler().value().empty()) return {};
      return cite.scheduler().origin() + " " + cite.scheduler().field() + "=" +
             cite.scheduler().value();
    case proto::Citation::kKernel:
      if (cite.kernel().text().empty()) return {};
      return cite.kernel().source() + ": " + cite.kernel().text();
    case proto::Citation::kProcess:
      return "pid " + std::to_string(cite.process().process().pid()) + " " + cite.process().what() +
             " " + cite.process().value();
    case proto::Citation::C_NOT_SET:
      return {};
  }
  return {};
}

void Section(std::string_view title, std::string& out) {
  out.push_back('\n');
  out.append(title);
  out.push_back('\n');
}

// "rank 3 was killed" is subject "rank", number 3 and predicate "was killed".
struct Clause {
  std::string_view subject;  // empty: it is none of that form
  int64_t number = 0;
  std::string_view predicate;
};

Clause ClauseOf(std::string_view text) {
  for (const std::string_view subject : {"rank", "pid"}) {
    if (!text.starts_with(subject) || text.substr(subject.size(), 1) != " ") continue;
    const std::string_view rest = text.substr(subject.size() + 1);
    Clause clause{subject, 0, {}};
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), clause.number);
    clause.predicate = rest.substr(static_cast<size_t>(end - rest.data()));
    if (error == std::errc() && clause.predicate.starts_with(' ')) {
      clause.predicate.remove_prefix(1);
      return clause;
    }
  }
  return {};
}

// What is said of one, said of several; empty where the verb's plural is not known.
std::string OfSeveral(std::string_view predicate) {
  const std::string_view verb = predicate.substr(0, predicate.find(' '));
  const std::string_view rest = predicate.substr(verb.size());
  constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"was", "were"}, {"has", "have"}, {"is", "are"}};
  for (const auto& [one, many] : kVerbs) {
    if (verb == one) return std::string(many).append(rest);
  }
  return verb.ends_with("ed") || verb == "ran" ? std::string(predicate) : std::string();
}

// Sentences that differ only in their rank or process are one, with the citation of the first.
struct Shown {
  const proto::Evidence* first = nullptr;
  std::vector<int64_t> ids, numbers;
};

std::vector<Shown> Gathered(const proto::Verdict& verdict) {
  std::vector<Shown> all;
  for (const auto& evidence : verdict.shows()) {
    const Clause clause = ClauseOf(evidence.text());
    const auto same = std::find_if(all.begin(), all.end(), [&clause](const Shown& of) {
      const Clause known = ClauseOf(of.first->text());
      return !clause.subject.empty() && known.subject == clause.subject &&
             known.predicate == clause.predicate && !OfSeveral(clause.predicate).empty();
    });
    Shown& shown = same != all.end() ? *same : all.emplace_back(Shown{&evidence, {}, {}});
    shown.ids.push_back(evidence.id());
    shown.numbers.push_back(clause.number);
  }
  return all;
}

// What the conclusion rests on first: the chain of causes, then the evidence of the first
// implication.
void PutDecisiveFirst(const proto::Verdict& verdict, std::vector<Shown>& all) {
  std::vector<uint32_t> decisive;
  for (const auto& cause : verdict.cause_chain()) decisive.push_back(cause.evidence());
  if (verdict.implies_size() > 0) {
    const auto& evidence = verdict.implies(0).evidence();
    decisive.insert(decisive.end(), evidence.begin(), evidence.end());
  }
  const auto place = [&decisive](const Shown& shown) {
    size_t best = decisive.size();
    for (const int64_t id : shown.ids) {
      const auto at = std::find(decisive.begin(), decisive.end(), static_cast<uint32_t>(id));
      best = std::min(best, static_cast<size_t>(at - decisive.begin()));
    }
    return best;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Shown& a, const Shown& b) { return place(a) < place(b); });
}

void PrintMore(int64_t count, std::string& out) {
  if (count > 0) out += "  - and " + std::to_string(count) + " more (--all)\n";
}

void PrintShows(const proto::Verdict& verdict, Detail detail, std::string& out) {
  if (verdict.shows_size() == 0) return;
  constexpr size_t kRanges = 8;
  Section("Shows", out);
  std::vector<Shown> all = Gathered(verdict);
  size_t printed = all.size();
  if (detail == Detail::kShort) {
    constexpr size_t kSentences = 3;
    PutDecisiveFirst(verdict, all);
    printed = std::min(printed, kSentences);
  }
  for (size_t i = 0; i < printed; ++i) {
    const Shown& shown = all[i];
    std::string text = shown.first->text();
    const std::set<int64_t> who(shown.numbers.begin(), shown.numbers.end());
    if (who.size() > 1) {
      const Clause clause = ClauseOf(text);
      text = std::string(clause.subject) + "s " + Ranges(who, kRanges) + " " +
             OfSeveral(clause.predicate);
    }
    Wrap("  [" + Ranges(shown.ids, kRanges) + "] ", text, out);
    const std::string cited = Cited(shown.first->cite());
    if (cited.empty()) continue;
    if (detail == Detail::kShort) {
      out += Cut("      | ", cited);
      continue;
    }
    Wrap("      | ", cited, out);
    if (shown.ids.size() > 1)
      Wrap("      | ", "and " + std::to_string(shown.ids.size() - 1) + " more like it", out);
  }
  PrintMore(static_cast<int64_t>(all.size() - printed), out);
}

void PrintImplies(const proto::Verdict& verdict, Detail detail, std::string& out) {
  if (verdict.implies_size() == 0) return;
  Section("Implies", out);
  for (const auto& implication : verdict.implies()) {
    // On which stores it rests is of interest to who doubts it.
    if (detail == Detail::kShort && implication.evidence_size() == 0 &&
        &implication != &verdict.implies(0)) {
      continue;
    }
    std::string text = implication.text();
    if (implication.evidence_size() > 0) text += " [" + Join(implication.evidence(), ",") + "]";
    Wrap("  - ", text, out);
  }
}

// A log that somebody printed was judged, and no node was observed.
bool IsOfFile(const proto::Verdict& verdict) {
  return verdict.node().empty() && verdict.data_quality().sources_size() == 0;
}

// What data would decide it, and why there is none; nothing where the store has data.
std::string Lacking(const proto::Verdict& verdict, proto::Store needs, proto::Availability why) {
  if (why == proto::UP) return {};
  std::string lacking = " (needs " + std::string(StoreName(needs)) + " data";
  return lacking + (IsOfFile(verdict) ? ", which a log does not hold)"
                                      : ": " + std::string(LackWords(needs, why)) + ")");
}

void PrintCannotDecide(const proto::Verdict& verdict, int most, std::string& out) {
  if (verdict.cannot_decide_size() == 0) return;
  Section("Cannot decide", out);
  const int printed = std::min(most, verdict.cannot_decide_size());
  for (int i = 0; i < printed; ++i) {
    const auto& open = verdict.cannot_decide(i);
    Wrap("  - ", open.question() + Lacking(verdict, open.needs(), open.why()), out);
  }
  PrintMore(verdict.cannot_decide_size() - printed, out);
}

// The families that could have been it, each with its reason; many share one, and are then printed
// together.
void PrintRuledOut(const proto::Verdict& verdict, std::string& out) {
  std::vector<std::pair<std::string, std::string>>
      reasons;  // reason -> codes, in order of first use
  const auto add = [&](std::string reason, const std::string& code) {
    for (auto& [known, codes] : reasons) {
      if (known != reason) continue;
      codes += " " + code;
      return;
    }
    reasons.emplace_back(std::move(reason), code);
  };
  for (const auto& family : verdict.families()) {
    if (family.state() == proto::FamilyState::RULED_OUT) add(family.by(), family.code());
  }
  if (!reasons.empty()) Section("Ruled out", out);
  for (auto& [reason, codes] : reasons) Wrap("  - ", codes.append(": ").append(reason), out);
  reasons.clear();
  for (const auto& family : verdict.families()) {
    if (family.state() != proto::FamilyState::NOT_DECIDABLE) continue;
    const std::string lacking = Lacking(verdict, family.needs(), family.why());
    const std::string store(StoreName(family.needs()));
    add(!family.by().empty() ? family.by() + lacking
        : lacking.empty()    ? "the " + store + " data does not contain what this family needs"
        : IsOfFile(verdict)  ? "needs " + store + " data, which a log does not hold"
                             : "needs " + store + " data (" +
                                  std::string(LackWords(family.needs(), family.why())) + ")",
        family.code());
  }
  if (!reasons.empty()) Section("Not decidable here", out);
  for (auto& [reason, codes] : reasons) Wrap("  - ", codes.append(": ").append(reason), out);
}

// Which families it was not, and which nothing decides, without the reasons.
void PrintOthers(const proto::Verdict& verdict, std::string& out) {
  std::string ruled_out, open;
  for (const auto& family : verdict.families()) {
    if (family.state() == proto::FamilyState::RULED_OUT) ruled_out += " " + family.code();
    if (family.state() == proto::FamilyState::NOT_DECIDABLE) open += " " + family.code();
  }
  if (ruled_out.empty() && open.empty()) return;
  out.push_back('\n');
  if (!ruled_out.empty()) Wrap("", "Ruled out (reasons: --all):" + ruled_out, out);
  if (!open.empty()) Wrap("", "Not decidable:" + open, out);
}

void PrintWarnings(const proto::Verdict& verdict, int most, std::string& out) {
  if (verdict.warnings_size() == 0) return;
  Section("Warnings", out);
  const int printed = std::min(most, verdict.warnings_size());
  for (int i = 0; i < printed; ++i) {
    const auto& warning = verdict.warnings(i);
    std::string text = warning.kind();
    if (!warning.subject().empty()) text += " " + warning.subject();
    text += ": " + warning.text();
    Wrap("  - ", text, out);
  }
  PrintMore(verdict.warnings_size() - printed, out);
}

void PrintLife(const proto::Verdict& verdict, std::string& out) {
  const std::string ended = DispositionWords(verdict);
  if (ended.empty() && verdict.history_size() < 2) return;
  Section("History", out);
  constexpr int kPrinted = 8;
  for (int i = std::max(0, verdict.history_size() - kPrinted); i < verdict.history_size(); ++i) {
    const proto::Change& change = verdict.history(i);
    Wrap("  - ",
         (change.at_ns() == 0 ? std::string() : Rfc3339(change.at_ns()) + " ") + change.from() +
             " became " + change.to(),
         out);
  }
  if (!ended.empty()) Wrap("  - ", "the run " + ended, out);
}

// What the attempts before this one ended by, the newest last.
void PrintEarlier(const proto::Verdict& verdict, int most, std::string& out) {
  if (verdict.attempts_size() == 0) return;
  Section("Earlier attempts", out);
  const int first = std::max(0, verdict.attempts_size() - most);
  for (int i = first; i < verdict.attempts_size(); ++i) {
    const proto::AttemptSummary& earlier = verdict.attempts(i);
    std::string text = "attempt " + std::to_string(earlier.attempt().ordinal()) + ": " +
                       earlier.code() + " " + earlier.family();
    if (!earlier.sub().empty()) text += " (" + earlier.sub() + ")";
    Wrap("  - ", text, out);
  }
  PrintMore(first, out);
}

void PrintDoNow(const proto::Verdict& verdict, std::string& out) {
  if (verdict.resolution().immediate_size() == 0) return;
  // The remedy of the first implication that has one.
  std::string_view remedy;
  for (const auto& implication : verdict.implies()) {
    if (remedy.empty()) remedy = RemedyWords(implication.remedy());
  }
  Section(remedy.empty() ? "Do now" : "Do now, " + std::string(remedy), out);
  for (const std::string& step : verdict.resolution().immediate()) Wrap("  - ", step, out);
}

void PrintNextTests(const proto::Verdict& verdict, int most, std::string& out) {
  if (verdict.next_tests_size() == 0) return;
  Section("Next tests", out);
  const int printed = std::min(most, verdict.next_tests_size());
  for (int i = 0; i < printed; ++i) {
    const auto& test = verdict.next_tests(i);
    Wrap("  $ ", test.command(), out);
    if (!test.expects().empty()) Wrap("      ", test.expects(), out);
  }
  PrintMore(verdict.next_tests_size() - printed, out);
}

void PrintQuality(const proto::Verdict& verdict, std::string& out) {
  const proto::DataQuality& quality = verdict.data_quality();
  if (quality.exact() && quality.lost_bytes() == 0 && quality.lost_events() == 0) return;
  Section("Data quality", out);
  if (!quality.exact())
    Wrap("  - ", "not exact: with all observations, the verdict could be different", out);
  if (quality.truncated_at() != 0) {
    Wrap("  - ", "the recording ends at byte " + std::to_string(quality.truncated_at()), out);
  }
  if (quality.lost_bytes() != 0)
    Wrap("  - ", std::to_string(quality.lost_bytes()) + " bytes lost", out);
  if (quality.lost_events() != 0)
    Wrap("  - ", std::to_string(quality.lost_events()) + " events lost", out);
  for (const std::string& note : quality.notes()) Wrap("  - ", note, out);
}

}  // namespace

// What a reader needs first stands first; the long list of what it was not stands near the end.
std::string VerdictToText(const proto::Verdict& verdict, Detail detail) {
  constexpr int kNoLimit = std::numeric_limits<int>::max();
  constexpr int kFew = 2;
  const int most = detail == Detail::kAll ? kNoLimit : kFew;
  std::string out;
  Wrap("", Headline(verdict), out);
  const std::string ended = DispositionWords(verdict);
  std::string where = verdict.nodes_size() > 0 ? "on " + Listed("node", verdict.nodes(), 4) : "";
  if (detail == Detail::kShort && !ended.empty())
    where += (where.empty() ? "the run " : "; the run ") + ended;
  if (!where.empty()) Wrap("", where, out);
  PrintShows(verdict, detail, out);
  PrintImplies(verdict, detail, out);
  PrintEarlier(verdict, most, out);
  PrintDoNow(verdict, out);
  PrintCannotDecide(verdict, most, out);
  PrintNextTests(verdict, detail == Detail::kAll ? kNoLimit : 1, out);
  PrintWarnings(verdict, most, out);
  if (detail == Detail::kShort) {
    PrintOthers(verdict, out);
  } else {
    PrintLife(verdict, out);
    PrintRuledOut(verdict, out);
  }
  PrintQuality(verdict, out);
  return out;
}

std::string VerdictToDigest(const proto::Verdict& verdict) {
  constexpr size_t kMostPoints = 3;
  std::string out = Headline(verdict);
  if (const std::string ended = DispositionWords(verdict); !ended.empty()) out += ", " + ended;
  // What began it comes first.
  std::vector<uint32_t> cited;
  for (const auto& cause : verdict.cause_chain()) cited.push_back(cause.evidence());
  for (const auto& evidence : verdict.shows()) cited.push_back(evidence.id());
  std::vector<std::string_view> points;
  for (const uint32_t id : cited) {
    for (const auto& evidence : verdict.shows()) {
      const bool known = std::find(points.begin(), points.end(), evidence.text()) != points.end();
      if (evidence.id() == id && !known && points.size() < kMostPoints)
        points.push_back(evidence.text());
    }
  }
  for (size_t i = 0; i < points.size(); ++i) out.append(i == 0 ? ": " : "; ").append(points[i]);
  return Printable(out);
}

}  // namespace rankscope
