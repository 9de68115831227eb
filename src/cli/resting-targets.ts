/** Asks a running gateway of this configuration which targets rest. */

import type { Config } from '../config/config.ts';
import { readUpTo } from '../lib/http/read-up-to.ts';
import { isObject, type Json, tryParse } from '../lib/json/json.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import type { RestingTarget } from '../routing/index.ts';
import { fetchOwn, reachableUrl } from './served-models.ts';

const ASK_MS = 1000;
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Empty if no gateway answers at the configuration's address. */
export async function restingTargets(
  config: Config,
  fetch: typeof globalThis.fetch,
): Promise<readonly RestingTarget[]> {
  const key = config.auth.keys.map((one) => one.key.reveal()).find((text) => !HASHED.test(text));
  try {
    const answer = await fetchOwn(config.listen, fetch)(
      `${reachableUrl(config.listen)}/health/targets`,
      {
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(ASK_MS),
        redirect: 'error',
      },
    );
    if (!answer.ok) return [];
    const { bytes } = await readUpTo(answer.body, ANSWER_BYTES);
    return restsIn(tryParse(new TextDecoder().decode(bytes)));
  } catch {
    return [];
  }
}

const HASHED = /^sha256:/i;

/** @param answer that of `GET /health/targets` */
function restsIn(answer: Json | undefined): readonly RestingTarget[] {
  if (!isObject(answer)) return [];
  const rests = objectsOf(answer.rests);
  return objectsOf(answer.targets).flatMap(({ target, state }) => {
    if (typeof target !== 'string') return [];
    const own = rests.filter(
      ({ provider, model }) =>
        target === `${provider}/${model}` ||
        (model === undefined && target.startsWith(`${provider}/`)),
    );
    if (own.length === 0) return [];
    return [{ target, passedOver: state === 'resting', rests: own.map(words) }];
  });
}

const objectsOf = (value: Json | undefined) =>
  (Array.isArray(value) ? (value as readonly Json[]) : []).filter(isObject);

function words({ model, key, reason, status, until }: Readonly<Record<string, Json | undefined>>) {
  const what = [key ?? 'all keys', model === undefined ? ', every model' : ''].join('');
  const why = status === 0 ? reason : `${reason}, status ${status}`;
  return printableLine(`${what} (${why}) until ${until}`, 200);
}
