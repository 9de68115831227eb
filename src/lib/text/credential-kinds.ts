/** Forms of credentials: one table, each kind found by a scan that reads no character twice. */

/** The offsets of a credential. */
export type Span = readonly [start: number, end: number];

/**
 * One kind of credential. `marker` is the literal that each begins with, two characters or more; `find` is called
 * where it occurs and returns what to mask. What `find` reads for one marker it does not read again for the next,
 * so every text takes linear time. No span holds a quotation mark or a line break of a surrounding JSON text, nor
 * half an escape.
 */
export interface Kind {
  /** Each place with its first two characters is looked at: rare ones cost least. */
  readonly marker: string;
  readonly find: (text: string, at: number) => Span | undefined;
  /** It may occur in the middle of a word: it checks its own left border. */
  readonly anywhere?: boolean;
}

// Classes of characters, a bit each.
const CAPITAL = 1;
const SMALL = 2;
const DIGIT = 4;
const DASH = 8;
const UNDERSCORE = 16;
const DOT_SIGN = 32;
const PLUS_SLASH = 64;
const EQUALS = 128;
const TILDE = 256;
const PERCENT = 512;
const HEX_LETTER = 1024;
const ALNUM = CAPITAL | SMALL | DIGIT;
const HEX = DIGIT | HEX_LETTER;
const TOKEN = ALNUM | DASH | UNDERSCORE;
const NAMED = TOKEN | DOT_SIGN | PLUS_SLASH | EQUALS | TILDE;
const QUERY = TOKEN | DOT_SIGN | PLUS_SLASH | TILDE | PERCENT;

const CLASSES = new Uint16Array(128);
for (let code = 0x21; code < 0x7f; code++) {
  const char = String.fromCharCode(code);
  if (char >= 'A' && char <= 'Z') CLASSES[code] = CAPITAL;
  else if (char >= 'a' && char <= 'z') CLASSES[code] = char <= 'f' ? SMALL | HEX_LETTER : SMALL;
  else if (char >= '0' && char <= '9') CLASSES[code] = DIGIT;
}
for (const [chars, bit] of [
  ['-', DASH],
  ['_', UNDERSCORE],
  ['.', DOT_SIGN],
  ['+/', PLUS_SLASH],
  ['=', EQUALS],
  ['~', TILDE],
  ['%', PERCENT],
] as const) {
  for (const char of chars) CLASSES[char.charCodeAt(0)] = bit;
}

const isOf = (code: number, bits: number) => code < 128 && (CLASSES[code]! & bits) !== 0;

/** A scan reached the end of the text: more text could change its result. */
let cameToEnd = false;

/** The result of {@link Kind.find} at one offset, and whether more text could change it. */
export function findAt(
  kind: Kind,
  text: string,
  at: number,
): { readonly span: Span | undefined; readonly open: boolean } {
  cameToEnd = false;
  const span = kind.find(text, at);
  return { span, open: cameToEnd };
}

/** Another text begins: forgets what was read of the last one. */
export function beginText(): void {
  lastRun.end = 0;
}

/** The end of the run of characters of these classes that begins at `from`. */
function runEnd(text: string, from: number, bits: number): number {
  let at = from;
  while (at < text.length && isOf(text.charCodeAt(at), bits)) at++;
  if (at >= text.length) cameToEnd = true;
  return at;
}

// What `\s` of a regular expression means.
const isSpace = (code: number) =>
  code === 0x20 ||
  (code >= 9 && code <= 13) ||
  (code > 127 && /\s/.test(String.fromCharCode(code)));

function spacesEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  if (at >= text.length) cameToEnd = true;
  return at;
}

/** Does `part` stand at `at`? A text that ends within it may still get it. */
function stands(text: string, part: string, at: number): boolean {
  if (at + part.length > text.length && part.startsWith(text.slice(at))) cameToEnd = true;
  return text.startsWith(part, at);
}

const prefixed = (marker: string, least: number, bits = TOKEN): Kind => ({
  marker,
  find(text, at) {
    const end = runEnd(text, at + marker.length, bits);
    return end - at - marker.length >= least ? [at, end] : undefined;
  },
});

/** A digit or a capital distinguishes a key from words joined by dashes ("sk-fading-circle"). */
const secretKey = (marker: string): Kind => ({
  marker,
  find(text, at) {
    const from = at + marker.length;
    const end = runEnd(text, from, TOKEN);
    if (end - from < 12) return undefined;
    if (end - from >= 20 || runEnd(text, from, TOKEN & ~(CAPITAL | DIGIT)) < end) return [at, end];
    return undefined;
  },
});

