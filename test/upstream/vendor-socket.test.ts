/** The handshake of a WebSocket to a vendor. */

import { expect, test } from 'bun:test';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { VendorSocket } from '../../src/upstream/websocket/vendor-socket.ts';

test('offers no compression: a small frame could unfold to any size', async () => {
  let handshake = '';
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        handshake += bytes.toString();
        if (handshake.includes('\r\n\r\n')) socket.end();
      },
    },
  });
  try {
    const place = {
      url: `ws://127.0.0.1:${listener.port}/v1/responses`,
      headers: FlatHeaders.of({ authorization: 'Bearer k' }),
      proxy: undefined,
      tls: undefined,
      connectMs: 0,
      mostBytes: 1024,
    };
    await new VendorSocket(place, () => {}).opened.catch(() => {});
    expect(handshake).toContain('Upgrade: websocket');
    expect(handshake.toLowerCase()).not.toContain('sec-websocket-extensions');
  } finally {
    listener.stop(true);
  }
});
