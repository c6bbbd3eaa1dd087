// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
//
// Validates Kubernetes objects against their schemas: `node validate.mjs NODE_MODULES <objects.yaml`.
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const packages = ["kubernetes-models", "@kubernetes-models/prometheus-operator"];
const { loadAll } = await import(pathToFileURL(`${process.argv[2]}/js-yaml/dist/js-yaml.mjs`));
let failed = 0;
for (const object of loadAll(readFileSync(0, "utf8"))) {
  // "v1", "apps/v1", "monitoring.coreos.com/v1" are folders.
  let model;
  for (const name of packages) {
    const file = `${process.argv[2]}/${name}/${object.apiVersion}/${object.kind}.js`;
    if (existsSync(file)) model = (await import(pathToFileURL(file)))[object.kind];
  }
  const what = `${object.kind} ${object.metadata?.name}`;
  try {
    if (!model) throw new Error(`no schema of ${object.apiVersion}`);
    new model(object).validate();
    console.log(`${what}: valid`);
  } catch (error) {
    failed += 1;
    console.log(`${what}: ${error.message}`);
  }
}
process.exit(failed ? 1 : 0);
