// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Python tracebacks over several lines: chains ("During handling of", "The above exception was the
// direct cause"), ranks interleaved by launcher prefixes, exception groups, SyntaxErrors,
// multi-line messages. One machine per speaker (prefix rank); the reader owns up to kMaxSpeakers
// and shares the last one beyond that. Bounded: kMaxFrames innermost frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/logs/record.h"

namespace rankscope::logs {

struct BoxedLine;

class TracebackMachine {
 public:
  static constexpr std::string_view kAnchor = "Traceback (most recent call last)";
  // An exception of a Ray task: its frames follow without a header.
  static constexpr std::string_view kRayAnchor = "RayTaskError(";
  // std::terminate: the exception's class, and its words on the next line ("  what():  ...").
  static constexpr std::string_view kTerminateAnchor =
      "terminate called after throwing an instance of '";
  // Lines before a traceback that say that nobody died of it. Feeding a line that holds one of them
  // is of use, not needed.
  static constexpr std::string_view kContextAnchors[] = {
      "Exception ignored in", "Exception in thread ", "--- Logging error ---",
      "Task exception was never retrieved", "Error in atexit._run_exitfuncs"};
  static constexpr size_t kMaxFrames = 64;

  // Whether a traceback is open, so that the next line belongs to it without an anchor.
  bool open() const { return state_ != State::kIdle; }

  // An interrupt that nothing is known to follow: the program has ended, unless the next line goes
  // on with its chain.
  bool interrupted() const {
    return state_ == State::kMessage && headers_ == 0 &&
           pending_.exception_type == "KeyboardInterrupt";
  }

  // Takes a frame, or the source line below it, of an open traceback whose writer nobody
  // interrupts: such a line can be nothing else. Returns whether it was one.
  bool FeedPlainFrame(const CleanLine& line);

  // Takes a line that holds the anchor, or any line while open. Appends an Incident when an
  // exception is complete. Returns whether the line was part of a traceback (a line that ends one
  // by not belonging to it is not).
  bool Feed(const CleanLine& line, RecordList& out);

  // The stream ended: a complete exception still waiting for its chain is appended.
  void Flush(RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(state_, frames_, frame_count_, pending_, has_pending_, cause_, has_cause_, join_, tail_,
      headers_, shared_type_, waited_lines_, below_, box_width_, text_width_, after_frame_, aside_);
  }

  struct Frame {
    std::string file;
    std::string function;
    int32_t line = 0;
    std::string code;         // the source line below it
    std::string code_line;    // the same as the stream holds it, for quoting
    int64_t code_offset = 0;  // of that line
    template <class A>
    void Fields(A& a) {
      a(file, function, line, code, code_line, code_offset);
    }
  };

 private:
  //            header            exception line                connector
  //   kIdle ----------> kFrames ----------------> kMessage ----------------> kChain --header-->
  //   kFrames kPreamble --header-^   ^------ nested header ---|  |-- a few lines that are not its
  //   own --> kIdle
  enum class State : uint8_t { kIdle, kPreamble, kFrames, kMessage, kChain };
  // What the exception that completes next is to the pending one.
  enum class Join : uint8_t {
    kNone,
    kNext,   // the next of a chain: the pending one becomes its cause
    kInner,  // what the pending one wraps: it takes the pending one's place
  };

  bool FeedFrames(std::string_view text, const CleanLine& line, RecordList& out);
  bool Prints() const;
  bool FeedMessage(std::string_view text, const CleanLine& line, RecordList& out);
  bool FeedChain(std::string_view text, const CleanLine& line, RecordList& out);
  bool FeedRay(std::string_view text, const CleanLine& line, RecordList& out);
  bool FeedHeader(std::string_view text, RecordList& out);
  bool FeedTerminate(std::string_view text, const CleanLine& line, RecordList& out);
  bool FeedBoxed(const BoxedLine& boxed, const CleanLine& line, RecordList& out);
  bool AddFrame(std::string_view text);
  void NewFrame(std::string_view file, int32_t line, std::string_view function);
  void SetCode(std::string_view code, const CleanLine& line);
  bool ContinuesWrapped(std::string_view text) const;
  void BeginFrames(Join join);
  void BeginAside();
  void Complete(std::string_view type, std::string_view message, const CleanLine& line,
                RecordList& out);
  bool CompleteTangled(std::string_view text, const CleanLine& line, RecordList& out);
  void Emit(RecordList& out);
  void EndLine(RecordList& out);
  bool WrapsInner() const;
  void ToCause();
  std::vector<const Frame*> OrderedFrames() const;

  State state_ = State::kIdle;
  std::vector<Frame> frames_;  // ring of kMaxFrames; the oldest is overwritten
  uint32_t frame_count_ = 0;
  Incident pending_;  // complete but for what may follow
  bool has_pending_ = false;
  Incident cause_;  // first of the chain whose kind outlives a vaguer last one
  bool has_cause_ = false;
  Join join_ = Join::kNone;
  std::string tail_;     // the message, all its lines
  int32_t headers_ = 0;  // tracebacks begun and not completed: > 1 when several writers interleave
  std::string shared_type_;  // dotted; of the last exception completed among such writers
  int32_t waited_lines_ = 0;
  int32_t box_width_ = 0;   // of the box that the frames are drawn in; 0 = as Python prints them
  int32_t text_width_ = 0;  // of the newest line of the message
  int32_t below_ = 0;       // of them, those in one piece right below the message; -1: no more
  bool after_frame_ = false;
  bool aside_ = false;  // announced as one that nobody dies of
};

}  // namespace rankscope::logs
