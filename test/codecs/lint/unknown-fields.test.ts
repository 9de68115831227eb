/** Fields at the root of a request that nobody knows: what they are called, what was meant, and what must stay unsaid. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { lintRequest as messages } from '../../../src/codecs/anthropic-messages/lint/lint-request.ts';
import { lintRequest as gemini } from '../../../src/codecs/google-gemini/lint/lint-request.ts';
import { lintRequest as chat } from '../../../src/codecs/openai-chat/lint/lint-request.ts';
import { SETTING_KEYS } from '../../../src/codecs/openai-chat/request/decode-settings.ts';
import { lintRequest as responses } from '../../../src/codecs/openai-responses/lint/lint-request.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/lib/json/json.ts';
import { PROFILES } from '../../../src/vendors/index.ts';

const SHARED = fileURLToPath(new URL('../../../../shared', import.meta.url));
const there = existsSync(`${SHARED}/fixtures/index.json`);
const when = there ? test : test.skip;
const unless = there ? '' : ' (SKIPPED: the recorded exchanges are not here)';

const ASKED = [{ role: 'user', content: 'Hi' }];
const PROTOCOLS = {
  chat: { lint: chat, body: { model: 'm', messages: ASKED } },
  responses: { lint: responses, body: { model: 'm', input: 'Hi' } },
  messages: { lint: messages, body: { model: 'm', max_tokens: 5, messages: ASKED } },
  gemini: { lint: gemini, body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] } },
} as const;
type Name = keyof typeof PROTOCOLS;

/** What the linter says about this field, and of nothing else. */
const about = (name: Name, field: string) =>
  PROTOCOLS[name]
    .lint({ ...PROTOCOLS[name].body, [field]: 1 })
    .filter(({ at }) => at === `/${field}`);

describe('a misspelt field', () => {
  test.each<[Name, string, string]>([
    ['chat', 'max_token', 'max_tokens'],
    ['chat', 'maxTokens', 'max_tokens'],
    ['chat', 'temprature', 'temperature'],
    ['chat', 'reasoning_efort', 'reasoning_effort'],
    ['chat', 'stops', 'stop'],
    ['chat', 'tool-choice', 'tool_choice'],
    ['responses', 'max_output_token', 'max_output_tokens'],
    ['responses', 'instruction', 'instructions'],
    ['responses', 'previous_response', 'previous_response_id'],
    ['messages', 'stop_sequence', 'stop_sequences'],
    ['messages', 'max_token', 'max_tokens'],
    ['gemini', 'generationConfigs', 'generationConfig'],
  ])('%s: %s is told, and %s is suggested', (name, field, meant) => {
    const found = about(name, field);
    expect(found).toHaveLength(1);
    expect(found[0]!.message).toContain(field);
    expect(found[0]!.message).toContain(`(did you mean "${meant}"?)`);
  });

  test('is a warning only where vendors add fields of their own', () => {
    const warned = (Object.keys(PROTOCOLS) as Name[]).filter((name) =>
      about(name, 'max_tokenz').every(({ warning }) => warning === true),
    );
    expect(warned).toEqual(['chat', 'responses']);
  });
});

test('a field that is like no other has no suggestion', () => {
  for (const name of ['chat', 'responses'] as const) {
    const [found, ...others] = about(name, 'zzzzzzzz');
    expect(others).toEqual([]);
    expect(found).toMatchObject({ rule: 'unknown-field', warning: true });
    expect(found!.message).toContain('"zzzzzzzz"');
    expect(found!.message).not.toContain('did you mean');
  }
});

describe('fields that are known', () => {
  test("the gateway's own extension is known in every protocol", () => {
    for (const name of Object.keys(PROTOCOLS) as Name[]) {
      expect([name, about(name, 'hopgate')]).toEqual([name, []]);
    }
  });

  test('what the codec reads, and what profiles of vendors drop, rename or use', () => {
    const fields = new Set<string>(Object.values(SETTING_KEYS).flat());
    for (const { models, ...facts } of Object.values(PROFILES)) {
      for (const one of [facts, ...Object.values(models ?? {})]) {
        const names = [one.maxTokensParam, one.reasoningParam].filter((field) => field !== 'none');
        for (const field of [
          ...names,
          ...(one.dropParams ?? []),
          ...Object.entries(one.renameParams ?? {}).flat(),
        ]) {
          if (field !== undefined) fields.add(field);
        }
      }
    }
    expect(fields.size).toBeGreaterThan(30);
    const unknown = [...fields].filter((field) => about('chat', field).some((f) => f.warning));
    expect(unknown).toEqual([]);
  });

  when(`every field of a recorded request that was accepted${unless}`, () => {
    const rows = parseJson(readFileSync(`${SHARED}/fixtures/index.json`, 'utf8')) as readonly {
      readonly protocol: string;
      readonly request: string | null;
      readonly status: number | null;
    }[];
    let seen = 0;
    for (const { protocol, request, status } of rows) {
      const name = protocol as Name;
      if (request === null || !Object.hasOwn(PROTOCOLS, name) || (status ?? 200) !== 200) continue;
      seen += expectKnown(name, `fixtures/${request}`);
    }
    expect(seen).toBeGreaterThan(1800);
  });

  when(`every field that clients were seen to send${unless}`, () => {
    const seen = { chat: 0, responses: 0 };
    for (const file of readdirSync(`${SHARED}/captures`, { recursive: true }) as string[]) {
      const name = /chat_completions\.json$/.test(file)
        ? 'chat'
        : /v1_responses\.json$/.test(file)
          ? 'responses'
          : undefined;
      if (name !== undefined) seen[name] += expectKnown(name, `captures/${file}`);
    }
    expect(seen.chat).toBeGreaterThan(100);
    expect(seen.responses).toBeGreaterThan(100);
  });
});

/** 1 if the file holds a request, all of whose fields must be known; 0 if it holds none. */
function expectKnown(name: Name, file: string): number {
  const read = parseJson(readFileSync(`${SHARED}/${file}`, 'utf8')) as JsonObject;
  const body = file.startsWith('captures/') ? read.body : read;
  if (!isObject(body)) return 0;
  const unknown = Object.keys(body).filter((field) =>
    about(name, field).some(({ rule }) => rule === 'unknown-field' || rule === 'extra-input'),
  );
  expect([file, unknown]).toEqual([file, []]);
  return 1;
}
