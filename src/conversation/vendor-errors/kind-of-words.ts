/** Which kind of error a vendor's own words speak of, however the error was wrapped. */

import { type KindOfWords, WORDS_OF_KINDS } from './wordings.ts';

/** The texts of a vendor's error. */
export interface ErrorTexts {
  readonly code?: string | undefined;
  readonly type?: string | undefined;
  readonly message?: string | undefined;
}

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
    ({ at, wordings }) =>
      (at === undefined || at(status)) &&
      wordings.some((wording) => words.some((text) => text !== '' && wording.words.test(text))),
  );
}

/** Is it the model that is not found, and not a file, a response or a path? */
export const saysModelIsGone = (error: ErrorTexts): boolean =>
  error.code === ZHIPU_NO_MODEL || kindOfWords(404, error)?.kind === 'not_found';

const ZHIPU_NO_MODEL = '1211';

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
const VENDORS =
  /(?:message|msg|code|type|status|reason|detail|error|raw)\\{0,4}["'] {0,4}: {0,4}\\{0,4}$/;
const LONGEST_NAME = 24;

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
    const before = text.slice(Math.max(0, at - LONGEST_NAME), at);
    const whole = end >= text.length;
    if (VENDORS.test(before)) continue;
    // The name of a member says where its value comes from.
    const named = /^["'] {0,4}:/.test(text.slice(end, end + 6)) && end - at < LONGEST_NAME;
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
