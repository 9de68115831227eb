/** Credentials: the one table of what looks like one, and masks of equal length for logs and samples. */

/** Headers whose whole value is a credential, in lower case. */
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'api-key',
  'apikey',
  'x-goog-api-key',
  'x-auth-token',
  'x-auth-key',
  'x-access-token',
  'x-amz-security-token',
  'x-subscription-token',
  'cf-aig-authorization',
  'cf-access-client-secret',
  'cookie',
  'set-cookie',
]);

/**
 * One kind of credential. `marker` is the literal that every one of them begins with, two characters
 * or more; `pattern` is tried where it stands. Group 1, where there is one, is the part to mask; else
 * all of the match is.
 */
interface Kind {
  readonly marker: string;
  readonly pattern: RegExp;
  /** The match may stand in the middle of a word (it brings its own left border). */
  readonly anywhere?: boolean;
}

// A digit or a capital within reach tells a key from words joined by dashes ("sk-fading-circle").
const KEYLIKE = '(?:(?=[a-z_-]*[0-9A-Z])[A-Za-z0-9_-]{12,}|[A-Za-z0-9_-]{20,})';

const prefixed = (marker: string, least: number): Kind => ({
  marker,
  pattern: new RegExp(`${marker}[A-Za-z0-9_-]{${least},}`, 'y'),
});

const TOKEN_AFTER_SCHEME = /earer\s+([A-Za-z0-9._~+/=-]{8,})/iy;
const NAMED_VALUE =
  /(?:API_?KEY|api_?key|apiKey|api-key|ACCESS_?TOKEN|access_token|AUTH_TOKEN|refresh_token|CLIENT_SECRET|client_secret)\\?["']?\s*[=:]\s*\\?["']?(?=[A-Za-z_+/.-]*[0-9])([A-Za-z0-9_+/=.-]{16,})/y;
const named = (marker: string): Kind => ({ marker, pattern: NAMED_VALUE, anywhere: true });
const QUERY = /(?:key|token)=([A-Za-z0-9._~%+/-]{8,})/y;

/** 32 hex digits, a dot, 16 characters. Found by the dot, since hex digits are everywhere. */
const ZHIPU: Kind = { marker: '.', pattern: /[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9])/y };

const KINDS: readonly Kind[] = [
  // OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek, Moonshot, DashScope and many more.
  { marker: 'sk-', pattern: new RegExp(`sk-${KEYLIKE}`, 'y') },
  { marker: 'csk-', pattern: new RegExp(`csk-${KEYLIKE}`, 'y') }, // Cerebras
  { marker: 'sk_', pattern: /sk_(?:live_|test_)?[A-Za-z0-9]{24,}/y },
  prefixed('AIza', 30), // Google
  prefixed('ya29.', 20), // Google OAuth
  prefixed('gsk_', 20), // Groq
  prefixed('xai-', 20),
  prefixed('hf_', 20),
  prefixed('pplx-', 20),
  prefixed('nvapi-', 20),
  prefixed('tgp_v1_', 20), // Together
  prefixed('r8_', 30), // Replicate
  prefixed('tvly-', 16), // Tavily
  prefixed('jina_', 30),
  prefixed('fc-', 32), // Firecrawl
  prefixed('BSA', 24), // Brave Search
  prefixed('ghp_', 30),
  prefixed('gho_', 30),
  prefixed('ghs_', 30),
  prefixed('github_pat_', 30),
  prefixed('glpat-', 20),
  prefixed('npm_', 36),
  { marker: 'xox', pattern: /xox[abeprs]-[A-Za-z0-9-]{10,}/y },
  { marker: 'AKIA', pattern: /AKIA[0-9A-Z]{16}(?![0-9A-Za-z])/y },
  // JSON web tokens: header and payload are JSON objects, so both begin with eyJ.
  { marker: 'eyJ', pattern: /eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/y },
  { marker: '-----BEGIN ', pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END/y },
  { marker: 'earer', pattern: TOKEN_AFTER_SCHEME, anywhere: true },
  { marker: 'EARER', pattern: TOKEN_AFTER_SCHEME, anywhere: true },
  // user:password@ of a URL.
  { marker: '://', pattern: /:\/\/[^\s/@:"\\]*:([^\s/@"\\]+)@/y, anywhere: true },
  // Query parameters: the mark before the name is checked as the left border of a word is.
  { marker: 'key=', pattern: QUERY },
  { marker: 'token=', pattern: QUERY },
  named('API'),
  named('api'),
  named('ACCESS'),
  named('access_token'),
  named('AUTH_TOKEN'),
  named('refresh_token'),
  named('CLIENT_SECRET'),
  named('client_secret'),
];

