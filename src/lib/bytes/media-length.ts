/** How long a recording is: by its header where that is near an end of the file, else by what its kind usually weighs. */

/** Bytes of a second of speech, or of a small video: rather less than it has, so that it counts as rather longer. */
const BYTES_OF_SECOND: Readonly<Record<string, number>> = {
  'audio/wav': 32_000,
  'audio/x-wav': 32_000,
  'audio/pcm16': 48_000,
  'audio/l16': 32_000,
  'audio/flac': 30_000,
  'audio/ogg': 4000,
  'audio/opus': 4000,
  'audio/webm': 4000,
};
const OTHER_AUDIO = 8000;
const VIDEO = 100_000;

/** Bytes at either end of a file that are looked at. */
const END = 262_144;

/** Seconds of a recording. @param base64 its bytes */
export function secondsOf(mediaType: string, base64: string): number {
  const bytes = Math.floor((base64.length * 3) / 4);
  const isVideo = mediaType.startsWith('video/');
  const known = /wav$/.test(mediaType) ? wavSeconds(base64, bytes) : movieSeconds(base64);
  const usual = BYTES_OF_SECOND[mediaType.toLowerCase()] ?? (isVideo ? VIDEO : OTHER_AUDIO);
  return known ?? bytes / usual;
}

/** RIFF: the bytes of a second stand in the format. */
function wavSeconds(base64: string, bytes: number): number | undefined {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  if (head.length < 32 || head.toString('latin1', 8, 16) !== 'WAVEfmt ') return undefined;
  const rate = head.readUInt32LE(28);
  return rate === 0 ? undefined : bytes / rate;
}

/** ISO 14496-12 (MP4, M4A, QuickTime): the length of a film stands in `mvhd`, near its beginning or its end. */
function movieSeconds(base64: string): number | undefined {
  const chars = (END / 3) * 4;
  const head = Buffer.from(base64.slice(0, chars), 'base64');
  if (head.toString('latin1', 4, 8) !== 'ftyp') return undefined;
  const from = Math.max(0, base64.length - chars);
  return movieLength(head) ?? movieLength(Buffer.from(base64.slice(from - (from % 4)), 'base64'));
}

function movieLength(bytes: Buffer): number | undefined {
  const at = bytes.indexOf('mvhd', 0, 'latin1') + 4;
  if (at < 4 || bytes.length < at + 32) return undefined;
  const isLong = bytes[at] === 1;
  const scale = bytes.readUInt32BE(at + (isLong ? 20 : 12));
  const length = isLong ? Number(bytes.readBigUInt64BE(at + 24)) : bytes.readUInt32BE(at + 16);
  return scale === 0 || length === 0 ? undefined : length / scale;
}
