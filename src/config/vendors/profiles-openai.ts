/** Vendor facts of OpenAI and Azure: which models reason, and what they then refuse. */

import { OPENAI_ERRORS } from '../../conversation/vendor-errors/codes.ts';
import { type Facts, NEVER_REASONS, type ProfileFacts } from './profile-schema.ts';

type Profiles = Readonly<Record<string, Omit<ProfileFacts, 'name'>>>;

/** Reasoning models accept no stop sequences, and sampling settings only when they do not reason. */
const reasoning = { samplingWhileThinking: false, maxStops: 0 } as const;
const always = { ...reasoning, thinkingDefault: 'always' } as const;

// Efforts are limited only for generations that will get no new ones. A model that is newer than this table
// gets what the client asks for.
const models: Readonly<Record<string, Facts>> = {
  'o1*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o3*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o4*': { ...always, efforts: ['low', 'medium', 'high'] },
  'gpt-5*': reasoning,
  'gpt-5': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  'gpt-5-*': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  // "Unsupported parameter: 'reasoning.effort' is not supported with this model."
  'gpt-3.5*': NEVER_REASONS,
  'gpt-4*': NEVER_REASONS,
  'chatgpt-4o*': NEVER_REASONS,
  'gpt-5-chat*': { ...NEVER_REASONS, maxStops: 4 },
  'gpt-5-codex*': { efforts: ['low', 'medium', 'high'] },
  'gpt-5-pro*': { efforts: ['high'] },
  // Reasoning must be requested…
  'gpt-5.1*': { thinkingDefault: 'off' },
  'gpt-5.2*': { thinkingDefault: 'off' },
  'gpt-5.3*': { thinkingDefault: 'off' },
  'gpt-5.4*': { thinkingDefault: 'off' },
  // …is on by default…
  'gpt-5.5*': { thinkingDefault: 'on' },
  'gpt-5.6*': { thinkingDefault: 'on' },
  // …or cannot be switched off.
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
  // Markup without its channel marks, and calls as JSON in the middle of prose.
  leakFamilies: ['harmony', 'json'],
  errors: OPENAI_ERRORS,
  models,
} as const;

export const OPENAI_PROFILES: Profiles = {
  openai: {
    ...chat,
    storesResponses: true,
    compaction: true,
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
  // "Image URLs are only allowed for messages with role 'user'".
  'openai-chat': { ...chat, imagesInResults: false },
  // No `file` parts in Azure's Chat.
  azure: { ...chat, documents: false, fileIds: false },
};
