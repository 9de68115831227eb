import { PERIODS } from '../../../config/sections/keys/budgets.ts';
import type { LimitName } from '../../../config/sections/keys/settings.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import {
  type CommandSpec,
  type Invocation,
  JSON_OPTION,
  type OptionSpec,
  type Options,
  partsOf,
  UsageError,
} from '../../command.ts';
import { type Columns, printTable } from '../../terminal.ts';
import { type KeysAccess, KeysProblem, openKeysAccess } from './keys-access.ts';

const LISTS = ['models', 'tools', 'routes', 'spaces'] as const;
const LIMITS: Readonly<Record<LimitName, string>> = {
  requests_per_minute: 'requests per minute',
  tokens_per_minute: 'tokens per minute',
  concurrent: 'requests at the same time',
};
const optionOf = (limit: string) => limit.replaceAll('_', '-');

const KEY_OPTIONS: Options = {
  labels: { value: 'NAME=VALUE,…', summary: 'labels, which budgets use to select keys' },
  models: { value: 'GLOB,…', summary: 'models the key may use' },
  tools: { value: 'GLOB,…', summary: 'server tools the key may use' },
  routes: { value: 'GLOB,…', summary: 'routes the key may use' },
  spaces: { value: 'GLOB,…', summary: 'memory spaces the key may use' },
  expires: { value: 'TIME', summary: 'a date, or a time with its time zone' },
  ...Object.fromEntries(
    Object.entries(LIMITS).map(([limit, summary]): [string, OptionSpec] => [
      optionOf(limit),
      { value: 'N', summary, range: [1, Number.MAX_SAFE_INTEGER] },
    ]),
  ),
  budgets: { value: 'USD/PERIOD,…', summary: 'amounts of money: 20/day,200/month' },
};

/** The members that options give; what is left out stays. @throws UsageError */
function settingsOf({ text, number }: Invocation): JsonObject {
  const body: Record<string, JsonObject[string]> = {};
  const labels = text('labels');
  if (labels !== undefined) {
    body.labels = Object.fromEntries(
      partsOf(labels).map((part) => {
        const at = part.indexOf('=');
        if (at < 1) throw new UsageError(`--labels: "${part}" is not NAME=VALUE.`);
        return [part.slice(0, at), part.slice(at + 1)];
      }),
    );
  }
  for (const name of LISTS) {
    const list = text(name);
    if (list !== undefined) body[name] = partsOf(list);
  }
  const expires = text('expires');
  if (expires !== undefined) body.expires = expires;
  const limits = Object.keys(LIMITS).flatMap((limit) => {
    const value = number(optionOf(limit));
    return value === undefined ? [] : [[limit, value] as const];
  });
  if (limits.length > 0) body.limits = Object.fromEntries(limits);
  const budgets = text('budgets');
  if (budgets !== undefined) body.budgets = partsOf(budgets).map(budgetOf);
  return body;
}

function budgetOf(part: string): JsonObject {
  const [usd = '', per = '', ...rest] = part.split('/');
  const isAmount = /^\d{1,7}(?:\.\d{1,9})?$/.test(usd);
  if (isAmount && rest.length === 0 && PERIODS.some((period) => period === per)) {
    return { usd: Number(usd), per };
  }
  throw new UsageError(
    `--budgets: "${part}" is not USD/PERIOD, with one of ${PERIODS.join(', ')}.`,
  );
}

type Action = (
  access: KeysAccess,
  rest: readonly string[],
  invocation: Invocation,
) => Promise<void>;

const ACTIONS: Readonly<Record<string, Action>> = {
  create: async (access, rest, invocation) => {
    const name = only(rest, 'create NAME');
    printIssued(await access.create({ name, ...settingsOf(invocation) }), invocation);
    if (access.isUnneeded !== true) return;
    invocation.err.line(
      'The gateway serves clients without a key as long as the configuration has no auth.admin_keys.',
    );
  },
  list: async (access, rest, invocation) => {
    if (rest.length > 0) throw new UsageError('Usage: hopgate keys list');
    printList(await access.list(invocation.flag('revoked')), invocation);
  },
  show: async (access, rest, { out }) =>
    print(await access.show(await idOf(access, only(rest, 'show ID'))), out),
  update: async (access, rest, invocation) => {
    const body = settingsOf(invocation);
    if (Object.keys(body).length === 0) throw new UsageError('keys update: say what to change.');
    print(await access.update(await idOf(access, only(rest, 'update ID')), body), invocation.out);
  },
  block: async (access, rest, { out }) =>
    print(await access.update(await idOf(access, only(rest, 'block ID')), { blocked: true }), out),
  unblock: async (access, rest, { out }) =>
    print(
      await access.update(await idOf(access, only(rest, 'unblock ID')), { blocked: false }),
      out,
    ),
  rotate: async (access, rest, invocation) => {
    const grace = invocation.number('grace');
    const body = grace === undefined ? {} : { grace };
    printIssued(await access.rotate(await idOf(access, only(rest, 'rotate ID')), body), invocation);
  },
  revoke: async (access, rest, { out }) =>
    print(await access.revoke(await idOf(access, only(rest, 'revoke ID'))), out),
};

export const URL_OPTION: OptionSpec = {
  value: 'URL',
  summary: 'the gateway to ask, with HOPGATE_ADMIN_KEY',
  default: 'the address in the configuration',
};

