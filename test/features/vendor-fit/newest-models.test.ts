/** Requests of all four clients to the models of autumn 2026: a strict fake refuses in the vendor's words what it does not take. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { isObject, type JsonObject } from '../../../src/lib/json/json.ts';
import { targetOf, vendorRequest } from './vendor.ts';

/** Undefined: the vendor takes the body. */
type Check = (body: JsonObject, model: string) => string | undefined;

const member = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (isObject(at as never) ? (at as JsonObject)[key] : undefined),
    value,
  );

const named = (choice: unknown) =>
  choice === 'required' || ['any', 'tool', 'function'].includes(String(member(choice, 'type')));

/** https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5, …/sonnet-5-5/whats-new-sonnet-5-5, …/migration-guide */
const claude =
  (types: readonly string[], forced: boolean): Check =>
  (body) => {
    const type = member(body, 'thinking', 'type');
    if (type !== undefined && !types.includes(String(type))) {
      return `"thinking.type.${type}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`;
    }
    if (!forced && named(body.tool_choice)) {
      return 'tool_choice: type "tool" and "any" are not supported for this model.';
    }
    for (const name of ['temperature', 'top_p', 'top_k']) {
      if (body[name] !== undefined) return `\`${name}\` is deprecated for this model.`;
    }
    const effort = member(body, 'output_config', 'effort');
    if (type === 'between_tools' && ['xhigh', 'max'].includes(String(effort))) {
      return 'between_tools is not supported at this effort.';
    }
    if (
      effort !== undefined &&
      !['low', 'medium', 'high', 'xhigh', 'max'].includes(String(effort))
    ) {
      return `output_config.effort: ${effort}`;
    }
    if ((body.messages as readonly JsonObject[]).at(-1)!.role === 'assistant') {
      return 'This model does not support assistant message prefill. The conversation must end with a user message.';
    }
    return undefined;
  };

/** https://github.com/BerriAI/litellm/pull/34569, https://github.com/bolna-ai/bolna/pull/1019, https://github.com/BerriAI/litellm-docs/pull/1173 */
const gpt =
  (efforts: readonly string[], { noSampling = true, reasons = true } = {}): Check =>
  (body, model) => {
    const chat = body.messages !== undefined;
    const effort = chat ? body.reasoning_effort : member(body, 'reasoning', 'effort');
    const name = chat ? 'reasoning_effort' : 'reasoning.effort';
    if (effort !== undefined && !efforts.includes(String(effort))) {
      return `Unsupported value: '${name}' does not support '${effort}' with this model.`;
    }
    if (chat && body.tools !== undefined && effort !== 'none') {
      return `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`;
    }
    const on = effort === undefined ? reasons : effort !== 'none';
    for (const key of ['temperature', 'top_p']) {
      if (body[key] !== undefined && (noSampling || (on && body[key] !== 1))) {
        return `Unsupported parameter: '${key}' is not supported with this model.`;
      }
    }
    if (body.stop !== undefined)
      return "Unsupported parameter: 'stop' is not supported with this model.";
    if (chat && body.max_tokens !== undefined) {
      return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    }
    return undefined;
  };

/** https://platform.kimi.ai/docs/guide/use-reasoning-effort; https://github.com/enricoros/big-AGI/issues/1161 */
const kimi: Check = (body) => {
  if (body.thinking !== undefined) return 'cannot specify thinking';
  const effort = body.reasoning_effort;
  if (effort !== undefined && !['low', 'high', 'max'].includes(String(effort))) {
    return `invalid reasoning_effort: ${effort}`;
  }
  if (named(body.tool_choice))
    return "tool_choice 'specified' is incompatible with thinking enabled";
  for (const key of ['temperature', 'top_p', 'n', 'presence_penalty', 'frequency_penalty']) {
    if (body[key] !== undefined) return `invalid ${key}: only 1 is allowed for this model`;
  }
  return undefined;
};

/** https://docs.x.ai/developers/model-capabilities/text/reasoning */
const grok =
  (efforts: readonly string[]): Check =>
  (body) => {
    const effort = body.reasoning_effort;
    if (effort !== undefined && !efforts.includes(String(effort)))
      return `reasoning_effort: ${effort}`;
    for (const key of ['presence_penalty', 'frequency_penalty', 'stop']) {
      if (body[key] !== undefined) return `Argument not supported on this model: ${key}`;
    }
    return undefined;
  };

