/** What real agents send is valid: the pass must leave every recorded request alone. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import { run } from './support.ts';
import { complaint } from './validate-messages.ts';

const ROOT = fileURLToPath(new URL('../../../../shared/captures', import.meta.url));

const PATHS: readonly (readonly [RegExp, ProtocolName])[] = [
  [/messages$/, 'anthropic-messages'],
  [/chat\/completions$|chat_completions$/, 'openai-chat'],
  [/responses$/, 'openai-responses'],
];

interface Recorded {
  readonly name: string;
  readonly protocol: ProtocolName;
  readonly body: Json;
}

function* files(folder: string): Generator<string> {
  for (const entry of readdirSync(folder)) {
    const path = join(folder, entry);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (path.endsWith('.json')) yield path;
  }
}

/** Requests whose long strings were cut in the recording are still whole in structure. */
function recorded(): Recorded[] {
  const out: Recorded[] = [];
  for (const path of files(ROOT)) {
    const value = JSON.parse(readFileSync(path, 'utf8')) as Json;
    if (!isObject(value)) continue;
    const body = isObject(value.body) ? value.body : isObject(value.json) ? value.json : undefined;
    const url = String(value.path ?? value.url ?? '').replace(/\?.*$/, '');
    const protocol = PATHS.find(([pattern]) => pattern.test(url))?.[1];
    if (body === undefined || protocol === undefined) continue;
    if (body.messages === undefined && body.input === undefined) continue;
    // Threads are kept by a server and refused here.
    if (body.thread !== undefined) continue;
    out.push({ name: path.slice(ROOT.length + 1), protocol, body });
  }
  return out;
}

if (!existsSync(ROOT)) {
  test.skip(`SKIPPED: no recorded requests at ${ROOT}`, () => {});
} else {
  describe('recorded requests', () => {
    const all = recorded();

    test('there are some of every protocol', () => {
      for (const [, protocol] of PATHS) {
        expect(all.filter((one) => one.protocol === protocol).length).toBeGreaterThan(10);
      }
    });

    test('go out as they came, but for loops whose scripted vendor did not think', () => {
      const touched = all.flatMap(({ name, protocol, body }) => {
        const { same, names } = run(body, protocol);
        return same ? [] : [{ name, protocol, names, body }];
      });
      for (const { name, protocol, names, body } of touched) {
        // Thinking was asked for with a budget, and the loop has none at its head: refused upstream.
        expect({ name, protocol, thinking: names.includes('thinking_disabled') }).toEqual({
          name,
          protocol: 'anthropic-messages',
          thinking: true,
        });
        expect(complaint(body as JsonObject)).toMatch(/Expected `thinking`|Invalid `signature`/);
      }
      expect(all.length - touched.length).toBeGreaterThan(100);
    });
  });
}
