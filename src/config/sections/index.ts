/** The schema of `hopgate.yaml`, put together from its sections: keys, types, defaults and descriptions. */

import { CONFIG_VERSION, OLDEST_VERSION } from '../file/migrations.ts';
import { choice, closed, count, integer, type ProgramForm } from '../file/schema.ts';
import { auth } from './auth.ts';
import { categories } from './categories.ts';
import { conversation } from './conversation.ts';
import { engines } from './engines.ts';
import { budgets } from './keys/budgets.ts';
import { limits } from './limits.ts';
import { keepAlive, listen, validate, workers } from './listen.ts';
import { memory } from './memory.ts';
import { aliases, answerModel, modelList } from './models.ts';
import { profiles } from './profiles.ts';
import { providers } from './providers.ts';
import { retry } from './retry.ts';
import { routes } from './routes.ts';
import { samples } from './samples.ts';
import { serverTools } from './server-tools/index.ts';
import { telemetry } from './telemetry.ts';
import { timeouts } from './timeouts.ts';

const version = integer(
  `The version of this file's format; the newest is ${CONFIG_VERSION}. Older formats are still read, and "hopgate migrate" rewrites them; a newer one is refused.`,
  OLDEST_VERSION,
);

const log = closed('Logs, on stderr.', {
  level: choice(
    ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    'The lowest level that is logged.',
  ).byDefault('info'),
  format: choice(
    ['auto', 'json', 'pretty'],
    'auto = pretty on a terminal, else JSON lines.',
  ).byDefault('auto'),
});

const unpriced = choice(
  ['count', 'refuse'],
  'Models without a price: count = they are used, but their cost is unknown and no budget counts it; refuse = they are not used.',
).byDefault('count');

const spend = closed(
  'Cost of requests: one row for each attempt at an upstream, in `$HOPGATE_HOME/state/spend.db`, or in `engines.database` where there is one.',
  {
    keep_days: count(
      'Days after which the rows of single attempts are deleted; 0 = never. In a shared database they are deleted by whole months. Totals stay.',
    ).byDefault(90),
    keep_totals_days: count(
      'Days after which totals by hour, day and month are deleted; 0 = never.',
    ).byDefault(0),
  },
);

/** The sections in the order in which the manual lists them. */
export const fileSchema = closed('The configuration of hopgate.', {
  version: version.byDefault(OLDEST_VERSION),
  listen,
  providers: providers.byDefault({}),
  routes: routes.byDefault([]),
  aliases: aliases.byDefault({}),
  model_list: modelList.byDefault({}),
  answer_model: answerModel,
  categories: categories.byDefault({}),
  profiles: profiles.byDefault({}),
  auth: auth.byDefault({}),
  budgets: budgets.byDefault([]),
  timeouts: timeouts.byDefault({}),
  retry: retry.byDefault({}),
  limits: limits.byDefault({}),
  keep_alive: keepAlive,
  workers,
  validate,
  unpriced,
  spend: spend.byDefault({}),
  engines: engines.byDefault({}),
  samples: samples.byDefault({}),
  server_tools: serverTools.byDefault({}),
  memory: memory.byDefault({}),
  conversation: conversation.byDefault({}),
  telemetry: telemetry.byDefault({}),
  log: log.byDefault({}),
});

/** What the file says, as the program has it. */
export type OwnConfig = ProgramForm<typeof fileSchema>;

/** A JSON Schema (draft 2020-12) of the file, for editors. */
export function jsonSchema(): Record<string, unknown> {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'hopgate.yaml',
    ...(plain(fileSchema) as Record<string, unknown>),
  };
}

/** Literals in a union as `enum`, which editors complete better, and without what is for the program alone. */
function plain(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (typeof node !== 'object' || node === null) return node;
  const {
    anyOf,
    program: _,
    ...rest
  } = node as { anyOf?: { const?: unknown }[]; program?: unknown };
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(rest)) if (value !== undefined) out[key] = plain(value);
  if (anyOf === undefined) return out;
  return anyOf.every((branch) => branch.const !== undefined)
    ? { ...out, type: 'string', enum: anyOf.map((branch) => branch.const) }
    : { ...out, anyOf: anyOf.map(plain) };
}
