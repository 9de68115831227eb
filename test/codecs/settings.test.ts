/** A setting goes out in each protocol, or a note says that it was dropped: none is lost in silence. */

import { expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { Conversation, Settings } from '../../src/conversation/types.ts';
import { PROFILES } from '../../src/vendors/index.ts';

/** A value of each setting that is not what vendors do without it. The compiler asks for that of a new one. */
const EXAMPLES: Required<Omit<Settings, 'rest'>> = {
  stream: true,
  streamUsage: true,
  maxTokens: 100,
  temperature: 0.5,
  topP: 0.5,
  topK: 5,
  stop: ['END'],
  seed: 7,
  n: 2,
  presencePenalty: 0.5,
  frequencyPenalty: 0.5,
  logitBias: { '1': 5 },
  logprobs: { top: 2 },
  toolChoice: { type: 'required' },
  parallelTools: false,
  reasoning: { enabled: true, effort: 'high' },
  format: { type: 'json' },
  verbosity: 'low',
  metadata: { team: 'web' },
  user: 'ann',
  serviceTier: 'flex',
  cacheKey: 'session-1',
  store: true,
  previousResponseId: 'resp_1',
  include: ['web_search_call.action.sources'],
};

function sent(to: ProtocolName, settings: Partial<Settings>): string {
  const conversation = {
    model: 'm',
    system: [],
    turns: [{ role: 'user', blocks: [{ type: 'text', text: 'a' }] }],
    tools: [{ type: 'function', name: 'f', schema: { type: 'object', properties: {} } }],
    settings: { stream: false, ...settings },
  } as unknown as Conversation;
  const notes = new Notes();
  const target = { provider: 'p', model: 'm', protocol: to, profile: NO_PROFILE };
  const body = CODECS[to].encodeRequest(conversation, target, notes);
  return JSON.stringify([body, notes.all]);
}

/** Usage comes in every protocol, asked for or not. Only a body of Responses has an id before it, and keeps it. */
const SILENT: Readonly<Record<ProtocolName, readonly string[]>> = {
  'openai-chat': ['streamUsage'],
  'openai-responses': ['streamUsage', 'previousResponseId'],
  'anthropic-messages': ['streamUsage'],
  'google-gemini': ['streamUsage'],
};

test.each(PROTOCOL_NAMES)('%s', (to) => {
  const silent: readonly string[] = (Object.keys(EXAMPLES) as (keyof typeof EXAMPLES)[]).filter(
    (name) => sent(to, { [name]: EXAMPLES[name] }) === sent(to, {}),
  );
  expect(silent).toEqual([...SILENT[to]]);
});

test('labels of Gemini reach Chat as metadata, and no note says that they were dropped', () => {
  const conversation = CODECS['google-gemini'].decodeRequest({
    model: 'm',
    contents: [{ role: 'user', parts: [{ text: 'a' }] }],
    labels: { team: 'web' },
  });
  const notes = new Notes();
  const target = {
    provider: 'p',
    model: 'm',
    protocol: 'openai-chat',
    profile: NO_PROFILE,
  } as const;
  const body = CODECS['openai-chat'].encodeRequest(conversation, target, notes);
  expect(body.metadata).toEqual({ team: 'web' });
  expect(notes.all).toEqual([]);
});

test('several answers are asked for only where the client gets them', () => {
  const asked = {
    'openai-chat': { messages: [{ role: 'user', content: 'a' }], n: 2 },
    'google-gemini': {
      contents: [{ role: 'user', parts: [{ text: 'a' }] }],
      generationConfig: { candidateCount: 2 },
    },
  } as const;
  for (const from of ['openai-chat', 'google-gemini'] as const) {
    for (const to of PROTOCOL_NAMES) {
      const notes = new Notes();
      const target = { provider: 'p', model: 'm', protocol: to, profile: NO_PROFILE };
      const given = CODECS[from].decodeRequest({ model: 'm', ...asked[from] });
      const sent = JSON.stringify(CODECS[to].encodeRequest(given, target, notes));
      const isAsked = /"(?:n|candidateCount)":2/.test(sent);
      expect([from, to, isAsked]).toEqual([from, to, from === to]);
      expect(notes.all.some(({ where }) => where === 'n')).toBe(from !== to);
    }
  }
});

// https://github.com/ogx-ai/ogx/issues/5452, https://github.com/BerriAI/litellm/pull/34959
test.each([
  ['auto', undefined, []],
  ['default', 'standard', []],
  ['flex', 'flex', []],
  ['priority', 'priority', []],
  ['scale', undefined, ['parameter_dropped']],
])('the tier %p of OpenAI’s clients is %p at Gemini', (asked, tier, noted) => {
  for (const [from, body] of [
    ['openai-chat', { messages: [{ role: 'user', content: 'a' }] }],
    ['openai-responses', { input: 'a' }],
  ] as const) {
    const notes = new Notes();
    const profile = NO_PROFILE;
    const target = { provider: 'p', model: 'm', protocol: 'google-gemini', profile } as const;
    const given = CODECS[from].decodeRequest({ model: 'm', ...body, service_tier: asked });
    const sent = CODECS['google-gemini'].encodeRequest(given, target, notes);
    expect([sent.serviceTier, notes.all.map(({ name }) => name)]).toEqual([tier, noted]);
  }
});

test.each([
  ['flex', 'flex'],
  ['SERVICE_TIER_FLEX', 'flex'],
  ['SERVICE_TIER_PRIORITY', 'priority'],
  ['standard', 'default'],
  ['SERVICE_TIER_UNSPECIFIED', undefined],
])('the tier %p of Gemini’s clients is %p at OpenAI', (serviceTier, tier) => {
  const contents = [{ role: 'user', parts: [{ text: 'a' }] }];
  const given = CODECS['google-gemini'].decodeRequest({ model: 'm', contents, serviceTier });
  const profile = PROFILES.openai!;
  for (const to of ['openai-chat', 'openai-responses'] as const) {
    const target = { provider: 'p', model: 'm', protocol: to, profile };
    const sent = CODECS[to].encodeRequest(given, target, new Notes());
    expect([to, sent.service_tier]).toEqual([to, tier]);
  }
});

test.each([
  ['openai-chat', 'openai-responses', { messages: [{ role: 'user', content: 'a' }] }],
  ['openai-responses', 'openai-chat', { input: 'a' }],
] as const)(
  'a safety identifier longer than OpenAI takes is its hash: %s onto %s',
  (from, to, body) => {
    const encoded = (identifier: string) => {
      const notes = new Notes();
      const target = { provider: 'v', model: 'm', protocol: to, profile: NO_PROFILE };
      const asked = CODECS[from].decodeRequest({
        model: 'm',
        ...body,
        safety_identifier: identifier,
      });
      const { safety_identifier: sent } = CODECS[to].encodeRequest(asked, target, notes);
      return [sent, notes.all.map(({ name }) => name)];
    };
    expect(encoded('x'.repeat(64))).toEqual(['x'.repeat(64), []]);
    const [sent, noted] = encoded('x'.repeat(65));
    expect(sent).toMatch(/^[0-9a-f]{64}$/);
    expect(noted).toEqual(['parameter_mapped']);
    expect(encoded('x'.repeat(65))[0]).toBe(sent!);
    expect(encoded('y'.repeat(65))[0]).not.toBe(sent!);
  },
);
