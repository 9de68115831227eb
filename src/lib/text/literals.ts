/** Known secrets in texts: every spelling of each is replaced by as many asterisks. */

// Shorter ones would be found in ordinary words.
const LEAST = 8;

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/**
 * The ways in which a secret may be written in a body or a header: as it is, as JSON, with escaped slashes,
 * as part of a URL. The longest first, so that none leaves a piece of another behind.
 */
export function spellingsOf(secrets: readonly string[]): readonly string[] {
  const all = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < LEAST) continue;
    const json = inJson(secret);
    // A body that is quoted in another one is escaped twice.
    const escaped = json.replaceAll('/', '\\/');
    for (const one of [secret, json, escaped]) all.add(one).add(inJson(one));
    if (secret.isWellFormed()) all.add(encodeURIComponent(secret));
  }
  return [...all].sort((a, b) => b.length - a.length);
}

/**
 * The text without these literals; the very text where none stands in it.
 * @param literals as of {@link spellingsOf}, the longest first
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
