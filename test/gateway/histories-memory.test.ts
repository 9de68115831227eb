/** Memory for histories is bounded: thousands of sessions later the heap is what it was. */

import { heapStats } from 'bun:jsc';
import { expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { clientRequest } from '../../src/gateway/client-request.ts';
import { Histories } from '../../src/gateway/histories/histories.ts';
import { prepare } from '../../src/gateway/prepare.ts';
import { Abort } from '../../src/lib/loop/abort.ts';

const LIMIT = 8 * 1024 * 1024;
const FILLER = 'words of a history, '.repeat(3500);

async function turn(histories: Histories, session: number): Promise<void> {
  const protocol = CODECS['openai-chat'];
  const messages = [
    { role: 'system', content: `session ${session}` },
    { role: 'user', content: FILLER },
  ];
  const request = await clientRequest(
    protocol,
    Buffer.from(JSON.stringify({ model: 'm', messages })),
    {
      histories,
      asker: { owner: 'one', protocol, sessionId: String(session) },
    },
  );
  await prepare({
    request,
    target: { provider: 'p', model: 'm', protocol: 'anthropic-messages', profile: NO_PROFILE },
    protocol: CODECS['anthropic-messages'],
    features: [],
    notes: new Notes(),
    hop: { number: 1 },
    abort: new Abort(),
  });
}

/** Bytes of the heap, and what objects hold outside of it. */
function held(): number {
  Bun.gc(true);
  const { heapSize, extraMemorySize } = heapStats();
  return heapSize + extraMemorySize;
}

test('the heap is flat over 10,000 sessions', async () => {
  const histories = new Histories(() => LIMIT);
  for (let i = 0; i < 1000; i++) await turn(histories, i);
  const before = held();
  for (let i = 1000; i < 10_000; i++) await turn(histories, i);
  const after = held();
  expect(histories.held).toBeLessThanOrEqual(LIMIT);
  // A thousandth of what went through.
  expect(after - before).toBeLessThan((9000 * FILLER.length) / 1000);
}, 120_000);
