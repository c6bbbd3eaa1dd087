// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/traceback.h"

#include <algorithm>
#include <csignal>

#include "detectors/logs/failures/boxed_traceback.h"
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/tangled.h"
#include "detectors/logs/failures/traceback_lines.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kDuring =
    "During handling of the above exception, another exception occurred:";
constexpr std::string_view kDirect =
    "The above exception was the direct cause of the following exception:";

constexpr std::string_view kTerminateShape = "cpp_terminate";
constexpr std::string_view kWhat = "what():";

constexpr size_t kTypeCap = 256;
constexpr size_t kTailCap = 4096;  // of a message of many lines, what is searched for telling words
constexpr int32_t kPatience = 4;   // foreign lines between a message and its chain's connector
constexpr int32_t kFramePatience =
    64;  // foreign lines inside a traceback before it is given up as cut short
constexpr int32_t kMaxHeaders = 4096;  // more writers than any node has

bool IsGroup(const Incident& incident) {
  return LastComponent(incident.exception_type).ends_with("ExceptionGroup");
}

// A tensor's descriptor is asked for from the worker that made it:
// torch.multiprocessing.reductions, and below it multiprocessing.resource_sharer. Whoever does not
// answer there has ended.
template <typename Frames>
bool AsksItsWorker(const Frames& frames, const Incident& incident) {
  static constexpr std::string_view kTypes[] = {"ConnectionResetError", "ConnectionRefusedError",
                                                "BrokenPipeError", "EOFError", "FileNotFoundError"};
  if (std::find(std::begin(kTypes), std::end(kTypes), LastComponent(incident.exception_type)) ==
      std::end(kTypes))
    return false;
  return std::any_of(frames.begin(), frames.end(), [](const auto* frame) {
    return Contains(frame->file, "multiprocessing/resource_sharer.py");
  });
}

}  // namespace

bool TracebackMachine::Feed(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripMargin(TrimRight(line.text));
  if (const BoxedLine boxed = ParseBoxed(text); boxed.kind != BoxedLine::Kind::kNone)
    return FeedBoxed(boxed, line, out);
  if (IsHeader(text)) {
    box_width_ = 0;
    FeedHeader(text, out);
    return !Contains(text, "%|");  // a progress bar before it is somebody else's
  }
  if (text.starts_with(kTerminateAnchor)) return FeedTerminate(text, line, out);
  switch (state_) {
    case State::kFrames:
      return FeedFrames(text, line, out);
    case State::kMessage:
      return FeedMessage(text, line, out);
    case State::kChain:
      return FeedChain(text, line, out);
    case State::kIdle:
    case State::kPreamble:
      break;
  }
  if (ContainsAny(text, kContextAnchors)) {
    BeginAside();
    return true;
  }
  if (FeedRay(text, line, out)) return true;
  if (state_ == State::kPreamble && ++waited_lines_ > 2) EndLine(out);
  return false;
}

// "ray.exceptions.RayTaskError(ValueError): ray::fit() (pid=7)" where no traceback is open: what a
// task raised, printed by a driver that caught it.
bool TracebackMachine::FeedRay(std::string_view text, const CleanLine& line, RecordList& out) {
  if (!Contains(text, kRayAnchor) || !Contains(text, "ray::")) return false;
  const ExceptionLine exception = ParseExceptionLine(text, false);
  if (exception.type.empty()) return false;
  BeginFrames(Join::kNone);
  Complete(exception.type, exception.message, line, out);
  return true;
}

bool TracebackMachine::FeedTerminate(std::string_view text, const CleanLine& line,
                                     RecordList& out) {
  const std::string_view type = Capped(Between(text, kTerminateAnchor, "'"), kTypeCap);
  if (type.empty()) return false;
  // Several ranks that abort at once: the what() lines follow, and say the same.
  const bool again = has_pending_ && pending_.shape == kTerminateShape &&
                     pending_.exception_type == type && tail_.empty();
  if (again) return true;
  if (open()) return false;  // another writer is speaking: the shape rows read it by itself
  Complete(type, {}, line, out);
  pending_.shape = kTerminateShape;
  SetSignal(pending_, 6);
  return true;
}

