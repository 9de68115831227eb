/** Masks the configured and fetched secrets in text from vendors: replaces every spelling by asterisks. */

// Shorter secrets would match parts of ordinary words.
const MIN = 8;

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** What announces the credential in a header: `Bearer …`. */
const SCHEME = /^(?:basic|bearer|token|api-?key|key|ssws)[ \t]+(\S+)$/i;

/**
 * The credential and its parts, since a server may repeat one part alone: what follows a scheme (`Bearer …`),
 * the user and password of `Basic …`, the values of cookies.
 * @param name of the header or field that holds it
 */
export function credentialsIn(secret: string, name: string): readonly string[] {
  if (name.toLowerCase() === 'cookie') {
    const cookies = secret.split(';');
    return [secret, ...cookies.map((cookie) => cookie.slice(cookie.indexOf('=') + 1).trim())];
  }
  const token = SCHEME.exec(secret)?.[1];
  if (token === undefined) return [secret];
  const pair = /^basic/i.test(secret) ? Buffer.from(token, 'base64').toString() : '';
  const colon = pair.indexOf(':');
  return colon < 0 ? [secret, token] : [secret, token, pair, pair.slice(colon + 1)];
}

/**
 * The spellings of secrets in a body or a header: as they are, as JSON, with escaped slashes, as part of a URL. The
 * longest first, so that masking one leaves no part of another.
 */
export function secretLiterals(secrets: readonly string[]): readonly string[] {
  const all = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < MIN) continue;
    const json = inJson(secret);
    // JSON inside a JSON string is escaped twice.
    const escaped = json.replaceAll('/', '\\/');
    for (const one of [secret, json, escaped]) all.add(one).add(inJson(one));
    if (secret.isWellFormed()) all.add(encodeURIComponent(secret));
  }
  return [...all].sort((a, b) => b.length - a.length);
}

/**
 * The text with these literals masked; the same string when it holds none.
 * @param literals as of {@link secretLiterals}, the longest first
 */
export function maskLiterals(text: string, literals: readonly string[]): string {
  const shortest = literals[literals.length - 1];
  if (shortest === undefined || text.length < shortest.length) return text;
  let masked = text;
  for (const one of literals) {
    if (masked.includes(one)) masked = masked.replaceAll(one, '*'.repeat(one.length));
  }
  return masked;
}

// Credentials that the program got by itself, such as access tokens, are masked as those of the configuration are.
/** Of each owner: a request under way may have the one before. */
const KEPT = 2;

const byOwner = new Map<string, readonly (readonly string[])[]>();
const followers: (() => void)[] = [];
let all: readonly string[] = [];

/** @param owner whose earlier ones they replace in time */
export function noteFetched(owner: string, secrets: readonly string[]): void {
  byOwner.set(owner, [secrets, ...(byOwner.get(owner) ?? [])].slice(0, KEPT));
  all = [...byOwner.values()].flat(2);
  for (const told of followers) told();
}

/** The known secrets; a new list when one was added. */
export const fetchedSecrets = (): readonly string[] => all;

/** Calls this with new ones, for good. */
export const onFetched = (told: () => void): void => void followers.push(told);
