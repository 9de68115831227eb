/** `hopgate check`: is this configuration right, and if not, where and why? */

import { jsonSchema } from '../config/schema.ts';
import type { Invocation } from './command.ts';
import { fileOf, load, tell } from './load-config.ts';
import { sourceWords } from './source-words.ts';

/** Exit 0 when the configuration can be used, 1 when not. */
export async function runCheck(invocation: Invocation): Promise<number> {
  const { flag, out } = invocation;
  if (flag('schema')) {
    out.line(JSON.stringify(jsonSchema(), null, 2));
    return 0;
  }
  const result = await load(invocation);
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

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;