export const KEYS: CommandSpec = {
  name: 'keys',
  summary: 'create, list, rotate and revoke keys for clients',
  description: [
    "A key is shown once, when it is created; only its digest is stored. Limits and spend belong to the key's id, so rotating it changes only the secret.",
    'If HOPGATE_ADMIN_KEY holds one of auth.admin_keys, the command asks a running gateway. Otherwise it changes the file of this machine, or the database if engines.database is configured; gateways that use the same file or database see the change within five seconds.',
    'Clients need a key only if the configuration has auth.admin_keys, auth.keys or auth.jwt.',
  ],
  arguments: [
    {
      name: 'action',
      summary: 'what to do, followed by a name or an id',
      choices: Object.keys(ACTIONS),
      many: true,
    },
  ],
  options: {
    ...KEY_OPTIONS,
    grace: {
      value: 'SECONDS',
      summary: 'rotate: seconds for which the old secret still works',
      default: '86400',
      range: [0, 90 * 24 * 3600],
    },
    revoked: { summary: 'list: include revoked keys' },
    url: URL_OPTION,
    json: JSON_OPTION,
  },
  examples: {
    'hopgate keys create ci --labels team=web --budgets 20/day': 'Creates a key and prints it.',
    'hopgate keys list': 'Prints a table.',
    'hopgate keys rotate ID --grace 3600':
      'Gives the key a new secret; the old one works for another hour.',
  },
  exits: { 0: 'done', 1: 'refused, or the gateway, file or database could not be used' },
  run: runKeys,
};

async function runKeys(invocation: Invocation): Promise<number> {
  const [action = 'list', ...rest] = invocation.arguments;
  const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (act === undefined) throw new UsageError(`keys: there is no action "${action}".`);
  return withAccess(invocation, async (access) => {
    await act(access, rest, invocation);
    return 0;
  });
}

/** Runs something on the keys; the exit code. */
export async function withAccess(
  invocation: Invocation,
  work: (access: KeysAccess) => Promise<number>,
): Promise<number> {
  try {
    const access = await openKeysAccess(invocation);
    if (access === undefined) return 1;
    try {
      return await work(access);
    } finally {
      await access.close();
    }
  } catch (thrown) {
    if (!(thrown instanceof KeysProblem)) throw thrown;
    invocation.err.line(`hopgate: ${thrown.message}`);
    return 1;
  }
}

/**
 * The id of a key that is named by its id, or by a name that no other key has.
 * @throws KeysProblem where several keys have the name
 */
async function idOf(access: KeysAccess, named: string): Promise<string> {
  if (/^hk_\w{22}$/.test(named)) return named;
  const keys = await access.list(false);
  const ids = keys.flatMap(({ id, name }) => (name === named ? [String(id)] : []));
  // A key of the configuration has its name as its id.
  if (ids.length === 0 || ids.includes(named)) return named;
  if (ids.length === 1) return ids[0]!;
  const listed = ids.slice(0, 10).join(', ');
  throw new KeysProblem(`${ids.length} keys are named "${named}": ${listed}. Say which by its id.`);
}

function only(rest: readonly string[], usage: string): string {
  const [one] = rest;
  if (one === undefined || rest.length > 1) throw new UsageError(`Usage: hopgate keys ${usage}`);
  return one;
}

/** The key alone goes to stdout, so that a script can take it. */
function printIssued(issued: JsonObject, { out, err, flag }: Invocation): void {
  if (flag('json')) {
    print(issued, out);
    return;
  }
  err.line(`${String(issued.name)}: ${String(issued.id)}`);
  err.line('The key is shown only once:');
  out.line(String(issued.key));
}

const print = (value: JsonObject, out: Invocation['out']) =>
  out.line(JSON.stringify(value, null, 2));

function printList(keys: readonly JsonObject[], { out, err, flag }: Invocation): void {
  if (flag('json')) {
    out.line(JSON.stringify({ keys }, null, 2));
    return;
  }
  if (keys.length === 0) {
    err.line('No key was made yet: hopgate keys create NAME');
    return;
  }
  printTable(out, keys, COLUMNS, {
    spare: ['MODELS', 'LABELS', 'LIMITS', 'EXPIRES', 'BUDGETS'],
    cut: { MODELS: 12, LABELS: 12, NAME: 16 },
  });
}

const COLUMNS: Columns<JsonObject> = {
  ID: ({ id }) => String(id),
  NAME: ({ name }) => String(name),
  STATE: (key) => stateOf(key),
  LABELS: ({ labels }) =>
    Object.entries(isObject(labels) ? labels : {})
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(','),
  MODELS: ({ models }) => (Array.isArray(models) ? models.join(',') : '*'),
  LIMITS: (key) => limitsOf(key),
  BUDGETS: (key) => budgetsOf(key),
  EXPIRES: ({ expires }) => String(expires ?? ''),
};

const LIMIT_UNITS: Readonly<Record<string, string>> = {
  requests_per_minute: ' requests/min',
  tokens_per_minute: ' tokens/min',
  concurrent: ' at a time',
};

const limitsOf = ({ limits }: JsonObject): string =>
  Object.entries(isObject(limits) ? limits : {})
    .map(([name, amount]) => `${String(amount)}${LIMIT_UNITS[name] ?? ` ${name}`}`)
    .join(', ');

/** As `--budgets` takes them. */
const budgetsOf = ({ budgets }: JsonObject): string =>
  (Array.isArray(budgets) ? (budgets as JsonObject[]) : [])
    .map(({ usd, per }) => `${String(usd)}/${String(per)}`)
    .join(',');

function stateOf(key: JsonObject): string {
  if (key.source === 'configuration') return 'configured';
  if (key.revoked !== undefined) return 'revoked';
  if (key.blocked === true) return 'blocked';
  const { expires } = key;
  return typeof expires === 'string' && Date.parse(expires) <= Date.now() ? 'expired' : 'active';
}
