/** Highlights code blocks of the manual: comments, strings, keys and words of a few languages, as HTML spans. */

import { escapeHtml } from './escape.ts';

/** Every token begins where the last one ended, so that a pass over the code takes linear time. */
const TOKEN = /\s+|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|#[^\n]*|\/\/[^\n]*|[\p{L}\p{N}_$.-]+|./gu;

interface Language {
  /** What begins a comment. */
  readonly comment: '#' | '//' | '';
  /** A word or string before a colon is a key. */
  readonly keys?: boolean;
  readonly words?: ReadonlySet<string>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const SCRIPT: Language = {
  comment: '//',
  words: words('import from const let await async for of new return if else function export'),
};
const LANGUAGES: Readonly<Record<string, Language>> = {
  yaml: { comment: '#', keys: true, words: words('true false null') },
  json: { comment: '', keys: true, words: words('true false null') },
  toml: { comment: '#', words: words('true false') },
  sh: { comment: '#', words: words('curl hopgate npm docker export sudo') },
  ini: { comment: '#' },
  nginx: { comment: '#', words: words('server location proxy_pass upstream listen') },
  dockerfile: { comment: '#', words: words('FROM RUN COPY ENV EXPOSE USER VOLUME ENTRYPOINT CMD') },
  python: {
    comment: '#',
    words: words('import from def for in with as return if else print None True False'),
  },
  ts: SCRIPT,
  js: SCRIPT,
};

/** Escaped HTML; code of an unknown language is only escaped. */
export function highlight(code: string, name: string): string {
  const language = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name]! : undefined;
  if (language === undefined) return escapeHtml(code);
  let out = '';
  for (const match of code.matchAll(TOKEN)) {
    const [token] = match;
    const kind = kindOf(token, language, code[match.index - 1], code[match.index + token.length]);
    // `#` inside a word, as in a URL, begins no comment: what follows it is read as code.
    out += kind === '' ? escapeHtml(token) : `<span class="${kind}">${escapeHtml(token)}</span>`;
  }
  return out;
}

/** The class of a token: `c` comment, `k` key or keyword, `s` string, `n` number; '' for all others. */
function kindOf(
  token: string,
  { comment, keys, words: known }: Language,
  before: string | undefined,
  after: string | undefined,
): string {
  if (comment !== '' && token.startsWith(comment)) {
    return before === undefined || /\s/.test(before) ? 'c' : '';
  }
  if (keys === true && after === ':' && /^["'\p{L}_$]/u.test(token)) return 'k';
  if (/^["']/.test(token) && token.length > 1) return 's';
  if (/^\d[\d._]*$/.test(token)) return 'n';
  return known?.has(token) === true ? 'k' : '';
}