bool TracebackMachine::FeedBoxed(const BoxedLine& boxed, const CleanLine& line, RecordList& out) {
  if (boxed.kind == BoxedLine::Kind::kTop) {
    FeedHeader({}, out);
    box_width_ = boxed.width;
    return true;
  }
  if (state_ != State::kFrames || box_width_ == 0) return false;  // a table of somebody else's
  if (boxed.kind == BoxedLine::Kind::kFrame) {
    NewFrame(boxed.file, boxed.line, boxed.function);
    after_frame_ = true;
  } else if (boxed.kind == BoxedLine::Kind::kCode) {
    SetCode(boxed.code, line);
  }
  return true;
}

bool TracebackMachine::FeedHeader(std::string_view text, RecordList& out) {
  waited_lines_ = 0;
  switch (state_) {
    case State::kIdle:
    case State::kPreamble:
      headers_ = 1;
      BeginFrames(Join::kNone);
      break;
    case State::kFrames:
      // Another writer's traceback in the same stream; the frames of such a pair are nearly always
      // the same.
      headers_ = std::min(headers_ + 1, kMaxHeaders);
      break;
    case State::kMessage:
      if (text.starts_with("Original Traceback") || WrapsInner()) {
        BeginFrames(Join::kInner);
        break;
      }
      Emit(out);
      headers_ = std::min(headers_ + 1, kMaxHeaders);
      BeginFrames(Join::kNone);
      break;
    case State::kChain:
      headers_ = std::min(headers_ + 1, kMaxHeaders);
      BeginFrames(Join::kNext);
      break;
  }
  return true;
}

void TracebackMachine::BeginAside() {
  state_ = State::kPreamble;
  waited_lines_ = 0;
  aside_ = true;
}

// What stands below the message is what the exception wraps: a spawner's or a group's report,
// "...:" and a traceback.
bool TracebackMachine::WrapsInner() const {
  const std::string_view last = LastComponent(pending_.exception_type);
  return last == "ProcessRaisedException" || last == "CheckpointException" || IsGroup(pending_) ||
         TrimRight(tail_).ends_with(":");
}

void TracebackMachine::BeginFrames(Join join) {
  state_ = State::kFrames;
  join_ = join;
  frame_count_ = 0;
  after_frame_ = false;
  waited_lines_ = 0;
}

bool TracebackMachine::FeedFrames(std::string_view text, const CleanLine& line, RecordList& out) {
  if (text.empty() || IsGroupRule(text)) return true;
  text = WithoutLoneBlank(headers_ > 1 ? BehindCarets(text) : text);
  if (text[0] == ' ' || text[0] == '\t') {
    if (AddFrame(text)) {
      after_frame_ = true;
      return true;
    }
    const std::string_view code = TrimLeft(text);
    if (code.starts_with("[Previous line repeated")) return true;
    const bool deep = text.size() - code.size() >= 4 || text[0] == '\t';
    if (deep && frame_count_ > 0 && !Contains(code, "%|")) {
      SetCode(code, line);
      return true;
    }
  } else {
    if (headers_ > 1 && CompleteTangled(text, line, out)) return true;
    const std::string whole = headers_ > 1 ? WithoutCarets(text) : std::string();
    const ExceptionLine exception =
        ParseExceptionLine(whole.empty() ? text : std::string_view(whole), after_frame_);
    if (!exception.type.empty()) {
      Complete(exception.type, exception.message, line, out);
      return true;
    }
  }
  if (++waited_lines_ > kFramePatience) {
    if (has_pending_) Emit(out);
    EndLine(out);
  }
  return false;
}

