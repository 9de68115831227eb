/** Vendor facts of OpenAI and of Azure's copy of it: which models reason, and what they then refuse. */

import type { Facts, ProfileFacts } from './profile-schema.ts';
import { OPENAI_ERRORS } from './vendor-errors.ts';

type Profiles = Readonly<Record<string, Omit<ProfileFacts, 'name'>>>;

/** Reasoning models take no stop sequences, and sampling only where they do not reason. */
const reasoning = { samplingWhileThinking: false, maxStops: 0 } as const;
const always = { ...reasoning, thinkingDefault: 'always' } as const;

// Efforts are narrowed only for generations that will not get new ones: a model that came after this
// table takes what the client asks.
const models: Readonly<Record<string, Facts>> = {
  'o1*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o3*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o4*': { ...always, efforts: ['low', 'medium', 'high'] },
  'gpt-5*': reasoning,
  'gpt-5': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  'gpt-5-*': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  'gpt-5-codex*': { efforts: ['low', 'medium', 'high'] },
  'gpt-5-pro*': { efforts: ['high'] },
  // Reasoning is asked for…
  'gpt-5.1*': { thinkingDefault: 'off' },
  'gpt-5.2*': { thinkingDefault: 'off' },
  'gpt-5.3*': { thinkingDefault: 'off' },
  'gpt-5.4*': { thinkingDefault: 'off' },
  // …on by itself…
  'gpt-5.5*': { thinkingDefault: 'on' },
  'gpt-5.6*': { thinkingDefault: 'on' },
  // …or not to be switched off.
  'gpt-5.1-codex*': { thinkingDefault: 'always' },
  'gpt-5.?-chat*': { thinkingDefault: 'always' },
  'gpt-5.?-pro*': { thinkingDefault: 'always' },
};

const chat = {
  maxTokensParam: 'max_completion_tokens',
  developerRole: true,
  reasoningField: 'none',
  reasoningParam: 'reasoning_effort',
  // "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16".
  leastMaxTokens: 16,
  // "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
  rootUnions: false,
  fileIds: true,
  temperature: { min: 0, max: 2 },
  maxStops: 4,
  // Stripped channel marks, and calls glued into prose as JSON.
  leakFamilies: ['harmony', 'json'],
  errors: OPENAI_ERRORS,
  models,
} as const;

export const OPENAI_PROFILES: Profiles = {
  openai: {
    ...chat,
    storesResponses: true,
    hostedTools: [
      'web_search',
      'file_search',
      'code_execution',
      'image_generation',
      'computer_use',
      'mcp',
      'tool_search',
      'shell',
      'local_shell',
      'apply_patch',
    ],
  },
  'openai-chat': { ...chat },
  // No `file` parts in Azure's Chat.
  azure: { ...chat, documents: false, fileIds: false },
};
