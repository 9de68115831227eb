/** Ollama: a server on the own machine. */

import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

export const ollama: Vendor = {
  name: 'Ollama',
  presets: { ollama: local(11434, 'ollama', { discovered: true }) },
  profiles: {
    ollama: {
      ...TEMPLATE,
      strictTools: false,
      reasoningField: 'reasoning',
      documents: false,
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