// The last lines of several writers' tracebacks in one. Whether `text` is that.
bool TracebackMachine::CompleteTangled(std::string_view text, const CleanLine& line,
                                       RecordList& out) {
  const UntangledLine tangled = Untangle(text);
  if (tangled.type.empty() || ParseExceptionLine(tangled.type + ": ", true).type.empty())
    return false;
  Complete(tangled.type, tangled.message, line, out);
  headers_ = std::max(headers_ - (tangled.copies - 1), 0);
  return true;
}

void TracebackMachine::Complete(std::string_view type, std::string_view message,
                                const CleanLine& line, RecordList& out) {
  Incident next = MakeIncident(IncidentKind::kException, line, "traceback");
  // A writer whose module went to another line raised what the others did.
  next.exception_type = headers_ > 0 && type == LastComponent(shared_type_) ? shared_type_ : type;
  if (headers_ > 0 && type.find('.') != std::string_view::npos) shared_type_ = type;
  next.message = Capped(message, kMessageCap);
  const bool aside = aside_;
  if (has_pending_ && join_ == Join::kNext) {
    if (!has_cause_) ToCause();
    next.cause_type = pending_.cause_type.empty() ? pending_.exception_type : pending_.cause_type;
    next.cause_message = pending_.cause_type.empty() ? pending_.message : pending_.cause_message;
    QuoteCause(pending_, next);
  } else if (has_pending_ && join_ == Join::kInner) {
    if (next.local_rank < 0) next.local_rank = pending_.local_rank;
    if (next.rank < 0) next.rank = pending_.rank;
    next.cause_type = pending_.cause_type;
    next.cause_message = pending_.cause_message;
    KeepUncaught(pending_, next);
  } else if (has_pending_) {
    Emit(out);
  }
  aside_ = aside;
  if (const int32_t rank = RankOfCheckpoint(message); rank >= 0) next.rank = rank;
  pending_ = std::move(next);
  has_pending_ = true;
  if (join_ != Join::kInner) headers_ = std::max(headers_ - 1, 0);
  tail_.assign(Capped(message, kTailCap));
  const std::vector<const Frame*> frames = OrderedFrames();
  PlaceFrames(frames, pending_);
  if (AsksItsWorker(frames, pending_)) AddField(pending_, "worker_gone", "yes");
  if (!frames.empty()) {
    const Frame& outermost = *frames.front();
    const bool thread =
        Contains(outermost.file, "threading.py") && Contains(outermost.function, "_bootstrap");
    const bool log_call = Contains(outermost.file, "logging/__init__.py");
    if (thread || log_call || outermost.function == "__del__") aside_ = true;
  }
  state_ = State::kMessage;
  join_ = Join::kNone;
  waited_lines_ = 0;
  below_ = 0;
  text_width_ = Characters(TrimRight(line.text));
  after_frame_ = false;
  // The launcher's report follows and has a machine of its own.
  if (LastComponent(type) == "ChildFailedError") {
    Emit(out);
    EndLine(out);
  }
}

// The pending exception is followed by another of its chain: keep what it was if that says more
// than the last will.
void TracebackMachine::ToCause() {
  Incident cause = pending_;
  ClassifyText(tail_, cause);
  if (!OutlivesChain(cause)) return;
  cause_ = std::move(cause);
  has_cause_ = true;
}

// What is below a box is wrapped to its width: `text` goes on with the message where its first word
// did not fit behind the line before.
bool TracebackMachine::ContinuesWrapped(std::string_view text) const {
  if (box_width_ == 0 || waited_lines_ != 0 || below_ != 0) return false;
  const std::string_view word = Before(text, " ");
  const bool is_log_record =
      text[0] == ' ' || text[0] == '[' || ContainsAny(word, {"ERROR", "WARN", "INFO", "DEBUG"});
  return !is_log_record && text_width_ + 1 + Characters(word) > box_width_;
}

