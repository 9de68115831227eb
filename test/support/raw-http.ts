/** An HTTP client that keeps all that came before a connection broke; fetch may drop what it has not handed out yet. */

import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body as far as it came, without chunk heads. */
  readonly text: string;
  /** The connection ended before the body did. */
  readonly broken: boolean;
}

/**
 * Posts a body on a connection of its own. @param began the first bytes of the answer are there
 * @throws Error when no head of an answer came
 */
export async function rawPost(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  began: () => void = () => {},
): Promise<RawAnswer> {
  const { hostname, port, pathname, search } = new URL(url);
  const bytes = Buffer.from(body);
  const fields = {
    host: `${hostname}:${port}`,
    connection: 'close',
    'content-length': String(bytes.length),
    ...headers,
  };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const came: Buffer[] = [];
  await new Promise<void>((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`POST ${pathname}${search} HTTP/1.1\r\n${head.join('')}\r\n`);
      socket.write(bytes);
    });
    socket.on('data', (chunk: Buffer) => {
      if (came.push(chunk) === 1) began();
    });
    // A reset is an end like any other here.
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
  return read(Buffer.concat(came));
}

const HEAD_END = '\r\n\r\n';

function read(answer: Buffer): RawAnswer {
  const end = answer.indexOf(HEAD_END);
  if (end < 0) throw new Error(`no answer: ${answer.toString('latin1').slice(0, 200)}`);
  const [first = '', ...lines] = answer.toString('latin1', 0, end).split('\r\n');
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const status = Number(first.split(' ')[1]);
  const rest = answer.subarray(end + HEAD_END.length);
  const { body, whole } =
    headers.get('transfer-encoding') === 'chunked'
      ? withoutChunkHeads(rest)
      : { body: rest, whole: rest.length >= Number(headers.get('content-length') ?? 0) };
  return { status, headers, text: body.toString(), broken: !whole };
}

function withoutChunkHeads(bytes: Buffer): { readonly body: Buffer; readonly whole: boolean } {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return { body: Buffer.concat(parts), whole: false };
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16);
    if (size === 0) return { body: Buffer.concat(parts), whole: true };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}
