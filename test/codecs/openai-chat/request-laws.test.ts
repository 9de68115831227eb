/** The law of the Chat request codec: unchanged requests go out as they came in. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { editNode, withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { haveCaptures, haveFixtures } from '../../support/fixtures.ts';
import { capturedBodies, requestOf, rows, target } from './recorded.ts';

const bodies = rows.flatMap((row): (readonly [string, JsonObject])[] => {
  const body = requestOf(row);
  return body !== undefined && Array.isArray(body.messages) ? [[row.file, body]] : [];
});

const encode = (body: JsonObject, change: 'none' | 'turns' | 'edit' | 'tools' | 'settings') => {
  const conversation = openaiChat.decodeRequest(body);
  const changed = withParts(conversation, {
    ...(change === 'turns' ? { turns: [...conversation.turns] } : {}),
    ...(change === 'edit'
      ? {
          turns: conversation.turns.map((turn) =>
            editNode(turn, { blocks: turn.blocks.map((block) => editNode(block, {})) }),
          ),
        }
      : {}),
    ...(change === 'tools' ? { tools: [...conversation.tools] } : {}),
    ...(change === 'settings' ? { settings: { ...conversation.settings } } : {}),
  });
  const notes = new Notes();
  const out = openaiChat.encodeRequest(
    changed,
    { ...target(), model: body.model as string },
    notes,
  );
  return { out, notes };
};

function laws(all: readonly (readonly [string, JsonObject])[]): void {
  test('an untouched request comes out deep-equal and without notes', () => {
    expect(all.length).toBeGreaterThan(3);
    for (const [name, body] of all) {
      const { out, notes } = encode(body, 'none');
      expect({ name, out }).toEqual({ name, out: body });
      expect(notes.size).toBe(0);
    }
  });

  for (const change of ['turns', 'settings'] as const) {
    test(`a new list of the same ${change} comes out deep-equal`, () => {
      for (const [name, body] of all) {
        expect({ name, out: encode(body, change).out }).toEqual({ name, out: body });
      }
    });
  }

  test('a new list of the same tools comes out deep-equal, legacy functions as tools', () => {
    for (const [name, body] of all) {
      const { functions, ...rest } = body;
      const expected = Array.isArray(functions)
        ? { ...rest, tools: functions.map((f) => ({ type: 'function', function: f })) }
        : rest;
      if (Array.isArray(expected.tools) && expected.tools.length === 0) continue;
      expect({ name, out: encode(body, 'tools').out }).toEqual({ name, out: expected });
    }
  });

  test('edited nodes with the same content are the same on the wire', () => {
    for (const [name, body] of all) {
      const { out } = encode(body, 'edit');
      expect({ name, messages: meaning(out) }).toEqual({ name, messages: meaning(body) });
    }
  });
}

/** Messages without optional empties: null or absent content, empty and null members. */
function meaning(body: JsonObject): unknown {
  return (body.messages as JsonObject[]).map((message) => {
    const out: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(message)) {
      const empty = value === null || value === '' || (Array.isArray(value) && value.length === 0);
      if (!empty) out[key] = value;
    }
    // Clients of local servers send `index` and similar fields on calls; they stay too.
    return out;
  });
}

if (haveFixtures) describe('recorded requests', () => laws(bodies));
else test.skip('SKIPPED: recorded requests are not available', () => {});

if (haveCaptures) describe('captured requests', () => laws(capturedBodies()));
else test.skip('SKIPPED: captured requests are not available', () => {});
