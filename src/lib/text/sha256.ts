/** SHA-256 in hex digits, of a text (its UTF-8) or of bytes. */
export const sha256Hex = (data: string | Uint8Array): string =>
  new Bun.CryptoHasher('sha256').update(data).digest('hex');

/** A source of a content security policy: the one script or style sheet of this text (https://www.w3.org/TR/CSP3/#grammardef-hash-source). */
export const policyHash = (text: string): string =>
  `'sha256-${new Bun.CryptoHasher('sha256').update(text).digest('base64')}'`;
