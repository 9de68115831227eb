/** Edits of a request before it is replayed, checked in words before anything is sent. */

import type { Codec } from '../../codecs/codec.ts';
import { asGatewayError, invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { dotted, partsOf, pointerOf, valueAt, withValueAt } from '../../lib/json/pointer.ts';
import type { RequestEdit } from './types.ts';

interface Rule {
  readonly words: string;
  readonly fits: (value: Json) => boolean;
}

const number = (least: number, most: number): Rule => ({
  words: `a number from ${least} to ${most}`,
  fits: (value) => typeof value === 'number' && value >= least && value <= most,
});
const whole = (least: number): Rule => ({
  words: least > 0 ? 'a whole number of at least 1' : 'a whole number',
  fits: (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= least,
});
const TEXT: Rule = {
  words: 'a name',
  fits: (value) => typeof value === 'string' && value.trim() !== '',
};
const SWITCH: Rule = { words: 'true or false', fits: (value) => typeof value === 'boolean' };

/** What all protocols take; names are compared without `_` and case, since Gemini writes them otherwise. */
const RULES: Readonly<Record<string, Rule>> = {
  model: TEXT,
  temperature: number(0, 2),
  topp: number(0, 1),
  topk: whole(0),
  maxtokens: whole(1),
  maxcompletiontokens: whole(1),
  maxoutputtokens: whole(1),
  presencepenalty: number(-2, 2),
  frequencypenalty: number(-2, 2),
  seed: whole(Number.MIN_SAFE_INTEGER),
  n: whole(1),
  stream: SWITCH,
};

const ruleOf = (name: string): Rule | undefined => {
  const key = name.replaceAll('_', '').toLowerCase();
  return Object.hasOwn(RULES, key) ? RULES[key] : undefined;
};

/** `messages[3].content=…` as an edit; a value that is valid JSON is read as JSON. Undefined: it is none. */
export function readEdit(written: string): RequestEdit | undefined {
  const equals = written.indexOf('=');
  if (equals < 1) return undefined;
  const path = written
    .slice(0, equals)
    .trim()
    .split(/[.[\]]+/)
    .filter((part) => part !== '');
  const text = written.slice(equals + 1);
  return { at: pointerOf(path), value: tryParse(text) ?? text };
}

/** The body with all edits. @throws GatewayError invalid_request for a place that is not there, or a value that does not fit */
export function withEdits(body: JsonObject, edits: readonly RequestEdit[]): JsonObject {
  return edits.reduce((changed, { at, value }) => {
    checkEdit(changed, at, value);
    return withValueAt(changed, partsOf(at), value) as JsonObject;
  }, body);
}

/**
 * Checks that the edited body is still a request.
 * @throws GatewayError invalid_request
 */
export function checkEdited(
  body: JsonObject,
  edits: readonly RequestEdit[],
  protocol: Pick<Codec, 'decodeRequest'>,
): void {
  const edited = withEdits(body, edits);
  try {
    protocol.decodeRequest(edited);
  } catch (thrown) {
    try {
      protocol.decodeRequest(body);
    } catch {
      // The recorded request was broken before; the gateway may repair both.
      return;
    }
    throw invalid(`The edited request cannot be sent: ${asGatewayError(thrown).message}`, 'edits');
  }
}

function checkEdit(body: JsonObject, at: string, value: Json): void {
  const refuse = (words: string) => invalid(words.slice(0, 500), 'edits');
  const path = partsOf(at);
  const name = path.at(-1);
  if (name === undefined || !at.startsWith('/')) {
    throw refuse(`"${at}" is not a place in the request.`);
  }
  const place = dotted(at);
  const before = valueAt(body, at);
  const parent = path.length === 1 ? body : valueAt(body, at.slice(0, at.lastIndexOf('/')));
  const inObject = isObject(parent);
  const rule = inObject && typeof before !== 'object' ? ruleOf(name) : undefined;
  if (value === null) {
    if (before === undefined) throw refuse(`The request has no ${place} to remove.`);
    if (name === 'model' || !inObject) throw refuse(`${place} cannot be left out.`);
    return;
  }
  if (rule !== undefined) {
    if (!rule.fits(value)) {
      throw refuse(`${place} must be ${rule.words}, not ${JSON.stringify(value)}.`);
    }
    return;
  }
  // A member that no rule knows may be new at the top, where vendors have parameters of their own.
  if (before === undefined && path.length > 1) throw refuse(`The request has no ${place}.`);
  if (before !== undefined && kindOf(before) !== kindOf(value)) {
    throw refuse(`${place} is ${kindOf(before)}; ${kindOf(value)} cannot take its place.`);
  }
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return (
    { string: 'a text', number: 'a number', boolean: 'true or false' }[typeof value as string] ??
    'an object'
  );
}
