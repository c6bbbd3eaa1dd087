// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The language of the templates: what a value becomes, which clauses stand, what does not compile.
#include "detectors/sentences/render.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace rankscope::sentences {
namespace {

using features::Evidence;

std::string Of(Template text, const FieldValues& values) {
  return Render(text, values);
}

std::string Printed(FieldId id, FieldValue::Of value, Format format) {
  return Print({id, std::move(value)}, {id, format, {}});
}

TEST(Print, ADurationIsAsPeopleSayIt) {
  const auto lasting = [](double seconds) { return Print({FieldId::kLimit, seconds}); };
  EXPECT_EQ(lasting(0), "0 s");
  EXPECT_EQ(lasting(45.4), "45 s");
  EXPECT_EQ(lasting(119), "119 s");
  EXPECT_EQ(lasting(720), "12 min");
  EXPECT_EQ(lasting(7199), "120 min");
  EXPECT_EQ(lasting(7200), "2 h");
  EXPECT_EQ(lasting(15'000), "4 h 10 min");
  EXPECT_EQ(lasting(86'400), "24 h");
  EXPECT_EQ(lasting(266'400), "3 d 2 h");
  EXPECT_FALSE(lasting(1e300).empty());
  EXPECT_FALSE(lasting(-1).empty());
  EXPECT_FALSE(lasting(std::numeric_limits<double>::quiet_NaN()).empty());
}

TEST(Print, AListOfRanksAndATimeOfDay) {
  const FieldValues values = {{FieldId::kOthers, std::vector<int32_t>{0, 1, 2, 7}},
                              {FieldId::kPrinted, int64_t{1700000000}}};
  EXPECT_EQ(Of("{others:ranks} {others:is/are} at {printed:clock}", values),
            "ranks 0-2, 7 are at 22:13:20");
  EXPECT_EQ(Of("{others:is/are}", {{FieldId::kOthers, std::vector<int32_t>{3}}}), "is");
}

TEST(Render, ASentenceWithoutOneOfItsValuesIsLeftOut) {
  EXPECT_EQ(Of("{name} and {node}", {{FieldId::kName, "a"}, {FieldId::kNode, "b"}}), "a and b");
  EXPECT_EQ(Of("{name} and {node}", {{FieldId::kName, "a"}}), "");
  EXPECT_EQ(Of("{name}", {{FieldId::kName, ""}}), "");
  EXPECT_EQ(Of("plain | text", {}), "plain | text");
}

TEST(Render, AClauseStandsWithItsValues) {
  EXPECT_EQ(Of("a[ of {node}]", {}), "a");
  EXPECT_EQ(Of("a[ of {node}]", {{FieldId::kNode, "n1"}}), "a of n1");
  EXPECT_EQ(Of("a[ of {node}[:{port}]]", {{FieldId::kNode, "n1"}}), "a of n1");
  EXPECT_EQ(Of("a[ of {node}[:{port}]]", {{FieldId::kPort, "1"}}), "a");
  EXPECT_EQ(Of("a[ of {node}[:{port}]]", {{FieldId::kNode, "n1"}, {FieldId::kPort, "1"}}),
            "a of n1:1");
  EXPECT_EQ(Of("[{name} {node}|{name}|nobody]", {{FieldId::kName, "a"}}), "a");
  EXPECT_EQ(Of("[{name} {node}|{name}|nobody]", {}), "nobody");
}

TEST(Render, AClauseStandsWithItsCondition) {
  constexpr Template kText = "[?kind=after:after|?kind=after*:only after|?!kind:alone|else]";
  EXPECT_EQ(Of(kText, {{FieldId::kKindOf, "after"}}), "after");
  EXPECT_EQ(Of(kText, {{FieldId::kKindOf, "afterok"}}), "only after");
  EXPECT_EQ(Of(kText, {}), "alone");
  EXPECT_EQ(Of(kText, {{FieldId::kKindOf, "x"}}), "else");
  constexpr Template kNumbers = "[?seconds<1.5:short|?seconds>=60,runs!=1:long|other]";
  EXPECT_EQ(Of(kNumbers, {{FieldId::kSeconds, 1.4}}), "short");
  EXPECT_EQ(Of(kNumbers, {{FieldId::kSeconds, int64_t{60}}}), "long");
  EXPECT_EQ(Of(kNumbers, {{FieldId::kSeconds, 60.0}, {FieldId::kRuns, int64_t{1}}}), "other");
  EXPECT_EQ(Of(kNumbers, {}), "other") << "what is not known is neither below nor above";
}

TEST(Render, NumbersArePrintedByTheirType) {
  EXPECT_EQ(Of("{runs}", {{FieldId::kRuns, 2.5}}), "3");
  EXPECT_EQ(Of("{runs}", {{FieldId::kRuns, int64_t{12345678}}}), "12345678");
  EXPECT_EQ(Of("{loss}", {{FieldId::kLoss, 1.23456789}}), "1.23457");
  EXPECT_EQ(Of("{rate}", {{FieldId::kRate, 1.23456789}}), "1.23");
  EXPECT_EQ(Of("{rate}", {{FieldId::kRate, 123456.7}}), "123457");
  EXPECT_EQ(Of("{loss}", {{FieldId::kLoss, std::nan("")}}), "") << "absent";
  EXPECT_EQ(Of("{silent}", {{FieldId::kSilent, std::vector<int32_t>{1, 2, 5}}}), "1, 2 and 5");
  EXPECT_EQ(Of("{silent}", {{FieldId::kSilent, std::vector<int32_t>{}}}), "");
}

TEST(Render, Formats) {
  const double gib = 1024.0 * 1024 * 1024;
  EXPECT_EQ(Printed(FieldId::kSync, 0.1234567, Format::kPercent), "12 %");
  EXPECT_EQ(Printed(FieldId::kSync, 0.1234567, Format::kPercent1), "12.3 %");
  EXPECT_EQ(Printed(FieldId::kSync, 0.12345678, Format::kPercent6), "12.3457 %");
  EXPECT_EQ(Printed(FieldId::kTotal, 1.5 * gib, Format::kBytes), "1.5 GiB");
  EXPECT_EQ(Printed(FieldId::kTotal, int64_t{3 << 20}, Format::kBytes), "3 MiB");
  EXPECT_EQ(Printed(FieldId::kTotal, int64_t{100}, Format::kBytes), "100 B");
  EXPECT_EQ(Printed(FieldId::kTotal, 1.26 * gib, Format::kGib), "1.3 GiB");
  EXPECT_EQ(Printed(FieldId::kTotal, 2.6 * 1024 * 1024, Format::kMib), "3");
  EXPECT_EQ(Printed(FieldId::kTotal, 2.6 * 1024 * 1024, Format::kMibExact), "2.6");
  EXPECT_EQ(Printed(FieldId::kClock, 1.7004e9, Format::kMhz), "1700");
  EXPECT_EQ(Printed(FieldId::kCallSeconds, 12.34e-6, Format::kMicroseconds), "12.3");
  EXPECT_EQ(Printed(FieldId::kSeconds, 3660.0, Format::kDuration), "61 min");
  EXPECT_EQ(Printed(FieldId::kSeconds, 1.5, Format::kWhole), "2");
  EXPECT_EQ(Printed(FieldId::kSeconds, 2e6, Format::kWhole), "2000000");
  EXPECT_EQ(Printed(FieldId::kSignal, int64_t{9}, Format::kSignalName), "SIGKILL");
  EXPECT_EQ(Printed(FieldId::kSignal, -11.0, Format::kSignalName), "SIGSEGV");
  EXPECT_EQ(Printed(FieldId::kBits, int64_t{0x48}, Format::kThrottle),
            "a hardware slowdown and the thermal limit (hardware)");
  EXPECT_EQ(Printed(FieldId::kStack, "a;b;c;d", Format::kTop), "a;b;c");
  EXPECT_EQ(Printed(FieldId::kStack, "a", Format::kTop), "a");
  EXPECT_EQ(Printed(FieldId::kText, "  \ta b", Format::kTrimmed), "a b");
  EXPECT_EQ(Printed(FieldId::kTotal, "much", Format::kBytes), "much") << "a text stays a text";
}

TEST(Render, WordsOfAGroup) {
  EXPECT_EQ(Of("{class:wait}", {{FieldId::kClass, "sleep"}}), "slept");
  EXPECT_EQ(Of("{class:wait}", {{FieldId::kClass, "?"}}), "waited");
  EXPECT_EQ(Of("{outcome:lookup}", {{FieldId::kOutcome, "odd"}}), "odd");
}

TEST(Render, OneAndMany) {
  constexpr Template kText = "{runs} {runs:run/runs}";
  EXPECT_EQ(Of(kText, {{FieldId::kRuns, int64_t{1}}}), "1 run");
  EXPECT_EQ(Of(kText, {{FieldId::kRuns, int64_t{2}}}), "2 runs");
  EXPECT_EQ(Of(kText, {{FieldId::kRuns, int64_t{0}}}), "0 runs");
  Evidence evidence;
  evidence.ranks = {3};
  EXPECT_EQ(Render("{ranks} {ranks:has/have}", evidence), "rank 3 has");
  evidence.ranks = {0, 1, 2, 7};
  EXPECT_EQ(Render("{ranks} {ranks:has/have}: {ranks:list}", evidence),
            "ranks 0-2, 7 have: 0, 1, 2 and 7");
}

TEST(Render, WhatEveryObservationHas) {
  Evidence evidence;
  EXPECT_EQ(Render("{who}[, {ranks}][, {process}][, {observed}][, {expected}][, {at}]", evidence),
            "a process");
  EXPECT_EQ(Render("{times}[ and {repeats}]", evidence), "1");
  evidence.process.pid = 17;
  EXPECT_EQ(Render("{who}", evidence), "pid 17");
  evidence.ranks = {4};
  evidence.times = 3;
  evidence.observed = std::nan("");
  evidence.expected = std::nan("");
  evidence.store = proto::STORE_KERNEL;
  EXPECT_EQ(Render("{who}, {process}, {observed}[, {expected}], {repeats}, {store}", evidence),
            "rank 4, pid 17, nan, 3, kernel");
  evidence.values = {{FieldId::kRecord, int64_t{2}}};
  EXPECT_EQ(Render("[{at}]", evidence), "at record 2");
  evidence.values = {{FieldId::kStep, 1234567.0}};
  EXPECT_EQ(Render("[{at}]", evidence), "at step 1234567");
  EXPECT_EQ(Render("a {name} b", evidence), "a  b");
  EXPECT_EQ(RenderWhole("a {name} b", evidence), "");
}

TEST(Render, RankLists) {
  EXPECT_EQ(RankList({}), "");
  EXPECT_EQ(RankList({4}), "rank 4");
  EXPECT_EQ(RankList({0, 1}), "ranks 0, 1");
  EXPECT_EQ(RankList({0, 1, 2, 7, 9, 10, 11}), "ranks 0-2, 7, 9-11");
}

TEST(Render, SignalNames) {
  EXPECT_EQ(SignalName(9), "SIGKILL");
  EXPECT_EQ(SignalName(0), "a signal");
  EXPECT_EQ(SignalName(40), "signal 40");
}

TEST(Render, ListsOfSentencesAreCutAtTheirBars) {
  constexpr TemplateList kList = "look at {name}|[{node}|a node] of {name}|wait";
  std::vector<std::string> sentences;
  const auto render = [&](const FieldValues& values) {
    sentences.clear();
    kList.ForEach([&](Template text) { sentences.push_back(Render(text, values)); });
    return sentences;
  };
  EXPECT_EQ(render({{FieldId::kName, "x"}}),
            (std::vector<std::string>{"look at x", "a node of x", "wait"}));
  EXPECT_EQ(render({}), (std::vector<std::string>{"", "", "wait"}));
}

// What is not a template is refused by the compiler; here, that a reader of one says so.
TEST(Render, EveryFieldIsFoundByItsName) {
  for (size_t i = 0; i < kFields.size(); ++i) {
    ASSERT_TRUE(FindField(kFields[i].name).has_value()) << kFields[i].name;
    EXPECT_EQ(static_cast<size_t>(*FindField(kFields[i].name)), i);
  }
  EXPECT_EQ(FindField("no such"), std::nullopt);
  EXPECT_EQ(FindField(""), std::nullopt);
}

TEST(Fields, WhatIsCapturedByNameIsANumberWhereItIsWrittenAsOne) {
  EXPECT_EQ(FromCaptured("total", "1024"), (FieldValue{FieldId::kTotal, int64_t{1024}}));
  EXPECT_EQ(FromCaptured("total", "007"), (FieldValue{FieldId::kTotal, "007"}));
  EXPECT_EQ(FromCaptured("total", "1 GiB"), (FieldValue{FieldId::kTotal, "1 GiB"}));
  EXPECT_EQ(FromCaptured("host", "10"), (FieldValue{FieldId::kHost, "10"}));
  EXPECT_EQ(FromCaptured("total", ""), std::nullopt);
  EXPECT_EQ(FromCaptured("nobody's", "x"), std::nullopt);
}

TEST(Fields, WhatIsInferredComesBackAsItWas) {
  const FieldValues values = {
      {FieldId::kTotal, int64_t{4096}}, {FieldId::kHost, "10"}, {FieldId::kErrno, "ENOSPC"}};
  EXPECT_EQ(FromCaptured(ToCaptured(values)), values);
}

TEST(Fields, TheFirstOfTwoCounts) {
  FieldValues values = {{FieldId::kName, "a"}, {FieldId::kName, "b"}, {FieldId::kNode, ""}};
  EXPECT_EQ(values.Text(FieldId::kName), "a");
  EXPECT_FALSE(values.Has(FieldId::kNode));
  values.Replace(FieldId::kName, "c");
  EXPECT_EQ(values.Text(FieldId::kName), "c");
  values.Set(FieldId::kRuns, int64_t{2});
  EXPECT_EQ(values.Text(FieldId::kRuns), "") << "a number is no text";
}

// Whatever a value holds, it is text and never template.
TEST(Render, ValuesAreNotRead) {
  EXPECT_EQ(Of("{name}", {{FieldId::kName, "{node}[|]?:"}}), "{node}[|]?:");
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "{}[]|?:,=!<>*/ab1.-\0\n\xff";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t size = random() % 12; text.size() < size;) text += kBytes[random() % kBytes.size()];
    EXPECT_EQ(Of("a[{name}]b", {{FieldId::kName, text}}), "a" + text + "b");
    // A condition on it holds or does not; nothing else happens.
    const std::string chosen = Of("[?name=a*:1|?name<1:2|?!name:3|4]", {{FieldId::kName, text}});
    EXPECT_EQ(chosen, text.empty() ? "3" : text.starts_with('a') ? "1" : "4");
  }
}

TEST(Render, NumbersOfAnySizeArePrinted) {
  for (const double value : {0.0, -1.0, 1e300, -1e300, std::numeric_limits<double>::min(),
                             std::numeric_limits<double>::max()}) {
    for (const FormatRow& row : kFormats) {
      EXPECT_FALSE(row.format != Format::kThrottle &&
                   Printed(FieldId::kRate, value, row.format).empty())
          << row.name << " of " << value;
    }
  }
}

}  // namespace
}  // namespace rankscope::sentences
