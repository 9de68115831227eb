/** Laws over every recorded and captured request: unchanged requests go out as they came in. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { toolNames } from '../../../src/conversation/tools/tool-names.ts';
import { haveCaptures, haveFixtures } from '../../support/fixtures.ts';
import { plain, requests, target } from './material.ts';

if (!haveFixtures) test.skip('recorded requests: SKIPPED, ../shared/fixtures is absent', () => {});
if (!haveCaptures) test.skip('captured requests: SKIPPED, ../shared/captures is absent', () => {});

const all = requests();

describe.skipIf(all.length === 0)('recorded and captured requests', () => {
  test('hundreds of requests are available', () => {
    expect(all.length).toBeGreaterThan(500);
  });

  test('an unchanged conversation encodes to the body it came from', () => {
    for (const { name, body } of all) {
      const notes = new Notes();
      const conversation = openaiResponses.decodeRequest(body);
      const encoded = openaiResponses.encodeRequest(
        conversation,
        target(conversation.model),
        notes,
      );
      expect(encoded, name).toEqual(body);
      expect(notes.all, name).toEqual([]);
    }
  });

  test('lists rebuilt without changes encode equivalently', () => {
    for (const { name, body } of all) {
      const conversation = openaiResponses.decodeRequest(body);
      const rebuilt = withParts(conversation, {
        turns: typeof body.input === 'string' ? conversation.turns : [...conversation.turns],
        tools: [...conversation.tools],
        settings: { ...conversation.settings },
        system: [...conversation.system],
      });
      const encoded = openaiResponses.encodeRequest(rebuilt, target(rebuilt.model), new Notes());
      const expected = { ...body };
      // The API refuses reasoning at the end, so a rewritten list omits it.
      if (JSON.stringify(encoded.input) !== JSON.stringify(body.input)) {
        const input = body.input as readonly { type?: string }[];
        expect(encoded.input, name).toEqual(
          input.filter((item) => item.type !== 'reasoning') as never,
        );
        expected.input = encoded.input;
      }
      expect(encoded, name).toEqual(expected);
    }
  });

  test('decoding does not change its input body', () => {
    for (const { name, body } of all.slice(0, 200)) {
      const before = JSON.stringify(body);
      openaiResponses.decodeRequest(body);
      expect(JSON.stringify(body), name).toBe(before);
    }
  });

  test('every item is one turn, and every turn of an item list carries its wire', () => {
    for (const { name, body } of all) {
      if (!Array.isArray(body.input)) continue;
      const { turns } = openaiResponses.decodeRequest(body);
      expect(turns.length, name).toBe(body.input.length);
      turns.forEach((turn, i) => {
        expect(turn.wire?.value as unknown, name).toBe((body.input as readonly unknown[])[i]);
      });
    }
  });

  test('every declared tool is restored from its flat name to namespace, name and kind', () => {
    let namespaced = 0;
    for (const { name, body } of all) {
      const { tools } = openaiResponses.decodeRequest(body);
      const names = toolNames(tools, 64);
      for (const tool of tools) {
        if (tool.type === 'hosted') continue;
        const flat = names.flat(tool.name, tool.namespace);
        expect(flat, name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
        const found = names.original(flat);
        expect([found.name, found.namespace, found.kind], name).toEqual([
          tool.name,
          tool.namespace,
          tool.type,
        ]);
        if (tool.namespace !== undefined) namespaced++;
      }
    }
    if (haveCaptures) expect(namespaced).toBeGreaterThan(100);
  });

  test('the API accepts a body encoded without its origin', () => {
    for (const { name, body } of all) {
      const { origin: _, ...conversation } = openaiResponses.decodeRequest(body);
      const encoded = openaiResponses.encodeRequest(
        conversation,
        target('m', { ...NO_PROFILE, hostedTools: ['web_search'] }),
        new Notes(),
      );
      expect(plain(encoded), name).toEqual(encoded);
    }
  });
});
