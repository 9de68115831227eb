/** Which kind of error a vendor's own words speak of, however the error was wrapped. */

import type { ErrorKind } from '../../conversation/errors.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { VENDORS } from '../index.ts';
import type { Codes, WordGroup } from '../vendor.ts';
import { SHARED_WORDS } from './usual-words.ts';

export interface ErrorTexts {
  readonly code?: string | undefined;
  readonly type?: string | undefined;
  readonly message?: string | undefined;
}

interface KindOfWords {
  readonly kind: ErrorKind;
  readonly retryable?: boolean;
  /** Statuses at which these words decide; 0: inside a stream. Left out: at every status. */
  readonly at?: (status: number) => boolean;
  readonly words: readonly RegExp[];
}

const ALL_WORDS = [...VENDORS.flatMap(({ words = [] }) => words), ...SHARED_WORDS];

const said = (group: WordGroup) => ALL_WORDS.flatMap((words) => words[group] ?? []);
const refused = (status: number) => status === 401 || status === 403;
const limited = (status: number) => status === 429;
const failed = (status: number) => status >= 500;

/** In the order in which they are asked: what is about this request alone stands before what is about an account. */
const WORDS_OF_KINDS: readonly KindOfWords[] = [
  // One request uses more tokens than a minute allows: it can never succeed there, and says nothing of other requests.
  {
    kind: 'too_large',
    retryable: false,
    at: (s) => s === 429 || s === 413,
    words: said('too_large'),
  },
  {
    kind: 'content_filter',
    at: (s) => s !== 401 && !limited(s) && !failed(s),
    words: said('content_filter'),
  },
  {
    kind: 'context_overflow',
    retryable: false,
    at: (s) => !refused(s) && !limited(s),
    words: said('context_overflow'),
  },
  // The client's own request names what its sender may not use: no fault of the key.
  {
    kind: 'invalid_request',
    retryable: false,
    at: (s) => refused(s) || s === 402,
    words: said('invalid_request'),
  },
  { kind: 'authentication', at: (s) => s !== 429 && !failed(s), words: said('authentication') },
  // The model and not the account is refused: other models of the same key work.
  { kind: 'not_found', at: (s) => !limited(s), words: said('not_found') },
  // The place that the gateway asks from, or that the account belongs to.
  { kind: 'permission', at: (s) => !limited(s) && !failed(s), words: said('permission') },
  { kind: 'quota', retryable: false, words: said('quota') },
  { kind: 'billing', retryable: false, words: said('billing') },
  // Names of an overload that some vendors send with a 429.
  { kind: 'overloaded', retryable: true, at: (s) => !refused(s), words: said('capacity') },
  { kind: 'overloaded', at: (s) => failed(s) || s === 0 || s === 400, words: said('overloaded') },
  {
    kind: 'rate_limit',
    at: (s) => s !== 401 && !failed(s) && s !== 413,
    words: said('rate_limit'),
  },
];

/** Vendors' codes that count without a profile. */
export const CODES: Codes = Object.assign({}, ...VENDORS.map(({ codes }) => codes));
/** The same in the member `base_resp`. */
export const BASE_RESP_CODES: Codes = Object.assign(
  {},
  ...VENDORS.map(({ baseRespCodes }) => baseRespCodes),
);

// What an error is about stands at its beginning; behind it stands what it was about, as the client sent it.
const SEARCHED_CHARS = 2000;

/**
 * The kind that the words name; undefined: they name none. Texts between quotation marks are left out: vendors quote
 * the client's own words there.
 * @param status 0 inside a stream
 */
export function kindOfWords(
  status: number,
  { code = '', type = '', message = '' }: ErrorTexts,
): Pick<KindOfWords, 'kind' | 'retryable'> | undefined {
  const own = unquoted(message.slice(0, SEARCHED_CHARS));
  const words = [code.slice(0, 200), type.slice(0, 200), own];
  return WORDS_OF_KINDS.find(
    (kind) =>
      (kind.at === undefined || kind.at(status)) &&
      kind.words.some((said) => words.some((text) => text !== '' && said.test(text))),
  );
}

/**
 * The words of the message from which the kind of an error is known; undefined: its code says it, or its status alone.
 */
export function decidingWords(error: {
  readonly kind: ErrorKind;
  readonly code?: string | undefined;
  readonly message: string;
}): string | undefined {
  const { kind, code = '', message } = error;
  if (memberOf(CODES, code)?.kind === kind) return undefined;
  const own = unquoted(message.slice(0, SEARCHED_CHARS));
  const patterns = WORDS_OF_KINDS.filter((one) => one.kind === kind).flatMap(({ words }) => words);
  if (patterns.some((pattern) => code !== '' && pattern.test(code))) return undefined;
  return patterns.map((pattern) => pattern.exec(own)?.[0]).find((found) => found !== undefined);
}

/** Is it the model that is not found, and not a file, a response or a path? */
export const saysModelIsGone = (error: ErrorTexts): boolean =>
  memberOf(CODES, error.code ?? '')?.kind === 'not_found' ||
  kindOfWords(404, error)?.kind === 'not_found';

const CLOSING: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '“': '”',
  '「': '」',
};
const OPENS_NONE = /[\p{L}\p{N}\\]/u;
const WORD = /[\p{L}\p{N}]/u;
// A vendor's error inside another one: what stands behind these names is the vendor's.
const OF_A_VENDOR =
  /(?:message|msg|code|type|status|reason|detail|error|raw)\\{0,4}["'] {0,4}: {0,4}\\{0,4}$/;
const MAX_NAME = 24;

/** The text with nothing between its quotation marks, except for a vendor's own members of an error that is quoted whole. */
function unquoted(text: string): string {
  let out = '';
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const close = CLOSING[text[at]!];
    // An apostrophe is none.
    if (close === undefined || OPENS_NONE.test(text[at - 1] ?? ' ')) continue;
    let end = at + 1;
    while (end < text.length && !(text[end] === close && !WORD.test(text[end + 1] ?? ' '))) {
      end += text[end] === '\\' ? 2 : 1;
    }
    // Between backticks stand names: of a field, of a model.
    if (close === '`' && !text.slice(at, end).includes(' ')) {
      at = end;
      continue;
    }
    const before = text.slice(Math.max(0, at - MAX_NAME), at);
    const whole = end >= text.length;
    if (OF_A_VENDOR.test(before)) continue;
    // The name of a member says where its value comes from.
    const named = /^["'] {0,4}:/.test(text.slice(end, end + 6)) && end - at < MAX_NAME;
    if (named || (whole && close === "'")) {
      at = named ? end : at;
      continue;
    }
    out += text.slice(from, at + 1);
    from = Math.min(end, text.length);
    at = end;
  }
  return out + text.slice(from);
}
