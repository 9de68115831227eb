/** `hopgate check`: is this configuration right, and if not, where and why? */

import type { LoadResult } from '../../config/load.ts';
import { jsonSchema } from '../../config/sections/index.ts';
import { problemOfServing } from '../../config/servable.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { fileOf, load, tell } from '../load-config.ts';
import { plural } from '../plural.ts';
import { jsonOption } from '../shared-options.ts';
import { sourceWords } from '../source-words.ts';

export const CHECK: CommandSpec = {
  name: 'check',
  group: 'Look',
  summary: 'say whether the configuration is right',
  description: [
    'Problems are told as FILE:LINE:COLUMN, with what was probably meant. --schema prints the JSON Schema of the file, for editors.',
  ],
  options: [jsonOption(), { name: 'schema', summary: 'print the JSON Schema of hopgate.yaml' }],
  examples: [
    {
      line: 'hopgate check --config ./hopgate.yaml',
      summary: 'Checks a file before it is used.',
    },
    { line: 'hopgate check --schema > hopgate.schema.json', summary: 'Completion in an editor.' },
  ],
  exits: [
    [0, 'it can be used'],
    [1, 'it cannot'],
  ],
  run: runCheck,
};

/** Exit 0 when the configuration can be used, 1 when not. */
async function runCheck(invocation: Invocation): Promise<number> {
  const { flag, out } = invocation;
  if (flag('schema')) {
    out.line(JSON.stringify(jsonSchema(), null, 2));
    return 0;
  }
  const loaded = await load(invocation);
  const result = loaded.ok ? servable(loaded) : loaded;
  const file = fileOf(result);
  if (flag('json')) {
    const { ok, warnings } = result;
    const problems = result.ok ? [] : result.problems;
    out.line(JSON.stringify({ ok, file: file ?? null, problems, warnings }, null, 2));
    return ok ? 0 : 1;
  }
  tell(invocation, result);
  if (!result.ok) {
    const count = result.problems.length;
    invocation.err.line(`${count} ${count === 1 ? 'problem' : 'problems'}.`);
    return 1;
  }
  const { providers, routes, source } = result.config;
  const names = Object.keys(providers);
  out.line(`${out.paint('green', 'ok')}  ${sourceWords(source)}`);
  out.line(`    ${plural(names.length, 'provider')}: ${names.join(', ')}`);
  out.line(
    `    ${plural(routes.length, 'route')}, listening on ${result.config.listen.host}:${result.config.listen.port}`,
  );
  return 0;
}

/** What `serve` would refuse cannot be used, however right it is in itself. */
function servable(loaded: LoadResult & { readonly ok: true }): LoadResult {
  const { config } = loaded;
  const { problem, warnings } = problemOfServing(config, loaded.warnings);
  return problem === undefined
    ? loaded
    : { ok: false, problems: [problem], warnings, file: config.source.path };
}
