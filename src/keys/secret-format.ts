/** The form of keys made at run time: `hk_<id>_<secret>` with a checksum character that detects a mistyped key. */

/** Base 62: no character that a shell, a URL or a double click treats in a special way. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Digits for 128 and for 256 bits. */
const ID_DIGITS = 22;
const SECRET_DIGITS = 43;

const FORM = /^hk_([0-9A-Za-z]{22})_([0-9A-Za-z]{44})$/;

/** `hk_` and 128 random bits. */
export const newKeyId = (): string => `hk_${randomDigits(16, ID_DIGITS)}`;

/** The whole key for an id: 256 random bits and the checksum of all that stands before it. */
export function newKeyText(id: string): string {
  const text = `${id}_${randomDigits(32, SECRET_DIGITS)}`;
  return text + checksum(text);
}

/** Does it have the form and the checksum of a key that some gateway made? */
export const isKeyText = (text: string): boolean =>
  FORM.test(text) && checksum(text.slice(0, -1)) === text.at(-1);

function randomDigits(bytes: number, length: number): string {
  let value = BigInt(
    `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')}`,
  );
  let text = '';
  for (let i = 0; i < length; i++) {
    text = DIGITS[Number(value % 62n)]! + text;
    value /= 62n;
  }
  return text;
}

/** Luhn's sum over base 62 (ISO/IEC 7812-1, annex B, with N = 62): finds each wrong character and most swaps. */
function checksum(text: string): string {
  let sum = 0;
  let factor = 2;
  for (let i = text.length - 1; i >= 0; i--) {
    const digit = DIGITS.indexOf(text[i]!);
    if (digit < 0) continue;
    const product = digit * factor;
    sum += Math.floor(product / 62) + (product % 62);
    factor = 3 - factor;
  }
  return DIGITS[(62 - (sum % 62)) % 62]!;
}
