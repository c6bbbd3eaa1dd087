// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Each FILE is a dashboard by Grafana's own schema, and each of its queries is PromQL by Prometheus's own grammar for editors.
// Usage: node check.mjs SCHEMA FILE...
import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import Ajv from 'ajv';

const [schema, ...files] = process.argv.slice(2);
const rules = JSON.parse(readFileSync(schema, 'utf8'));
// Open in @grafana/data: what a kind of data source needs stands there.
rules.definitions.AnnotationQuery.additionalProperties = true;
const validate = new Ajv({ strict: false, allErrors: true }).compile(rules);
const faults = [];

function errorsOf(query) {
  const filled = query.replaceAll('$__rate_interval', '1m').replaceAll(/\$\{?\w+\}?/g, '.+');
  const found = [];
  parser.parse(filled).iterate({ enter(node) {
    if (node.type.isError) found.push(`${filled.slice(0, node.from)} <<< ${filled.slice(node.from)}`);
  } });
  return found;
}

let queries = 0;
for (const file of files) {
  const board = JSON.parse(readFileSync(file, 'utf8'));
  if (!validate(board)) {
    faults.push(...validate.errors.slice(0, 10).map((error) => `${file}: ${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`));
  }
  const asked = board.panels.flatMap(({ title, targets }) => (targets ?? []).map(({ expr }) => [title, expr]));
  for (const [title, query] of [...asked, ...board.annotations.list.map(({ name, expr }) => [name, expr])]) {
    queries += 1;
    faults.push(...errorsOf(query).map((error) => `${file}: '${title}' is not PromQL: ${error}`));
  }
}
// What is wrong must be found.
if (validate({ panels: [{ type: 7 }], schemaVersion: 'forty' })) faults.push('the schema accepts anything');
if (errorsOf('sum by (a (b)').length === 0) faults.push('the parser accepts anything');
console.log([...faults, `${files.length} boards, ${queries} queries, ${faults.length} faults`].join('\n'));
process.exit(faults.length === 0 ? 0 : 1);