// The innermost frame writes to a standard stream.
bool TracebackMachine::Prints() const {
  if (frame_count_ == 0) return false;
  const std::string& code = frames_[(frame_count_ - 1) % kMaxFrames].code;
  return ContainsAny(code, {"print(", "stdout.", "stderr."});
}

bool TracebackMachine::FeedMessage(std::string_view text, const CleanLine& line, RecordList& out) {
  // tqdm draws its bars once more when the interpreter ends, and a terminal echoes what was typed.
  if (Contains(text, "%|") || Trim(text) == "^C") return false;
  if (text.empty() || IsGroupRule(text)) {
    below_ = -1;  // an empty line ends what may be the message's
    return true;
  }
  if (text.ends_with(kDuring) || text.ends_with(kDirect)) {
    state_ = State::kChain;
    waited_lines_ = 0;
    return true;
  }
  if (ContainsAny(text, kContextAnchors)) {
    Emit(out);
    BeginAside();
    return true;
  }
  if (ContinuesWrapped(text)) {
    if (!pending_.message.empty() && text_width_ < box_width_) pending_.message.push_back(' ');
    pending_.message.append(text);
    pending_.message.resize(Capped(pending_.message, kMessageCap).size());
    tail_.append(" ").append(Capped(text, kTailCap - std::min(kTailCap, tail_.size())));
    AddQuote(pending_, QuoteRole::kMessage, line);
    text_width_ = Characters(text);
    return true;
  }
  const bool says_what = TrimLeft(text).starts_with(kWhat) || ContinuesMessage(text);
  if (pending_.shape == kTerminateShape && !says_what) {
    Emit(out);
    EndLine(out);
    return false;
  }
  const bool indented = text[0] == ' ' || text[0] == '\t';
  // Frames without a header: the inside of a Ray task, or a writer whose header came before this
  // exception.
  const bool ray = waited_lines_ == 0 && Contains(pending_.message, "ray::");
  if (indented && (ray || headers_ > 0) && TrimLeft(text).starts_with("File \"")) {
    BeginFrames(headers_ > 0 ? Join::kNone : Join::kInner);
    if (!AddFrame(text)) return false;
    after_frame_ = true;
    return true;
  }
  if (headers_ > 0 && !indented && CompleteTangled(text, line, out)) return true;
  const bool introduced = TrimRight(tail_).ends_with("raised:");
  const bool may_complete = !indented && (headers_ > 0 || introduced);
  const ExceptionLine exception =
      may_complete ? ParseExceptionLine(text, headers_ > 0) : ExceptionLine();
  if (!exception.type.empty()) {
    join_ = introduced ? Join::kInner : Join::kNone;
    Complete(exception.type, exception.message, line, out);
    return true;
  }
  const bool own = indented || ContinuesMessage(text);
  const bool expected = own || tail_.empty() || TrimRight(tail_).ends_with(":");
  if (expected && tail_.size() < kTailCap) {
    std::string_view words = Trim(text);
    if (pending_.shape == kTerminateShape && words.starts_with(kWhat))
      words = TrimLeft(words.substr(kWhat.size()));
    if (tail_.empty()) {
      pending_.message =
          Capped(headers_ > 0 ? WithoutPieces(pending_.exception_type, words) : words, kMessageCap);
    }
    if (!IsBoilerplate(words)) AddQuote(pending_, QuoteRole::kMessage, line);
    tail_.append("\n").append(Capped(words, kTailCap - tail_.size()));
    if (const auto rank = IntAfter(text, "-- Process "); rank && *rank >= 0 && *rank < (1 << 24)) {
      pending_.local_rank = static_cast<int32_t>(*rank);
    }
  }
  if (own) return true;
  // A message of several lines has nothing that sets its further lines apart from what comes next.
  if (!expected && waited_lines_ == below_ && IsSentence(text)) {
    ++below_;
    AddQuote(pending_, QuoteRole::kBelow, line);
  }
  // What a shell or the next program says comes at once.
  if (++waited_lines_ > kPatience || interrupted()) {
    Emit(out);
    EndLine(out);
  }
  return false;
}

