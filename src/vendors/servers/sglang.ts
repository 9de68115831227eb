/** SGLang, a server of models with their own templates. */

import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

export const sglang: Vendor = {
  name: 'SGLang',
  presets: { sglang: local(30000, 'sglang') },
  profiles: {
    sglang: {
      ...TEMPLATE,
      reasoningField: 'reasoning_content',
      documents: false,
      // Otherwise it takes the message for the user's: python/sglang/srt/entrypoints/openai/serving_chat.py
      prefill: 'continue',
      prefillWhileThinking: false,
    },
  },
  words: [
    {
      source: 'github.com/sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py',
      context_overflow: [/longer than the model.s (?:maximum )?context length/i],
      overloaded: [/aborted by a higher priority request/i],
    },
  ],
};
