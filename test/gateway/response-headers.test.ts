/** Which of an upstream's header fields a client of its protocol gets. */

import { describe, expect, test } from 'bun:test';
import { forwardedHeaders } from '../../src/gateway/response-headers.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';

const fields = { 'x-request-id': '1', 'x-ratelimit-remaining': '4' };
const forwarded = (connection: string) =>
  [...forwardedHeaders(FlatHeaders.of({ ...fields, connection }))].map(([name]) => name);

describe('fields that an upstream meant for this hop', () => {
  test.each(['X-Request-Id', 'keep-alive, x-request-id', ' close,,X-REQUEST-ID '])(
    'do not reach the client (Connection: %s)',
    (connection) => {
      expect(forwarded(connection)).toEqual(['x-ratelimit-remaining']);
    },
  );

  test.each(['keep-alive', 'close', 'Keep-Alive', '', ','])(
    'are none where Connection: %s names none: nothing else is lost',
    (connection) => {
      expect(forwarded(connection)).toEqual(['x-request-id', 'x-ratelimit-remaining']);
    },
  );
});
