/** A provider whose base_url is the address that the gateway listens on. */

import { describe, expect, test } from 'bun:test';
import { hostname } from 'node:os';
import { parse } from '../support.ts';

const warned = (listen: string, url: string) => {
  const result = parse(
    `listen: ${JSON.stringify(listen)}\nauth: { keys: ["0123456789abcdef"] }\n` +
      `providers: { self: { protocol: openai-chat, base_url: "${url}", keys: [x] } }\n`,
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.warnings.filter(({ path }) => path === 'providers.self.base_url').length;
};

describe('its requests would come back', () => {
  test.each([
    ['127.0.0.1:5520', 'http://127.0.0.1:5520/v1'],
    ['127.0.0.1:5520', 'http://localhost:5520/v1'],
    ['127.0.0.1:5520', 'https://127.0.0.1:5520'],
    ['localhost:5520', 'http://[::1]:5520/v1'],
    ['[::1]:5520', 'http://localhost.:5520/v1'],
    ['0.0.0.0:5520', 'http://127.0.0.1:5520/v1'],
    ['0.0.0.0:5520', 'http://0.0.0.0:5520/v1'],
    ['[::]:5520', 'http://[::1]:5520/v1'],
    ['0.0.0.0:5520', `http://${hostname()}:5520/v1`],
    ['192.168.1.5:80', 'http://192.168.1.5/v1'],
    ['llm.example:443', 'https://LLM.example/v1'],
  ])('listen %s, base_url %s', (listen, url) => expect(warned(listen, url)).toBe(1));
});

describe('another server', () => {
  test.each([
    ['127.0.0.1:5520', 'http://127.0.0.1:11434/v1'],
    ['127.0.0.1:5520', 'http://127.0.0.2:5520/v1'],
    ['127.0.0.1:5520', 'http://[::1]:5520/v1'],
    ['127.0.0.1:5520', 'https://api.example:5520/v1'],
    ['0.0.0.0:443', 'https://api.example/v1'],
    ['127.0.0.1:0', 'http://127.0.0.1/v1'],
  ])('listen %s, base_url %s', (listen, url) => expect(warned(listen, url)).toBe(0));
});
