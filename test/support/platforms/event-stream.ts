/** Writes AWS' binary event stream by its published format, for tests. */

import { crc32 } from 'node:zlib';

const utf8 = new TextEncoder();

/** A message with string headers. */
export function eventStreamMessage(headers: Record<string, string>, body: string): Uint8Array {
  const fields: Uint8Array[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const key = utf8.encode(name);
    const text = utf8.encode(value);
    const field = new Uint8Array(1 + key.length + 3 + text.length);
    field[0] = key.length;
    field.set(key, 1);
    field[1 + key.length] = 7;
    new DataView(field.buffer).setUint16(2 + key.length, text.length);
    field.set(text, 4 + key.length);
    fields.push(field);
  }
  const head = Buffer.concat(fields);
  const payload = utf8.encode(body);
  const out = Buffer.alloc(16 + head.length + payload.length);
  out.writeUInt32BE(out.length, 0);
  out.writeUInt32BE(head.length, 4);
  out.writeUInt32BE(crc32(out.subarray(0, 8)), 8);
  out.set(head, 12);
  out.set(payload, 12 + head.length);
  out.writeUInt32BE(crc32(out.subarray(0, out.length - 4)), out.length - 4);
  return new Uint8Array(out);
}

/** An event of the model, as Bedrock sends it: in base64, with padding. */
export const chunkMessage = (event: string): Uint8Array =>
  eventStreamMessage(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({ bytes: Buffer.from(event).toString('base64'), p: 'abcdefghijkl' }),
  );

/** An exception in a stream: `throttlingException`. */
export const exceptionMessage = (type: string, message: string): Uint8Array =>
  eventStreamMessage(
    {
      ':exception-type': type,
      ':content-type': 'application/json',
      ':message-type': 'exception',
    },
    JSON.stringify({ message }),
  );