bool TracebackMachine::FeedChain(std::string_view text, const CleanLine& line, RecordList& out) {
  if (text.empty() || text.ends_with(kDuring) || text.ends_with(kDirect)) return true;
  // Ray prints "ray::Actor.method() (pid=..)" in the header's place.
  if (text.starts_with("ray::")) return true;
  if (text[0] == ' ' && TrimLeft(text).starts_with("File \"")) {
    BeginFrames(Join::kNext);
    after_frame_ = AddFrame(text);
    return true;
  }
  const ExceptionLine exception = ParseExceptionLine(text, true);
  if (!exception.type.empty()) {
    frame_count_ = 0;
    join_ = Join::kNext;
    Complete(exception.type, exception.message, line, out);
    return true;
  }
  if (++waited_lines_ > kPatience) {
    Emit(out);
    EndLine(out);
  }
  return false;
}

// Appends the pending exception; other writers' tracebacks stay open.
void TracebackMachine::Emit(RecordList& out) {
  if (!has_pending_) return;
  const FrameKind worded = FrameKindOfMessage(pending_.exception_type, tail_);
  if (worded != FrameKind::kUnknown) pending_.frame = worded;
  bool told = ClassifyText(tail_, pending_);
  // The other end of a DataLoader's pipe is a worker or a store of data, and no rank.
  const bool of_data =
      pending_.frame == FrameKind::kDataLoader || pending_.frame == FrameKind::kDataset;
  if (pending_.kind == IncidentKind::kPeerLost && of_data) {
    pending_.kind = IncidentKind::kException;
    pending_.role = Role::kInitiating;
    told = false;
  }
  // A standard output that nobody reads any more: no peer's end is behind it.
  if (pending_.kind == IncidentKind::kPeerLost && (aside_ || Prints()) &&
      pending_.exception_type == "BrokenPipeError") {
    pending_.kind = IncidentKind::kException;
    pending_.role = Role::kInitiating;
    told = false;
  }
  // "DataLoader worker (pid(s) 7) exited unexpectedly" tells less than the signal that killed it.
  const bool vague =
      !told || pending_.role != Role::kInitiating || pending_.kind == IncidentKind::kNonZeroExit;
  if (has_cause_ && vague) {
    KeepUncaught(pending_, cause_);
    pending_.kind = cause_.kind;
    pending_.role = cause_.role;
    pending_.sub = std::move(cause_.sub);
    pending_.signal = cause_.signal;
    pending_.pid = cause_.pid;
    pending_.fields = std::move(cause_.fields);
  }
  // A thread may die and nobody of it; that a worker was killed is so whoever says it.
  const bool killed =
      pending_.kind == IncidentKind::kSignalDeath &&
      (pending_.signal == SIGKILL || pending_.signal == SIGSEGV || pending_.signal == SIGBUS);
  if (aside_ && !killed) {
    if (pending_.role == Role::kInitiating) pending_.role = Role::kCascade;
    pending_.frame = FrameKind::kTeardown;
  }
  out.push_back(std::move(pending_));
  pending_ = Incident();
  has_pending_ = false;
  has_cause_ = false;
  aside_ = false;
  tail_.clear();
}

// Nothing pending any more: idle, or back to the tracebacks that other writers left open.
void TracebackMachine::EndLine(RecordList& out) {
  if (has_pending_) Emit(out);
  const bool others = headers_ > 0 && state_ == State::kMessage;
  state_ = others ? State::kFrames : State::kIdle;
  if (!others) {
    headers_ = 0;
    frame_count_ = 0;
    aside_ = false;
    shared_type_.clear();
    box_width_ = 0;
  }
  waited_lines_ = 0;
  join_ = Join::kNone;
}

void TracebackMachine::Flush(RecordList& out) {
  Emit(out);
  headers_ = 0;
  EndLine(out);
}

}  // namespace rankscope::logs
