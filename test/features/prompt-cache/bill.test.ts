/** What sessions cost at vendors whose prompt caches follow the documented rules, for each client. */

import { describe, expect, test } from 'bun:test';
import { billOf, CLIENTS, sentBodies, VENDORS } from '../../support/prompt-caches/bill.ts';
import { CLAUDE_PRICES, claudeCache, costOf } from '../../support/prompt-caches/caches.ts';
import { PROMPTS } from '../../support/prompt-caches/prompts.ts';
import { BROKEN_SESSIONS, REQUESTS, SESSIONS } from '../../support/prompt-caches/sessions.ts';

/** Of the best bill. */
const MAX = 1.1;

/** A client that sets all marks itself has chosen where they stand. */
const marksItself = (client: string, vendor: string, session: string) =>
  client === 'anthropic-messages' &&
  vendor.startsWith('Claude') &&
  session === 'failover in bursts, and back';

for (const [name, vendor] of Object.entries(VENDORS)) {
  describe(`${name}: no session costs more than ${MAX} times the best bill`, () => {
    for (const client of CLIENTS) {
      test(`from ${client}`, () => {
        const bills = Object.entries({ ...SESSIONS, ...BROKEN_SESSIONS })
          .filter(([session]) => !marksItself(client, name, session))
          .map(([session, asked]) => [session, billOf(client, vendor, asked).best] as const);
        expect(bills.filter(([, best]) => !(best <= MAX))).toEqual([]);
      });
    }
  });
}

test('a client of Messages: its bodies reach Claude byte for byte, whatever marks they have', () => {
  const vendor = VENDORS['Claude (Anthropic)']!;
  for (const asked of Object.values(SESSIONS)) {
    const { bodies } = sentBodies('anthropic-messages', vendor, asked);
    const came = asked
      .filter(({ away }) => away !== true)
      .map((one) => REQUESTS['anthropic-messages'](one, vendor.model));
    expect(bodies.map(({ body }) => JSON.stringify(body))).toEqual(
      came.map((body) => JSON.stringify(body)),
    );
  }
});

test('the broken sessions are repaired, and long results are shortened', () => {
  const bodies = (vendor: string, asked: (typeof SESSIONS)[string] | undefined) =>
    JSON.stringify(sentBodies('openai-chat', VENDORS[vendor]!, asked!).bodies.at(-1)!.body);
  const claude = (name: string) => bodies('Claude (Anthropic)', BROKEN_SESSIONS[name]);
  const own = (name: string) =>
    JSON.stringify(REQUESTS['openai-chat'](BROKEN_SESSIONS[name]!.at(-1)!, 'm'));
  const lost = 'results of calls that are not there';
  expect([own(lost), claude(lost)].map((text) => text.includes('call_lost'))).toEqual([
    true,
    false,
  ]);
  const ids = (text: string, key: string) =>
    new Set(text.match(new RegExp(`"${key}":"[^"]*`, 'g'))).size;
  const cut = claude('calls without results');
  expect(ids(cut, 'tool_use_id')).toBe(ids(cut, 'id'));
  const agent = SESSIONS['an agent, 30 turns'];
  expect(bodies('GLM, which gets short results', agent).length).toBeLessThan(
    0.7 * bodies('Claude (Anthropic)', agent).length,
  );
});

test('the cache that judges: without any mark an agent pays many times the best bill', () => {
  const vendor = VENDORS['Claude (Anthropic)']!;
  const { bodies } = sentBodies('openai-chat', vendor, SESSIONS['an agent, 30 turns']!);
  const cost = (marked: boolean) => {
    const cache = claudeCache(vendor.least);
    return bodies.reduce((sum, { body, at }) => {
      const { pieces } = PROMPTS['anthropic-messages'](body);
      const bare = pieces.map(({ mark: _, ...piece }) => piece);
      return sum + costOf(cache.ask({ pieces: marked ? pieces : bare }, at), CLAUDE_PRICES);
    }, 0);
  };
  expect(cost(false) / cost(true)).toBeGreaterThan(4);
});
