/** The format and the size of an image, from its first bytes. */

export interface ImageHeader {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** Base64 characters of an image that are read: its size is near the beginning, in JPEG after the camera's metadata. */
const HEAD = 262_144;

/** The header of a PNG, JPEG, GIF or WebP; undefined for anything else. */
export function imageHeader(base64: string): ImageHeader | undefined {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  if (head.length >= 24 && head.readUInt32BE(0) === 0x89504e47) {
    return sized('image/png', head.readUInt32BE(16), head.readUInt32BE(20));
  }
  if (head.length >= 10 && head.toString('latin1', 0, 4) === 'GIF8') {
    return sized('image/gif', head.readUInt16LE(6), head.readUInt16LE(8));
  }
  if (head.length >= 30 && head.toString('latin1', 8, 12) === 'WEBP') return webpHeader(head);
  if (head[0] !== 0xff || head[1] !== 0xd8) return undefined;
  return jpegHeader(Buffer.from(base64.slice(0, HEAD), 'base64'));
}

const sized = (
  mediaType: ImageHeader['mediaType'],
  width: number,
  height: number,
): ImageHeader | undefined => (width > 0 && height > 0 ? { mediaType, width, height } : undefined);

/** https://developers.google.com/speed/webp/docs/riff_container: lossy, lossless, extended. */
function webpHeader(bytes: Buffer): ImageHeader | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return sized('image/webp', bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff);
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return sized('image/webp', (bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
    }
    case 'VP8X':
      return sized('image/webp', bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1);
    default:
      return undefined;
  }
}

/** Reads segment by segment up to the start of frame (SOF). */
function jpegHeader(bytes: Buffer): ImageHeader | undefined {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const kind = bytes[at + 1]!;
    const isStartOfFrame =
      kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
    if (isStartOfFrame)
      return sized('image/jpeg', bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5));
    // Fill bytes before a marker.
    if (kind === 0xff) at++;
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