/** https://api-docs.deepseek.com/guides/thinking_mode: a forced tool only without thinking, two efforts. */
const deepseek: Check = (body) => {
  const off = member(body, 'thinking', 'type') === 'disabled';
  if (named(body.tool_choice) && !off) return 'deepseek-reasoner does not support this tool_choice';
  const effort = body.reasoning_effort;
  if (effort !== undefined && !['high', 'max'].includes(String(effort))) return `effort ${effort}`;
  return undefined;
};

const ALWAYS = claude(['adaptive'], false);
const GPT54 = ['none', 'low', 'medium', 'high', 'xhigh'];
const GPT6 = ['low', 'medium', 'high', 'xhigh'];

const MODELS: readonly (readonly [string, string, Check, ProtocolName?])[] = [
  ['anthropic', 'claude-opus-5-5', ALWAYS],
  ['anthropic', 'claude-opus-5-5-20260922', ALWAYS],
  ['anthropic', 'claude-fable-5-1', ALWAYS],
  ['anthropic', 'claude-fable-5-2', ALWAYS],
  ['vertex-claude', 'claude-opus-5-5@default', ALWAYS, 'anthropic-messages'],
  ['bedrock-claude', 'us.anthropic.claude-opus-5-5-v1:0', ALWAYS, 'anthropic-messages'],
  ['anthropic', 'claude-sonnet-5-5', claude(['adaptive', 'between_tools'], false)],
  ['anthropic', 'claude-haiku-5-5', claude(['adaptive', 'disabled'], true)],
  ['anthropic', 'claude-opus-5', claude(['adaptive', 'disabled'], true)],
  // Newer than the file: as the newest of the family.
  ['anthropic', 'claude-opus-6', ALWAYS],
  ['openai', 'gpt-6-astra', gpt([...GPT6, 'max']), 'openai-responses'],
  ['openai', 'gpt-6.1-sol', gpt([...GPT6, 'max']), 'openai-responses'],
  ['openai', 'gpt-6-sol', gpt(['none', ...GPT6, 'max']), 'openai-responses'],
  ['openai', 'gpt-6-luna', gpt(['none', ...GPT6, 'max']), 'openai-responses'],
  ['openai', 'gpt-6.2-sol', gpt([...GPT6, 'max']), 'openai-responses'],
  ['openai', 'gpt-5.6-terra', gpt([...GPT54, 'max'], { noSampling: false }), 'openai-responses'],
  ['openai-chat', 'gpt-6-sol', gpt(['none', ...GPT6])],
  ['openai-chat', 'gpt-6-luna', gpt(['none', ...GPT6])],
  ['openai-chat', 'gpt-5.4', gpt(GPT54, { noSampling: false, reasons: false })],
  ['openai-chat', 'gpt-5.5', gpt(GPT54, { noSampling: false })],
  ['openai-chat', 'gpt-5.6-sol', gpt([...GPT54, 'max'], { noSampling: false })],
  ['azure', 'gpt-5.4', gpt(GPT54, { noSampling: false, reasons: false }), 'openai-chat'],
  ['azure', 'gpt-5.6', gpt([...GPT54, 'max'], { noSampling: false }), 'openai-chat'],
  ['kimi', 'kimi-k3', kimi],
  ['kimi', 'kimi-k3.1-pro', kimi],
  ['xai', 'grok-4.5', grok(['low', 'medium', 'high'])],
  ['xai', 'grok-4.7', grok(['low', 'medium', 'high', 'xhigh'])],
  ['xai', 'grok-5', grok(['low', 'medium', 'high', 'xhigh'])],
  ['deepseek', 'deepseek-v4-flash', deepseek],
  ['deepseek', 'deepseek-v4-pro', deepseek],
];

const SCHEMA = { type: 'object', properties: {} };

