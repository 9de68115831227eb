/** What the configuration says of WebSockets: how long one lasts, and which vendors have one. */

import { expect, test } from 'bun:test';
import { bad, good, PROVIDER } from '../support.ts';

test('a connection lasts an hour, another time in minutes, or for ever', () => {
  const minutes = (own: string) => good(`${PROVIDER}${own}`).limits.websocketMinutes;
  expect(minutes('')).toBe(60);
  expect(minutes('limits: { websocket_minutes: 0.5 }')).toBe(0.5);
  expect(minutes('limits: { websocket_minutes: 0 }')).toBe(0);
  expect(bad(`${PROVIDER}limits: { websocket_minutes: -1 }`)[0]).toMatchObject({
    path: 'limits.websocket_minutes',
  });
});

test('a vendor is asked on its WebSocket only where the file says so, and it speaks Responses', () => {
  const provider = (protocol: string, more = '') =>
    `providers:\n  p: { protocol: ${protocol}, base_url: "http://127.0.0.1:1/v1"${more} }\n`;
  const of = (text: string) => good(text).providers.p!.transport.websocket;
  expect(of(provider('openai-responses'))).toBe(false);
  expect(of(provider('openai-responses', ', websocket: true'))).toBe(true);
  expect(bad(provider('openai-chat', ', websocket: true'))).toMatchObject([
    {
      path: 'providers.p.websocket',
      message: 'is only for providers that speak openai-responses',
    },
  ]);
});
