/** SHA-256 in hex digits, of a text (its UTF-8) or of bytes. */
export const sha256Hex = (data: string | Uint8Array): string =>
  new Bun.CryptoHasher('sha256').update(data).digest('hex');
