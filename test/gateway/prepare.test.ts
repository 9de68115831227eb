/** A request is prepared at once where it is small, and pass by pass where it is large. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { withParts } from '../../src/conversation/edit.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { Feature } from '../../src/features/feature.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import { prepare } from '../../src/gateway/prepare.ts';
import { wholeBytes } from '../../src/lib/bytes/byte-list.ts';
import { Abort } from '../../src/lib/loop/abort.ts';

const bodyOf = (turns: number) =>
  JSON.stringify({
    model: 'm',
    max_tokens: 10,
    messages: Array.from({ length: turns }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `words of turn ${i}`,
    })),
  });

/** What is sent, and in which turn of the event loop each of three passes had its work. */
async function prepared(text: string, changes: boolean, protocol: Codec = openaiChat) {
  const turns: number[] = [];
  let turn = 0;
  let over = false;
  const count = () => {
    turn++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const pass: Feature = {
    name: 'pass',
    request(conversation) {
      turns.push(turn);
      return changes ? withParts(conversation, { turns: [...conversation.turns] }) : conversation;
    },
  };
  const request = new ClientRequest(anthropicMessages, new TextEncoder().encode(text));
  const preparation = {
    request,
    target: { provider: 'p', model: 'other', protocol: protocol.name, profile: { name: 'none' } },
    protocol,
    features: [pass, pass, pass],
    notes: new Notes(),
    hop: { number: 1 },
    abort: new Abort(),
  };
  const preparing = prepare(preparation);
  const { body } = await preparing;
  over = true;
  return {
    turns,
    body: new TextDecoder().decode(wholeBytes(body)),
    atOnce: !(preparing instanceof Promise),
  };
}

describe('a request', () => {
  test('that is small is prepared on return', async () => {
    const { turns, atOnce, body } = await prepared(bodyOf(10), true);
    expect(atOnce).toBe(true);
    expect(new Set(turns).size).toBe(1);
    expect(JSON.parse(body).messages).toHaveLength(10);
  });

  test('that is large lets other requests run between two passes', async () => {
    const { turns, atOnce, body } = await prepared(bodyOf(10_000), true);
    expect(atOnce).toBe(false);
    expect(new Set(turns).size).toBe(3);
    expect(JSON.parse(body).messages).toHaveLength(10_000);
  });

  test('that no pass changed goes out as it came, however large it is', async () => {
    for (const turns of [10, 10_000]) {
      const text = bodyOf(turns);
      const { body } = await prepared(text, false, anthropicMessages);
      expect(body).toBe(text.replace('"m"', '"other"'));
    }
  });
});
