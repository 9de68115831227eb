/** `x-codex-turn-state`: by it a vendor finds the place of a turn again. A header by POST, a member of `client_metadata` on a WebSocket. */

import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';

export const TURN_STATE = 'x-codex-turn-state';

/** Longer ones are no header. */
const MAX_CHARS = 8192;

/** The state in `client_metadata` (as text), and that text without it; undefined: there is none. */
export function takeTurnState(
  metadata: string,
): { readonly value: string; readonly rest: string } | undefined {
  if (!metadata.includes(TURN_STATE)) return undefined;
  const all = tryParse(metadata);
  if (!isObject(all)) return undefined;
  const { [TURN_STATE]: value, ...rest } = all;
  return isState(value) ? { value, rest: JSON.stringify(rest) } : undefined;
}

/** `client_metadata` (as text, if there is any) with this state. */
export function putTurnState(metadata: string | undefined, value: string): string {
  const all = metadata === undefined ? undefined : tryParse(metadata);
  return JSON.stringify({ ...(isObject(all) ? all : {}), [TURN_STATE]: value });
}

/** The event that tells a client of a WebSocket the state, as a header of the answer does by POST. */
export const turnStateEvent = (value: string): string =>
  JSON.stringify({ type: 'response.metadata', headers: { [TURN_STATE]: value } });

/** The state that an event tells; undefined: none. */
export function turnStateIn(data: string): string | undefined {
  if (!data.startsWith('{"type":"response.metadata"') || !data.includes(TURN_STATE))
    return undefined;
  const event = tryParse(data);
  const headers: JsonObject | undefined =
    isObject(event) && isObject(event.headers) ? event.headers : undefined;
  const value = headers?.[TURN_STATE];
  return isState(value) ? value : undefined;
}

const isState = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_CHARS && /^[\x21-\x7e]+$/.test(value);

/** How many states of a connection are remembered: those of its last turns. */
const MAX_STATES = 64;

/** Which target gave the states of one connection. */
export class TurnStates {
  readonly #targets = new NewestMap<string, string>(MAX_STATES);

  learn(value: string, target: string): void {
    this.#targets.set(value, target);
  }

  targetOf(value: string): string | undefined {
    return this.#targets.get(value);
  }
}
