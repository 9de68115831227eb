/** More cache marks than vendors take: "A maximum of 4 blocks with cache_control may be provided. Found 5." */

import { expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { PromptCache, RequestTails } from '../../../src/features/prompt-cache/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';

const MARK = { cache_control: { type: 'ephemeral' } };
const texts = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ type: 'text', text: `${i}`, ...MARK }));
const ROOT = { cache_control: { type: 'ephemeral' } };

const inChat = (system: number, user: number, more: JsonObject = {}): JsonObject => ({
  model: 'claude-sonnet-5-5',
  messages: [
    { role: 'system', content: texts(system) },
    { role: 'user', content: texts(user) },
  ],
  ...more,
});
const inMessages = (system: number, user: number, more: JsonObject = {}): JsonObject => ({
  model: 'claude-sonnet-5-5',
  max_tokens: 99,
  system: texts(system),
  messages: [{ role: 'user', content: texts(user) }],
  ...more,
});

const REFUSED = { status: 400, json: { error: { message: 'the script ends here' } } };

async function marksSent(client: ProtocolName, target: ProtocolName, body: JsonObject) {
  const profile = target === 'openai-chat' ? 'openrouter' : 'anthropic';
  const cache = new PromptCache({ owner: '', sessionId: '' }, new RequestTails());
  const { ask, sent, summaries } = scriptedGateway(
    target,
    [REFUSED],
    [toolPairing, cache],
    'routes: [{ to: [up/claude-sonnet-5-5] }]',
    { profile },
  );
  await ask(client, body);
  const { system, messages } = sent[0] as { system?: JsonObject[]; messages: JsonObject[] };
  const parts = [...(system ?? []), ...messages.flatMap(({ content }) => content as JsonObject[])];
  return {
    marked: parts.filter((part) => part.cache_control !== undefined).map((part) => part.text),
    notes: summaries[0]!.notes.map(({ name }) => name),
  };
}

// https://github.com/router-for-me/CLIProxyAPI/issues/4795 (pi over Chat), https://github.com/Wei-Shaw/sub2api/pull/2144
// and https://github.com/Yeachan-Heo/gajae-code/issues/3934 (a mark at the top of the body).
test.each<[ProtocolName, ProtocolName, JsonObject, string[]]>([
  ['openai-chat', 'anthropic-messages', inChat(2, 4), ['0', '1', '2', '3']],
  ['openai-chat', 'openai-chat', inChat(2, 4), ['0', '1', '2', '3']],
  ['anthropic-messages', 'openai-chat', inMessages(2, 4), ['0', '1', '2', '3']],
  ['anthropic-messages', 'anthropic-messages', inMessages(2, 4), ['0', '1', '2', '3']],
  ['anthropic-messages', 'anthropic-messages', inMessages(2, 3, ROOT), ['0', '1', '2']],
  ['openai-chat', 'anthropic-messages', inChat(2, 3, ROOT), ['0', '1', '2']],
])('the last ones of a client of %s stay at %s', async (client, target, body, wanted) => {
  const { marked, notes } = await marksSent(client, target, body);
  expect(marked).toEqual(wanted);
  expect(notes).toContain('removed_2_cache_control_fields');
});

test('marks of whole Chat messages go, too', async () => {
  const messages = ['a', 'b', 'c', 'd', 'e'].map((content) => ({ role: 'user', content, ...MARK }));
  const cache = new PromptCache({ owner: '', sessionId: '' }, new RequestTails());
  const { ask, sent } = scriptedGateway('openai-chat', [REFUSED], [cache], '', {
    profile: 'openrouter',
  });
  await ask('openai-chat', { model: 'claude-sonnet-5-5', messages });
  expect(JSON.stringify(sent[0]).match(/cache_control/g)).toHaveLength(4);
});

test.each<[ProtocolName, ProtocolName, JsonObject]>([
  ['openai-chat', 'anthropic-messages', inChat(2, 2)],
  ['openai-chat', 'openai-chat', inChat(2, 2)],
  ['anthropic-messages', 'openai-chat', inMessages(2, 2)],
])('four of a client of %s go to %s as they came', async (client, target, body) => {
  const { marked, notes } = await marksSent(client, target, body);
  expect(marked).toEqual(['0', '1', '0', '1']);
  expect(notes.join(' ')).not.toContain('cache_control_fields');
});
