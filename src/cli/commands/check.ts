import type { LoadResult } from '../../config/load.ts';
import { modelWarnings } from '../../config/models/ended-models.ts';
import { jsonSchema } from '../../config/sections/index.ts';
import { openFileWithKeys, problemOfServing } from '../../config/servable.ts';
import { urlHostOf } from '../../lib/http/local-address.ts';
import { type CommandSpec, type Invocation, JSON_OPTION } from '../command.ts';
import { describeSource, fileOf, loadForCommand, reportProblems } from '../load-config.ts';
import { plural } from '../terminal.ts';

export const CHECK: CommandSpec = {
  name: 'check',
  others: ['validate', 'config', 'test'],
  summary: 'check the configuration and show every mistake',
  description: [
    'Each problem is printed as FILE:LINE:COLUMN, with a suggestion if there is one. --schema prints the JSON Schema of the file, for editors.',
  ],
  options: {
    json: JSON_OPTION,
    schema: { summary: 'print the JSON Schema of hopgate.yaml' },
  },
  examples: {
    'hopgate check --config ./hopgate.yaml': 'Checks a file before you use it.',
    'hopgate check --schema > hopgate.schema.json':
      'Writes the schema, for completion in an editor.',
  },
  exits: { 0: 'the configuration can be used', 1: 'it cannot' },
  run: runCheck,
};

async function runCheck(invocation: Invocation): Promise<number> {
  const { flag, out } = invocation;
  if (flag('schema')) {
    out.line(JSON.stringify(jsonSchema(), null, 2));
    return 0;
  }
  const loaded = await loadForCommand(invocation);
  const result = loaded.ok ? servable(loaded) : loaded;
  const file = fileOf(result);
  if (flag('json')) {
    const { ok, warnings } = result;
    const problems = result.ok ? [] : result.problems;
    out.line(JSON.stringify({ ok, file: file ?? null, problems, warnings }, null, 2));
    return ok ? 0 : 1;
  }
  reportProblems(invocation, result);
  if (!result.ok) {
    invocation.err.line(`${plural(result.problems.length, 'problem')}.`);
    return 1;
  }
  const { providers, routes, source } = result.config;
  const names = Object.keys(providers);
  const { host, port, tls } = result.config.listen;
  out.line(`${out.paint('green', 'ok')}  ${describeSource(source)}`);
  out.line(`    ${plural(names.length, 'provider')}: ${names.join(', ')}`);
  out.line(
    `    ${plural(routes.length, 'route')}, listening on ${urlHostOf(host)}:${port}${tls === undefined ? '' : ' with TLS'}`,
  );
  return 0;
}

/** A valid configuration that `serve` would refuse is a problem too. */
function servable(loaded: LoadResult & { readonly ok: true }): LoadResult {
  const { config } = loaded;
  const models = modelWarnings(config, Date.now());
  const { problem, warnings } = problemOfServing(config, [...loaded.warnings, ...models]);
  const open = openFileWithKeys(config);
  const opened = open === undefined ? [] : [{ path: '', line: 0, column: 0, message: open }];
  return problem === undefined
    ? { ...loaded, warnings: [...warnings, ...opened] }
    : { ok: false, problems: [problem], warnings, file: config.source.path };
}