/** Exactly so many characters, with no word character after them. */
function exactly(text: string, from: number, many: number, bits: number): number | undefined {
  for (let at = from; at < from + many; at++) {
    if (at >= text.length) cameToEnd = true;
    if (at >= text.length || !isOf(text.charCodeAt(at), bits)) return undefined;
  }
  const end = from + many;
  if (end >= text.length) cameToEnd = true;
  return end < text.length && isOf(text.charCodeAt(end), ALNUM) ? undefined : end;
}

/** Three parts with dots between; header and payload are JSON objects, so both begin with eyJ. */
function webToken(text: string, at: number): Span | undefined {
  const head = runEnd(text, at + 3, TOKEN);
  if (head - at < 11 || !stands(text, '.eyJ', head)) return undefined;
  const payload = runEnd(text, head + 4, TOKEN);
  if (payload - head < 12 || text.charCodeAt(payload) !== DOT) return undefined;
  return [at, runEnd(text, payload + 1, TOKEN)];
}

/** The secret part of a bot's token, behind its number: 35 characters that begin with AA. */
function telegramBot(text: string, at: number): Span | undefined {
  const end = exactly(text, at + 3, 33, TOKEN);
  return end === undefined ? undefined : [at + 1, end];
}

/** A client secret of Entra ID, from its fifth character on. */
function entraSecret(text: string, at: number): Span | undefined {
  const end = runEnd(text, at, TOKEN | DOT_SIGN | TILDE);
  return end - at >= 33 ? [at, end] : undefined;
}

/** `Basic` with a name and a password: base64 of a text with a colon. */
function basicPair(text: string, at: number): Span | undefined {
  const from = at + 6;
  const end = runEnd(text, from, ALNUM | PLUS_SLASH | EQUALS);
  if (end - from < 8) return undefined;
  const pair = Buffer.from(text.slice(from, Math.min(end, from + MAX_PAIR)), 'base64');
  return /^[ -~]*:/.test(pair.toString('latin1')) ? [from, end] : undefined;
}

/** Characters of a pair until its colon, at most. */
const MAX_PAIR = 400;

/** A key of a gateway, `hk_<id>_<secret>`: the id is no secret. */
function gatewayKey(text: string, at: number): Span | undefined {
  const id = runEnd(text, at + 3, ALNUM);
  if (id - at !== 25 || text[id] !== '_') return undefined;
  const end = runEnd(text, id + 1, ALNUM);
  return end - id > 40 ? [id + 1, end] : undefined;
}

const DASHES = '-----';

/**
 * The text between the two marker lines of a private key: base64, spaces and line breaks, also as JSON escapes. A quotation mark ends it: a key never reaches from one string into the next.
 */
function privateKey(text: string, at: number): Span | undefined {
  let line = at + 11;
  while (line < text.length && (isOf(text.charCodeAt(line), CAPITAL) || text[line] === ' ')) line++;
  const kind = text.slice(at, line);
  const isPrivate = kind.endsWith('PRIVATE KEY') || kind.endsWith('PRIVATE KEY BLOCK');
  if (!stands(text, DASHES, line) || !isPrivate) return undefined;
  const from = line + DASHES.length;
  let end = from;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (isOf(code, ALNUM | PLUS_SLASH | EQUALS) || isSpace(code)) continue;
    if (code !== BACKSLASH) break;
    while (text.charCodeAt(end + 1) === BACKSLASH) end++;
    if (end + 1 < text.length && !'nrt/'.includes(text[end + 1]!)) return undefined;
  }
  if (end >= text.length - DASHES.length - 3) cameToEnd = true;
  return end > from && text.startsWith('-----END', end) ? [from, end] : undefined;
}

function bearerToken(text: string, at: number): Span | undefined {
  const from = spacesEnd(text, at + 5);
  if (from === at + 5) return undefined;
  const end = runEnd(text, from, NAMED);
  return end - from >= 8 ? [from, end] : undefined;
}

/** The password of `://user:password@`. */
function urlPassword(text: string, at: number): Span | undefined {
  let colon = -1;
  // A password that is already masked does not count.
  let plain = false;
  for (let i = at + 3; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x40) return plain ? [colon + 1, i] : undefined;
    if (code === 0x2f || code === QUOTE || code === BACKSLASH || isSpace(code)) return undefined;
    if (colon >= 0) plain ||= code !== 0x2a;
    else if (code === COLON) colon = i;
  }
  cameToEnd = true;
  return undefined;
}

/** A secret that begins right behind its marker, with a least length. */
const behind = (marker: string, least: number, bits: number): Kind => ({
  marker,
  find(text, at) {
    const from = at + marker.length;
    const end = runEnd(text, from, bits);
    return end - from >= least ? [from, end] : undefined;
  },
});

