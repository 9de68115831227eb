/** Asks the gateway that should run at the address of a configuration: does it answer, and what does it say of itself. */

import type { Config } from '../config/config.ts';
import { readUpTo } from '../lib/http/read-up-to.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { objects } from '../lib/json/typed-reads.ts';
import { homeMark } from '../lib/process/running.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import type { RestingTarget } from '../routing/index.ts';
import type { SampleRow } from '../samples/sample.ts';
import type { Invocation } from './command.ts';
import { fetchOwn, reachableUrl } from './served-models.ts';

const ASK_MS = 2000;
const ANSWER_BYTES = 4 * 1024 * 1024;
const HASHED = /^sha256:/i;

export interface GatewayAnswer {
  readonly status: number;
  /** The body where it is a JSON object. */
  readonly body: JsonObject | undefined;
}

/**
 * `GET path` with the first key of the configuration that is known in plain text.
 * @returns undefined when there is no answer within two seconds
 */
export async function askGateway(
  config: Config,
  fetch: typeof globalThis.fetch,
  path: string,
): Promise<GatewayAnswer | undefined> {
  const key = keyFor(config, path);
  try {
    const answer = await fetchOwn(config.listen, fetch)(`${reachableUrl(config.listen)}${path}`, {
      headers: {
        accept: 'application/json',
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      signal: AbortSignal.timeout(ASK_MS),
      redirect: 'error',
    });
    const { bytes } = await readUpTo(answer.body, ANSWER_BYTES);
    const body: Json | undefined = tryParse(new TextDecoder().decode(bytes));
    return { status: answer.status, body: isObject(body) ? body : undefined };
  } catch {
    return undefined;
  }
}

/** Paths that show all keys want an admin key, or a client's key that sees all. */
function keyFor({ auth: { keys, adminKeys } }: Config, path: string): string | undefined {
  const sorted = [...keys].sort((a, b) => Number(b.sees === 'all') - Number(a.sees === 'all'));
  const clients = sorted.map(({ key }) => key);
  const all = path.startsWith('/health/') ? [...adminKeys, ...clients] : clients;
  return all.map((key) => key.reveal()).find((text) => !HASHED.test(text));
}

/**
 * The problem and its remedy, where a gateway answers at the configured address and has another home; undefined
 * where it has this one, does not say, or does not run.
 */
export async function otherHome(
  config: Config,
  { io }: Pick<Invocation, 'io'>,
): Promise<string | undefined> {
  const answer = await askGateway(config, io.fetch, '/healthz');
  const theirs = answer?.body?.home;
  if (typeof theirs !== 'string') return undefined;
  const { home } = io.environment;
  // A home that does not exist yet is not theirs.
  if (homeMark(home) === theirs) return undefined;
  return `The gateway at ${reachableUrl(config.listen)} does not use ${home}, the home of this shell. Set HOPGATE_HOME to the gateway's home and run this as its user (see "Commands on a machine with the service" in the manual), or give HOPGATE_ADMIN_KEY.`;
}

/** The most that are asked for. */
const MAX = 500;

/** Newest first; none where no gateway answers. @param filter conditions as a command line gives them */
export async function runningExchanges(
  config: Config,
  fetch: typeof globalThis.fetch,
  filter: Readonly<Record<string, string>> = {},
): Promise<readonly SampleRow[]> {
  const query = new URLSearchParams({ ...filter, status: 'open', limit: String(MAX) });
  const answer = await askGateway(config, fetch, `/ui/api/samples?${query}`);
  const rows = answer?.status === 200 ? answer.body?.rows : undefined;
  return Array.isArray(rows) ? (rows as readonly Json[]).filter(isRow) : [];
}

const isRow = (value: Json): value is Json & SampleRow =>
  isObject(value) &&
  ['id', 'model', 'target', 'state', 'error', 'notes', 'made_by'].every(
    (name) => typeof value[name] === 'string',
  ) &&
  typeof value.time === 'number' &&
  typeof value.bytes === 'number';

/** Empty if no gateway answers at the configuration's address. */
export async function restingTargets(
  config: Config,
  fetch: typeof globalThis.fetch,
): Promise<readonly RestingTarget[]> {
  const answer = await askGateway(config, fetch, '/health/targets');
  return answer?.status === 200 ? restsIn(answer.body) : [];
}

/** @param answer that of `GET /health/targets` */
export function restsIn(answer: Json | undefined): readonly RestingTarget[] {
  if (!isObject(answer)) return [];
  const rests = objects(answer.rests);
  const lessons = objects(answer.learnt);
  return objects(answer.targets).flatMap(({ target, state }) => {
    if (typeof target !== 'string') return [];
    const own = rests.filter(
      ({ provider, model }) =>
        target === `${provider}/${model}` ||
        (model === undefined && target.startsWith(`${provider}/`)),
    );
    const facts = lessons.find((one) => one.target === target)?.facts;
    const learnt = Array.isArray(facts)
      ? facts.flatMap((fact) => (typeof fact === 'string' ? [printableLine(fact, 200)] : []))
      : [];
    if (own.length === 0 && learnt.length === 0) return [];
    return [
      {
        target,
        passedOver: state === 'resting',
        rests: own.map((rest) => words(rest, Date.now())),
        ...(learnt.length > 0 && { learnt }),
      },
    ];
  });
}

function words(
  { model, key, reason, status, until }: Readonly<Record<string, Json | undefined>>,
  now: number,
) {
  const what = [key ?? 'all keys', model === undefined ? ', every model' : ''].join('');
  const why = status === 0 ? reason : `${reason}, status ${status}`;
  const isOver = typeof until === 'string' && Date.parse(until) <= now;
  const when = isOver ? 'until the next request has tried it' : `until ${until}`;
  return printableLine(`${what} (${why}) ${when}`, 200);
}