/** Is the whole value of this header a credential? The name in any case. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.has(name.toLowerCase());
}

const WORD = /[A-Za-z0-9_+/-]/;
const ESCAPE_BEFORE = /\\(?:[nrtbf]|u[0-9a-fA-F]{4})$/;

/** Does a word begin at `at`? A JSON escape (`\n`, `\u0026`) before it is no part of the word. */
function wordStarts(text: string, at: number): boolean {
  if (at === 0 || !WORD.test(text[at - 1]!)) return true;
  return ESCAPE_BEFORE.test(text.slice(Math.max(0, at - 6), at));
}

type Span = readonly [start: number, end: number];

/** Kinds by the first two characters of their markers: one table look-up for each character of a text. */
const LISTS: Kind[][] = [[]];
const SLOTS = new Uint8Array(128 * 128);
for (const kind of KINDS) {
  const pair = (kind.marker.charCodeAt(0) << 7) | kind.marker.charCodeAt(1);
  SLOTS[pair] ||= LISTS.push([]) - 1;
  LISTS[SLOTS[pair]!]!.push(kind);
}

const DOT = 0x2e;
const isHexDigit = (code: number) =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x66);

/** One pass over the text: a search for each marker by itself costs ten times as much. */
function find(text: string): Span[] {
  const spans: Span[] = [];
  let last = text.charCodeAt(0);
  for (let i = 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const slot = (last | code) < 128 ? SLOTS[(last << 7) | code]! : 0;
    if (slot !== 0) {
      for (const kind of LISTS[slot]!) {
        if (text.startsWith(kind.marker, i - 1)) match(text, i - 1, kind, spans);
      }
    } else if (code === DOT && isHexDigit(last) && i >= 32) match(text, i - 32, ZHIPU, spans);
    last = code;
  }
  return spans;
}

function match(text: string, start: number, { pattern, anywhere }: Kind, spans: Span[]): void {
  // The border first: "sk-sk-sk-…" must not run the pattern over the rest from every place.
  if (anywhere !== true && !wordStarts(text, start)) return;
  pattern.lastIndex = start;
  const found = pattern.exec(text);
  if (found === null) return;
  const [whole, secret = whole] = found;
  const from = start + whole.lastIndexOf(secret);
  spans.push([from, from + secret.length]);
}

export interface Redacted {
  /** As long as the input, character by character; the very input when nothing was found. */
  readonly text: string;
  /** How many credentials were masked. */
  readonly count: number;
}

/**
 * Masks whatever looks like a credential with asterisks, keeping the length. Works on any text: JSON
 * (which stays the same JSON), SSE, log lines, URLs. Masking twice changes nothing more.
 */
export function redactText(text: string): Redacted {
  const spans = find(text);
  if (spans.length === 0) return { text, count: 0 };
  spans.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let out = '';
  let done = 0;
  let count = 0;
  for (const [start, end] of spans) {
    if (end <= done) continue;
    if (start >= done) count++;
    const begin = Math.max(start, done);
    out += text.slice(done, begin) + '*'.repeat(end - begin);
    done = end;
  }
  return { text: out + text.slice(done), count };
}

/**
 * Headers fit for a log or a sample: values of secret headers masked whole (the scheme word of an
 * authorization stays), other values as {@link redactText} does.
 */
export function redactHeaders(headers: Iterable<readonly [string, string]>): {
  readonly headers: readonly (readonly [string, string])[];
  readonly count: number;
} {
  let count = 0;
  const out: (readonly [string, string])[] = [];
  for (const [name, value] of headers) {
    if (isSecretHeader(name)) {
      const scheme = /^(?:Bearer|Basic|Token)\s+/i.exec(value)?.[0] ?? '';
      out.push([name, scheme + '*'.repeat(value.length - scheme.length)]);
      count++;
    } else {
      const redacted = redactText(value);
      out.push([name, redacted.text]);
      count += redacted.count;
    }
  }
  return { headers: out, count };
}
