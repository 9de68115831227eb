/** Bounds the messages of an MCP server, so that none can fill the memory: the SDK reads them whole. */

/** A server that sends a larger message is ended. */
export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

export class MessageTooLarge extends Error {
  constructor() {
    super(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`);
  }
}

/** What ends an event of a stream, whichever line ends the server writes. */
const BLANK_LINES = ['\n\n', '\n\r\n', '\r\r'];
const SEAM_BYTES = 2;

/** The response with a body that breaks off behind {@link MAX_MESSAGE_BYTES}, of an event stream behind those of one event. */
export function boundedMessages(response: Response, onTooLarge: (why: Error) => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const isStream = headers.get('content-type')?.includes('event-stream') === true;
  let size = 0;
  let seam = Buffer.alloc(0);
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.length;
      if (isStream) {
        const text = Buffer.concat([seam, chunk]);
        const ends = BLANK_LINES.map((line) => text.lastIndexOf(line) + line.length);
        const end = Math.max(...ends);
        if (end > SEAM_BYTES) size = text.length - end;
        seam = text.subarray(-SEAM_BYTES);
      }
      if (size <= MAX_MESSAGE_BYTES) return controller.enqueue(chunk);
      const why = new MessageTooLarge();
      controller.error(why);
      onTooLarge(why);
    },
  });
  return new Response(body.pipeThrough(bound), { status, statusText, headers });
}
