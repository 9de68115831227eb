/** Ollama, which refuses to let a model think that cannot. */

import { NEVER_REASONS } from '../facts.ts';
import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

/** `"llama3.2" does not support thinking`. */
const PLAIN = [
  'llama2*',
  'llama3*',
  'codellama*',
  'tinyllama*',
  'mistral*',
  'mixtral*',
  'codestral*',
  'devstral*',
  'gemma',
  'gemma:*',
  'gemma2*',
  'gemma3*',
  'phi3*',
  'phi4',
  'phi4:*',
  'phi4-mini',
  'qwen2*',
  'deepseek-coder*',
  'starcoder*',
];

export const ollama: Vendor = {
  name: 'Ollama',
  presets: { ollama: local(11434, 'ollama', { discovered: true }) },
  profiles: {
    ollama: {
      ...TEMPLATE,
      strictTools: false,
      reasoningField: 'reasoning',
      documents: false,
      models: {
        ...TEMPLATE.models,
        ...Object.fromEntries(PLAIN.map((glob) => [glob, NEVER_REASONS])),
      },
    },
  },
  words: [
    {
      source: 'github.com/ollama/ollama',
      context_overflow: [/input length exceeds (?:the )?(?:maximum )?context length/i],
      not_found: [/model \S{0,90} not found|try pulling it first/i],
    },
  ],
};