const queried = (marker: string): Kind => behind(marker, 8, QUERY);

/** The offset after the backslashes and the quotation mark that may surround a name or value. */
function behindQuote(text: string, at: number): number {
  let i = at;
  while (text.charCodeAt(i) === BACKSLASH) i++;
  const code = text.charCodeAt(i);
  if (code === QUOTE || code === 0x27) return i + 1;
  if (i === at) return at;
  // The escape of another character: a value may follow it too.
  return Math.min(text.length, i + (text[i] === 'u' ? 5 : 1));
}

/** The last run of {@link NAMED} that was read: it may hold thousands of names. */
const lastRun = { from: 0, end: 0 };

/** `API_KEY=…`, `"api_key": "…"`: 16 characters or more, a digit among them. */
const named = (marker: string): Kind => ({
  marker,
  anywhere: true,
  find(text, at) {
    const nameEnd = behindQuote(text, at + marker.length);
    const sign = spacesEnd(text, nameEnd);
    const code = text.charCodeAt(sign);
    if (code !== COLON && code !== 0x3d) return undefined;
    const bare = spacesEnd(text, sign + 1);
    const from = behindQuote(text, bare);
    // A digit before the first equals sign.
    const letters = runEnd(text, from, NAMED & ~(DIGIT | EQUALS));
    if (!isOf(text.charCodeAt(letters), DIGIT)) return undefined;
    if (from < lastRun.from || from >= lastRun.end) {
      lastRun.from = from;
      lastRun.end = runEnd(text, from, NAMED);
    } else if (lastRun.end === text.length) cameToEnd = true;
    const { end } = lastRun;
    if (end - from < 16) return undefined;
    // A JSON number is not a credential, and asterisks in its place would break the JSON.
    const number = from === bare && text.charCodeAt(nameEnd - 1) === QUOTE;
    return number && isNumber(text, from, end) ? undefined : [from, end];
  },
});

function isNumber(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!'0123456789+-.eE'.includes(text[at]!)) return false;
  return true;
}

export const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const COLON = 0x3a;
export const DOT = 0x2e;

/** 32 hex digits, a dot, 16 characters. The dot is the marker, because hex digits are everywhere. */
export const ZHIPU: Kind = {
  marker: '.',
  find(text, at) {
    for (let i = at; i < at + 32; i++) if (!isHexDigit(text.charCodeAt(i))) return undefined;
    const end = exactly(text, at + 33, 16, ALNUM);
    return end === undefined ? undefined : [at, end];
  },
};

/** The marker and exactly so many characters. */
const ofLength = (marker: string, many: number, bits: number): Kind => ({
  marker,
  find(text, at) {
    const end = exactly(text, at + marker.length, many, bits);
    return end === undefined ? undefined : [at, end];
  },
});

