/** The fake vendor's checks against recorded exchanges: they accept what real vendors accepted, and refuse the rest. */

import { describe, expect } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { checkChat } from './fake-upstream/check-chat.ts';
import { checkMessages } from './fake-upstream/check-messages.ts';
import { checkResponses } from './fake-upstream/check-responses.ts';
import { Refusal } from './fake-upstream/refusal.ts';
import { captures, fixtureRequest, fixtures, fixtureTest } from './fixtures.ts';

const CHECK = { chat: checkChat, messages: checkMessages, responses: checkResponses } as const;
type Kind = keyof typeof CHECK;
const VENDORS: Readonly<Record<string, readonly string[]>> = {
  chat: ['openai', 'azure'],
  messages: ['anthropic'],
  responses: ['openai', 'azure'],
};
const BETAS = 'context-management mcp-client structured-outputs compact fallback';

/** The refusal's message, or undefined; seals of the recordings cannot be checked here. */
function verdict(kind: Kind, body: JsonObject, headers: Record<string, string>) {
  try {
    CHECK[kind](body, headers, { anySeal: true });
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

// The vendor accepted an id that appeared in two turns; others report a refusal, so the check stays strict.
const STRICTER = /cross_provider_capability_replay/;

function recorded(kind: Kind, status: (code: number) => boolean) {
  return fixtures(
    (one) =>
      one.protocol === kind && VENDORS[kind]!.includes(one.provider) && status(one.status ?? 0),
  ).flatMap((fixture) => {
    const body = fixtureRequest(fixture);
    return body === undefined ? [] : [{ fixture, body }];
  });
}

describe('requests that the real vendors answered', () => {
  for (const kind of ['chat', 'messages', 'responses'] as const) {
    fixtureTest(
      `${kind}: every one of them passes`,
      () => {
        const all = recorded(kind, (code) => code === 200);
        expect(all.length).toBeGreaterThan(100);
        const wrong = all.flatMap(({ fixture, body }) => {
          const message = verdict(kind, body, { 'anthropic-beta': BETAS });
          return message === undefined || STRICTER.test(fixture.file)
            ? []
            : [[fixture.file, message]];
        });
        expect(wrong).toEqual([]);
      },
      60_000,
    );
  }
});

describe('requests that the real vendors refused for their shape', () => {
  const wanted: readonly (readonly [Kind, string, RegExp])[] = [
    ['messages', 'handles-empty-string-content', /all messages must have non-empty content/],
    ['chat', 'handles-optional-properties-in-strict-mode', /'additionalProperties' is required/],
    ['responses', 'test_openai_responses_model_http_error', /decimal below minimum value/],
    ['responses', 'thinking_with_modified_history', /without its required following item/],
  ];
  for (const [kind, name, textPart] of wanted) {
    fixtureTest(`${kind}: ${name}`, () => {
      const cases = recorded(kind, (code) => code === 400).filter(({ fixture }) =>
        fixture.file.includes(name),
      );
      expect(cases.length).toBeGreaterThan(0);
      for (const { body } of cases) expect(verdict(kind, body, {})).toMatch(textPart);
    });
  }
});

describe('requests that real clients send', () => {
  // Their scripted vendor did not think, so these histories lack the required thinking; Qwen's numbers differ;
  // WebSocket frames are not requests.
  const KNOWN =
    /^messages\.\d+\.content\.0\.type: Expected `thinking`|^`max_tokens` must be greater/;
  const clients = ['claude-code', 'codex', 'opencode', 'pi', 'qwen', 'cline', 'sdk-openai-agents'];
  fixtureTest(
    'every first request and every tool round passes',
    () => {
      let count = 0;
      const wrong = clients.flatMap(captures).flatMap(({ name, path, headers, body }) => {
        const kind = (
          { messages: 'messages', completions: 'chat', responses: 'responses' } as const
        )[path.split('/').at(-1) as 'messages'];
        if (kind === undefined || !body || name.includes('-WS-')) return [];
        count++;
        const message = verdict(kind, body, headers);
        return message === undefined || KNOWN.test(message) ? [] : [[name, message]];
      });
      expect(count).toBeGreaterThan(200);
      expect(wrong).toEqual([]);
    },
    60_000,
  );
});
