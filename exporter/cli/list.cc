// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope list TABLE`: the tables that the program is made of, as Markdown.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/families/family_names.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/text/redactor.h"
#include "detectors/model/signal_table.h"
#include "detectors/verdict/hazards.h"
#include "detectors/verdict/warnings.h"
#include "exporter/cli/commands.h"
#include "exporter/config/config.h"
#include "exporter/daemon/sources.h"
#include "exporter/http/scrape.h"
#include "exporter/metrics/catalog.h"
#include "exporter/probes/attach/program_table.h"

namespace rankscope::cli {
namespace {

using Row = std::vector<std::string>;

std::string Code(std::string_view text) {
  return text.empty() ? std::string() : '`' + std::string(text) + '`';
}

// A cell must not end its row or its code span.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') {
      cell += "\\|";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      cell += ' ';
    } else if (c == '`') {
      cell += '\'';
    } else {
      cell += c;
    }
  }
  return cell;
}

void Print(const Row& head, const std::vector<Row>& rows) {
  const auto print = [](const Row& row) {
    std::string line = "|";
    for (const std::string& cell : row) line += ' ' + cell + " |";
    std::puts(line.c_str());
  };
  print(head);
  print(Row(head.size(), "---"));
  for (const Row& row : rows) print(row);
}

void Families() {
  std::vector<Row> rows;
  for (const families::FamilyName& family : families::FamilyNames()) {
    rows.push_back({std::string(family.code), Code(family.family), Cell(family.what)});
  }
  Print({"code", "family", "what"}, rows);
}

void Sources() {
  std::vector<Row> rows;
  for (const exporter::SourceRow& source : exporter::SourceTable()) {
    rows.push_back({Code(source.name), Cell(source.what), Cell(source.needs),
                    source.default_interval.ns == 0
                        ? "on events"
                        : exporter::FormatDuration(source.default_interval)});
  }
  Print({"source", "what it sees", "needs", "interval"}, rows);
}

void Metrics() {
  std::vector<Row> rows;
  for (const metrics::MetricRow& metric : metrics::kCatalog) {
    std::string labels;
    std::string_view rest = metric.labels;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      labels += (labels.empty() ? "" : ", ") + Code(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    std::string shown;
    if (metrics::IsOfFullProfile(metric.profile)) shown += " Profile `full` only.";
    if (metrics::IsDcgmName(metric.profile)) shown += " With `metrics.dcgm_names` only.";
    rows.push_back({Code(metric.name), std::string(metrics::TypeName(metric.type)), labels,
                    Cell(metric.help.text()) + shown});
  }
  Print({"metric", "type", "labels", "what"}, rows);
}

void Expositions() {
  std::vector<Row> rows;
  for (const http::ScrapeOffer& offer : http::ScrapeOffers()) {
    rows.push_back({std::string(metrics::kFormatNames[static_cast<size_t>(offer.format)]),
                    Code(offer.accept), Code(offer.content_type)});
  }
  Print({"format", "Accept", "Content-Type"}, rows);
}

void Formats() {
  std::vector<Row> rows;
  for (const logs::FormatRow& format : logs::Formats()) {
    rows.push_back({Code(format.name), Cell(format.framework), Code(Cell(format.example))});
  }
  Print({"format", "framework", "example"}, rows);
}

void Shapes() {
  std::vector<Row> rows;
  for (const logs::ShapeRow& shape : logs::Shapes()) {
    rows.push_back({Code(shape.name), Cell(shape.what), Code(Cell(shape.example))});
  }
  Print({"shape", "what", "example"}, rows);
}

void Redactions() {
  std::vector<Row> rows;
  for (const logs::RedactionRow& redaction : logs::Redactions()) {
    rows.push_back({Code(redaction.name), Cell(redaction.what)});
  }
  Print({"redaction", "what is masked"}, rows);
}

void Warnings() {
  std::vector<Row> rows;
  for (const engine::WarningRow& warning : engine::Warnings()) {
    rows.push_back(
        {Code(warning.kind), Cell(warning.subject), Cell(warning.severity), Cell(warning.remedy)});
  }
  Print({"warning", "subject", "severity", "what to do"}, rows);
}

void Hazards() {
  std::vector<Row> rows;
  for (const engine::HazardRow& hazard : engine::Hazards()) {
    rows.push_back({Code(hazard.name), Cell(engine::DescribeCondition(hazard.condition)),
                    Cell(hazard.symptoms), Cell(hazard.remedy), Cell(hazard.source)});
  }
  Print({"hazard", "seen by", "supported by", "what to do", "source"}, rows);
}

void Probes() {
  std::vector<Row> rows;
  for (const probes::ProgramRow& program : probes::ProgramTable()) {
    rows.push_back(
        {Code(program.name), Code(program.hook), Cell(program.event), Cell(program.cost)});
  }
  Print({"program", "hook", "event", "cost"}, rows);
}

// By scope and origin; the metric that shows it, if one does.
void Signals() {
  constexpr std::string_view kScopes[] = {"rank", "GPU", "job", "host"};
  constexpr std::string_view kOrigins[] = {"sampled", "derived", "summed", "rate"};
  std::vector<Row> rows;
  rows.reserve(std::size(kSignals));
  for (const SignalRow& signal : kSignals) {
    rows.push_back({std::to_string(static_cast<int>(signal.id)), Code(signal.name),
                    Cell(signal.unit), signal.kind == SignalKind::Counter ? "counter" : "gauge",
                    std::string(kScopes[static_cast<size_t>(signal.scope)]),
                    std::string(kOrigins[static_cast<size_t>(signal.origin)]),
                    Code(Cell(signal.metric))});
  }
  Print({"id", "signal", "unit", "kind", "of", "origin", "metric"}, rows);
}

struct Table {
  const char* name;
  void (*print)();
};

constexpr std::array<Table, 11> kTables = {{{"families", Families},
                                            {"sources", Sources},
                                            {"metrics", Metrics},
                                            {"signals", Signals},
                                            {"expositions", Expositions},
                                            {"formats", Formats},
                                            {"shapes", Shapes},
                                            {"redactions", Redactions},
                                            {"warnings", Warnings},
                                            {"hazards", Hazards},
                                            {"probes", Probes}}};

}  // namespace

int ListCommand(int argc, char** argv) {
  CLI::App app("Print one of rankscope's tables as Markdown.", "rankscope list");
  std::string name;
  std::vector<std::string> names;
  names.reserve(kTables.size());
  for (const Table& table : kTables) names.emplace_back(table.name);
  app.add_option("TABLE", name, "Name of the table")->required()->check(CLI::IsMember(names));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const Table& table : kTables) {
    if (name == table.name) table.print();
  }
  return 0;
}

}  // namespace rankscope::cli
