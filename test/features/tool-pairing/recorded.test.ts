/** Requests of real agents are valid: the pass leaves every recorded one unchanged. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { messagesComplaint } from './complaints.ts';
import { run } from './support.ts';

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

/** Requests whose long strings were cut in the recording still have their full structure. */
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
    // Threads live on a server and are refused here.
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

    test('the recordings cover every protocol', () => {
      for (const [, protocol] of PATHS) {
        expect(all.filter((one) => one.protocol === protocol).length).toBeGreaterThan(10);
      }
    });

    test('recorded requests pass unchanged, except loops whose scripted vendor did not think', () => {
      const touched = all.flatMap(({ name, protocol, body }) => {
        const { same, names } = run(body, protocol);
        return same ? [] : [{ name, protocol, names, body }];
      });
      for (const { name, protocol, names, body } of touched) {
        // The request wants thinking but its loop begins without it; the vendor would refuse that.
        expect({ name, protocol, thinking: names.includes('thinking_disabled') }).toEqual({
          name,
          protocol: 'anthropic-messages',
          thinking: true,
        });
        expect(messagesComplaint(body as JsonObject)).toMatch(
          /Expected `thinking`|Invalid `signature`/,
        );
      }
      expect(all.length - touched.length).toBeGreaterThan(100);
    });
  });
}
