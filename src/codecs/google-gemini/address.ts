/** The parts of a Gemini request outside its body: model and method in the path, form and key in the query. */

import { ByteList, firstBytes, piecesFrom, wholeBytes } from '../../lib/bytes/byte-list.ts';
import { asBuffer, needles } from '../../lib/bytes/bytes.ts';
import { nextFilled, withFirstMembers, withoutMembers } from '../../lib/json/body-members.ts';
import { stringEnd } from '../../lib/json/scan-values.ts';
import { percentDecoded } from '../../lib/text/printable-text.ts';
import type { EmbedMethod } from '../codec.ts';

export type Method = 'generateContent' | 'streamGenerateContent' | 'countTokens' | EmbedMethod;

const EMBED_METHODS: ReadonlySet<string> = new Set<EmbedMethod>([
  'batchEmbedContents',
  'embedContent',
  'predict',
]);
const METHODS: ReadonlySet<string> = new Set<string>([
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  ...EMBED_METHODS,
]);

export const isEmbedMethod = (method: Method): method is EmbedMethod => EMBED_METHODS.has(method);

export interface Address {
  /** As in the path, without `models/`: `gemini-3.8-flash`, `provider/name`. */
  readonly model: string;
  /** Undefined: a method that is not served, or none. */
  readonly method: Method | undefined;
  /** The method as it was written; '' if there was none. */
  readonly asked: string;
}

// The last `models/` before the method; a model's name may hold slashes itself (`provider/name`).
const MODELS = '/models/';

/**
 * The model and the method of a path: `/v1beta/models/M:generateContent`, or Vertex' form
 * `/v1/projects/P/locations/L/publishers/google/models/M:generateContent`. Undefined: the path names no model.
 */
export function addressOf(path: string): Address | undefined {
  const at = path.indexOf(MODELS);
  if (at < 0) return undefined;
  const rest = percentDecoded(path.slice(at + MODELS.length));
  const colon = rest.lastIndexOf(':');
  const asked = colon < 0 ? '' : rest.slice(colon + 1);
  const named = colon >= 0 && /^[a-zA-Z]+$/.test(asked);
  const model = named ? rest.slice(0, colon) : rest;
  if (model === '') return undefined;
  const method = named && METHODS.has(asked) ? (asked as Method) : undefined;
  return { model: bareModel(model), method, asked: named ? asked : '' };
}

/** The name of a model without its collection: `models/gemini-3.8-flash` is `gemini-3.8-flash`. */
export function bareModel(name: string): string {
  if (name.startsWith('models/')) return name.slice('models/'.length) || name;
  const at = /^(?:projects|publishers)\//.test(name) ? name.indexOf(MODELS) : -1;
  return at < 0 ? name : name.slice(at + MODELS.length) || name;
}

/** What a query says about this hop, and the rest of it, which may go to an upstream. */
export interface Query {
  /** `alt=sse`; otherwise a stream is a JSON array. */
  readonly sse: boolean;
  /** `?key=…`: the client's key here. */
  readonly key: string | undefined;
  /** '' or `?…`: without the form, and without anything that is a credential. */
  readonly rest: string;
}

/** Parameters that Google reads as credentials. */
const CREDENTIALS: ReadonlySet<string> = new Set(['key', 'access_token', 'oauth_token']);
/** The form of the answer, which this gateway chooses for each hop. */
const FORM: ReadonlySet<string> = new Set(['alt', '$alt']);

/** @param search `''` or `?…` */
export function queryOf(search: string): Query {
  if (search === '' || search === '?') return { sse: false, key: undefined, rest: '' };
  if (search === '?alt=sse') return { sse: true, key: undefined, rest: '' };
  const query = new URLSearchParams(search);
  const sse = (query.get('alt') ?? query.get('$alt')) === 'sse';
  const key = [...CREDENTIALS].map((name) => query.get(name)).find(Boolean) ?? undefined;
  for (const name of [...CREDENTIALS, ...FORM]) query.delete(name);
  const rest = query.toString();
  return { sse, key, rest: rest === '' ? '' : `?${rest}` };
}

const OWN: ReadonlySet<string> = new Set(['model', 'stream']);
const [MODEL, STREAM] = needles('"model"', '"stream"') as [Buffer, Buffer];
const COLON = 0x3a;

/**
 * A body that says everything: with the `model` and `stream` of its address as its first members, in place of
 * members of these names. A body of this protocol has this form everywhere inside the gateway, so routing,
 * samples and replays read it like any other. A body that is no object stays as it is, for the decoder to refuse.
 */
export function withAddress(given: Uint8Array, model: string, stream: boolean): Uint8Array {
  const buffer = asBuffer(given);
  const bare = mayName(buffer, MODEL) || mayName(buffer, STREAM) ? withoutAddress(given) : given;
  const body = wholeBytes(bare);
  const said = withFirstMembers(body, `"model":${JSON.stringify(model)},"stream":${stream}`);
  if (said !== body) addressed.add(said);
  return said;
}

/** Bodies of {@link withAddress}: `model` and `stream` stand in them once. To look for others is two passes through a body. */
const addressed = new WeakSet<Uint8Array>();

/** May a member have this name? The role `"model"` stands in most bodies, with no colon behind it. */
function mayName(body: Buffer, key: Buffer): boolean {
  for (let at = body.indexOf(key); at >= 0; at = body.indexOf(key, at + key.length)) {
    if (body[nextFilled(body, at + key.length)] === COLON) return true;
  }
  return false;
}

const BRACE = Buffer.from('{');
/** Longer than any; a name has at most 512 characters. */
const MAX_PER_ADDRESS = 8192;
/** A list of pieces costs more than the copy of a smaller body. */
const LARGE = 64 * 1024;

/** The body as the API takes it: without `model` and `stream`. */
export function withoutAddress(body: Uint8Array | ByteList): Uint8Array | ByteList {
  if (body instanceof ByteList) {
    // Written here, so each of these members is there once.
    const from = behindAddress(asBuffer(firstBytes(body, MAX_PER_ADDRESS)));
    return from < 0
      ? withoutAddress(wholeBytes(body))
      : new ByteList([BRACE, ...piecesFrom(body, from)]);
  }
  const buffer = asBuffer(body);
  const from = behindAddress(buffer);
  if (from < 0) return withoutMembers(body, OWN);
  const rest = buffer.subarray(from);
  // Of an object without members of its own, `stream` is the last one.
  const once = addressed.has(body) && !startsAt(rest, STREAM, 0);
  if (!once && (mayName(rest, MODEL) || mayName(rest, STREAM))) return withoutMembers(body, OWN);
  const bare = new ByteList([BRACE, rest]);
  return rest.length < LARGE ? wholeBytes(bare) : bare;
}

const [HEAD] = needles('{"model":"') as [Buffer];
/** What follows the model's name; the encoder says nothing about a stream where none was asked for. */
const BEHIND_MODEL = needles(',"stream":false,', ',"stream":true,', ',');

/** Where the members begin behind an address as {@link withAddress} and the encoder write it; -1: it stands elsewhere. */
function behindAddress(body: Buffer): number {
  if (!startsAt(body, HEAD, 0)) return -1;
  const end = stringEnd(body, HEAD.length - 1);
  if (end < 0) return -1;
  for (const form of BEHIND_MODEL) {
    if (startsAt(body, form, end)) return end + form.length;
  }
  return -1;
}

const startsAt = (body: Buffer, part: Buffer, at: number): boolean =>
  body.length >= at + part.length && body.compare(part, 0, part.length, at, at + part.length) === 0;
