/** Asks a port that did not answer as expected whether it speaks the other scheme. */

import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** The port speaks HTTP without TLS where TLS was expected, or the other way round. */
export class OtherScheme extends Error {
  readonly code = 'EPROTO';

  constructor(readonly speaks: 'http' | 'https') {
    super(`the port speaks ${speaks}`);
  }
}

/** Milliseconds for an answer. */
const MAX_MS = 1000;
const BEGINNING = 'HTTP/';

/** A request without a path, a key or a body: whatever answers it in words speaks plain HTTP. */
export const speaksHttp = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, host, () => {
      socket.write('OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    });
    let came = '';
    socket.on('data', (bytes) => {
      came += bytes.toString('latin1', 0, BEGINNING.length);
      if (came.length < BEGINNING.length) return;
      settle(came.startsWith(BEGINNING));
    });
    const settle = settler(socket, resolve);
  });

/** A handshake, whoever the certificate names. */
export const speaksTls = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTls({ port, host, rejectUnauthorized: false }, () => settle(true));
    const settle = settler(socket, resolve);
  });

function settler(socket: ReturnType<typeof connect>, resolve: (is: boolean) => void) {
  const settle = (is: boolean) => {
    clearTimeout(late);
    socket.destroy();
    resolve(is);
  };
  const late = setTimeout(() => settle(false), MAX_MS);
  socket.on('error', () => settle(false));
  socket.on('close', () => settle(false));
  return settle;
}