/** What a client may ask for, in each protocol. */
const REQUESTS: Readonly<Record<ProtocolName, Readonly<Record<string, JsonObject>>>> = {
  'anthropic-messages': {
    'thinking off': { thinking: { type: 'disabled' } },
    'thinking off, effort max': {
      thinking: { type: 'disabled' },
      output_config: { effort: 'max' },
    },
    'a budget': { thinking: { type: 'enabled', budget_tokens: 8000 } },
    'effort max': { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
    sampling: { temperature: 0.3, top_p: 0.9, top_k: 5 },
    stops: { stop_sequences: ['END'] },
    tools: { tools: [{ name: 'f', input_schema: SCHEMA }] },
    'any tool': {
      tools: [{ name: 'f', input_schema: SCHEMA }],
      tool_choice: { type: 'any' },
      thinking: { type: 'adaptive' },
    },
    'one tool': {
      tools: [{ name: 'f', input_schema: SCHEMA }],
      tool_choice: { type: 'tool', name: 'f' },
    },
    'a prefill': {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Well' },
      ],
    },
  },
  'openai-chat': {
    'thinking off': { reasoning_effort: 'none' },
    minimal: { reasoning_effort: 'minimal' },
    'effort max': { reasoning_effort: 'max' },
    sampling: { temperature: 0.3, top_p: 0.9 },
    stops: { stop: ['END'], max_tokens: 100 },
    penalties: { presence_penalty: 1, frequency_penalty: 1 },
    tools: { tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }] },
    'tools and effort': {
      tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
      reasoning_effort: 'high',
    },
    'any tool': {
      tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
      tool_choice: 'required',
    },
    'one tool': {
      tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
    },
  },
  'openai-responses': {
    'thinking off': { reasoning: { effort: 'none' } },
    minimal: { reasoning: { effort: 'minimal' } },
    'effort max': { reasoning: { effort: 'max', summary: 'auto' } },
    sampling: { temperature: 0.3, top_p: 0.9 },
    tools: { tools: [{ type: 'function', name: 'f', parameters: SCHEMA }] },
    'any tool': {
      tools: [{ type: 'function', name: 'f', parameters: SCHEMA }],
      tool_choice: 'required',
      reasoning: { effort: 'high' },
    },
    'one tool': {
      tools: [{ type: 'function', name: 'f', parameters: SCHEMA }],
      tool_choice: { type: 'function', name: 'f' },
    },
  },
  'google-gemini': {
    'thinking off': { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
    'a budget': { generationConfig: { thinkingConfig: { thinkingBudget: 8000 } } },
    'a level': { generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
    sampling: { generationConfig: { temperature: 0.3, topP: 0.9, topK: 5 } },
    stops: { generationConfig: { stopSequences: ['END'] } },
    tools: { tools: [{ functionDeclarations: [{ name: 'f', parameters: SCHEMA }] }] },
    'any tool': {
      tools: [{ functionDeclarations: [{ name: 'f', parameters: SCHEMA }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    },
  },
};

const BASE: Readonly<Record<ProtocolName, JsonObject>> = {
  'anthropic-messages': {
    model: 'any',
    max_tokens: 16_000,
    messages: [{ role: 'user', content: 'Hi' }],
  },
  'openai-chat': { model: 'any', messages: [{ role: 'user', content: 'Hi' }] },
  'openai-responses': { model: 'any', input: 'Hi' },
  'google-gemini': { model: 'any', contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
};

describe('a request of any client reaches a model in the form that it takes', () => {
  for (const [profile, model, check, protocol] of MODELS) {
    const target = targetOf(profile, model, protocol);
    for (const [client, requests] of Object.entries(REQUESTS)) {
      test(`${client} to ${profile}/${model}`, () => {
        for (const [what, more] of Object.entries(requests)) {
          const asked = { ...BASE[client as ProtocolName], ...more };
          const { body, again, idle, same } = vendorRequest(target, asked, client as ProtocolName);
          expect([what, check(body, model)]).toEqual([what, undefined]);
          expect([what, again]).toEqual([what, true]);
          if (idle) expect([what, same]).toEqual([what, true]);
        }
      });
    }
  }

  test('what a model takes goes as it came', () => {
    const asked = {
      ...BASE['anthropic-messages'],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'xhigh' },
      tools: [{ name: 'f', input_schema: SCHEMA }],
      tool_choice: { type: 'auto' },
    };
    const target = targetOf('anthropic', 'claude-opus-5-5');
    expect(vendorRequest(target, asked, 'anthropic-messages')).toMatchObject({
      same: true,
      notes: [],
    });
  });
});