export const KINDS: readonly Kind[] = [
  // OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek, Moonshot, DashScope and many more.
  secretKey('sk-'),
  secretKey('csk-'), // Cerebras
  prefixed('sk_', 24, ALNUM),
  prefixed('sk_live_', 24, ALNUM),
  prefixed('sk_test_', 24, ALNUM),
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
  prefixed('ghu_', 30),
  prefixed('ghr_', 30),
  prefixed('github_pat_', 30),
  prefixed('glpat-', 20),
  prefixed('glrt-', 20),
  prefixed('gldt-', 20),
  prefixed('glptt-', 20),
  prefixed('glcbt-', 20),
  prefixed('npm_', 36),
  prefixed('pypi-', 40),
  prefixed('dckr_pat_', 20), // Docker
  prefixed('GOCSPX-', 20), // Google, of an OAuth client
  prefixed('1//0', 30), // Google, refresh token
  prefixed('AQ.', 40), // Gemini
  prefixed('ABSK', 60, NAMED), // Bedrock
  prefixed('bedrock-api-key-', 40, NAMED),
  prefixed('fw_', 24, ALNUM), // Fireworks
  prefixed('dapi', 32, ALNUM), // Databricks
  prefixed('xapp-', 20, ALNUM | DASH), // Slack
  prefixed('rk_live_', 24, ALNUM), // Stripe
  prefixed('rk_test_', 24, ALNUM),
  prefixed('whsec_', 24, NAMED),
  prefixed('SG.', 40, TOKEN | DOT_SIGN), // SendGrid
  prefixed('shpat_', 32, ALNUM), // Shopify
  prefixed('shpss_', 32, ALNUM),
  prefixed('dop_v1_', 60, ALNUM), // DigitalOcean
  prefixed('sbp_', 40, ALNUM), // Supabase
  prefixed('hvs.', 24), // Vault
  prefixed('hvb.', 24),
  prefixed('hvr.', 24),
  prefixed('lin_api_', 30, ALNUM), // Linear
  prefixed('ntn_', 40, ALNUM), // Notion
  prefixed('key-', 32, ALNUM), // Mailgun
  prefixed('AGE-SECRET-KEY-1', 50, ALNUM),
  prefixed('bce-v3/ALTAK-', 30, NAMED), // Baidu
  prefixed('pcsk_', 40), // Pinecone
  prefixed('lsv2_', 32), // LangSmith
  prefixed('vck_', 24, ALNUM), // Vercel
  prefixed('vcp_', 24, ALNUM),
  prefixed('glsa_', 32), // Grafana
  prefixed('glc_eyJ', 40, NAMED),
  prefixed('ATATT3', 60, NAMED), // Atlassian
  prefixed('ATCTT3', 60, NAMED),
  prefixed('NRAK-', 27, ALNUM), // New Relic
  prefixed('sntrys_', 40, NAMED), // Sentry
  prefixed('sntryu_', 40, ALNUM),
  prefixed('pscale_', 36, TOKEN | DOT_SIGN | EQUALS), // PlanetScale
  prefixed('PMAK-', 50, ALNUM | DASH), // Postman
  prefixed('rubygems_', 48, ALNUM),
  prefixed('dp.pt.', 40, ALNUM), // Doppler
  prefixed('figd_', 36), // Figma
  prefixed('HRKU-', 30), // Heroku
  prefixed('fm2_', 60, NAMED), // Fly.io
  prefixed('sq0atp-', 22), // Square
  prefixed('sq0csp-', 40),
  ofLength('SK', 32, HEX), // Twilio
  { ...behind('sv1.', 60, TOKEN | EQUALS), anywhere: true }, // Terraform, atlasv1.
  { ...behind('slack.com/', 40, TOKEN | PLUS_SLASH), anywhere: true }, // webhooks
  { ...behind('i/webhooks/', 70, TOKEN | PLUS_SLASH), anywhere: true }, // Discord
  { ...behind('gWebhook/', 32, TOKEN | PLUS_SLASH), anywhere: true }, // Teams
  { marker: ':AA', find: telegramBot, anywhere: true },
  { marker: 'Q~', find: entraSecret, anywhere: true }, // Entra ID
  { marker: 'hk_', find: gatewayKey },
  ...[...'abcdeprs'].map((kind) => prefixed(`xox${kind}-`, 10, ALNUM | DASH)),
  ofLength('AKIA', 16, CAPITAL | DIGIT), // AWS
  ofLength('ASIA', 16, CAPITAL | DIGIT), // of a session
  { marker: 'eyJ', find: webToken },
  { marker: '-----BEGIN ', find: privateKey, anywhere: true },
  { marker: 'earer', find: bearerToken, anywhere: true },
  { marker: 'EARER', find: bearerToken, anywhere: true },
  { marker: '://', find: urlPassword, anywhere: true },
  // Query parameters: the left border of a word stands for the `?` or `&` before the name.
  queried('key='),
  queried('token='),
  queried('sig='), // Azure
  { ...queried('Signature='), anywhere: true }, // AWS
  { ...queried('curity-Token='), anywhere: true },
  queried('Authorization: Basic '),
  queried('authorization: Basic '),
  { marker: 'Basic ', find: basicPair },
  { marker: 'basic ', find: basicPair },
  ...[
    // Ends of names in environments and their files.
    '_TOKEN',
    '_SECRET',
    'PASSWORD',
    'PASSWD',
    'sswd',
    'ACCESS_KEY',
    'SECRET_KEY',
    // AWS, Azure
    'ecret_access_key',
    'ecretAccessKey',
    'curity-token',
    'curity-Token',
    'ession_token',
    'essionToken',
    'AccountKey',
    'AccessKey',
    'ccessToken',
    'auth-token',
    'Auth-Token',
    'ivate_token',
    'api_token',
    'id_token',
    'API_KEY',
    'API-KEY',
    'APIKEY',
    'api_key',
    'apikey',
    'apiKey',
    'api-key',
    'ACCESS_TOKEN',
    'ACCESSTOKEN',
    'access_token',
    'AUTH_TOKEN',
    'refresh_token',
    'CLIENT_SECRET',
    '_secret',
    'Secret',
    'cret_key',
    'cretKey',
    'refreshToken',
    'ssword',
  ].map(named),
];

/** `0` to `9` and `a` to `f`. */
export const isHexDigit = (code: number) =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x66);
