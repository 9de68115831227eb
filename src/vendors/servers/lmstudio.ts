/** LM Studio, which knows forced tools only as a word. */

import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

export const lmstudio: Vendor = {
  name: 'LM Studio',
  presets: { lmstudio: local(1234, 'lmstudio', { aliases: ['lm-studio'], discovered: true }) },
  profiles: {
    lmstudio: {
      ...TEMPLATE,
      // Only these strings, no object that names a tool.
      toolChoices: ['auto', 'none', 'required'],
      // https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189
      jsonObject: false,
      reasoningField: 'reasoning_content',
      documents: false,
    },
  },
  words: [
    {
      source: 'github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546',
      context_overflow: [/context the overflows|truncate prompt with n_keep/i],
    },
    {
      source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
      context_overflow: [/greater than (?:the )?(?:model.s )?context length/i],
    },
    {
      source: 'github.com/trvon/agent',
      not_found: [
        /failed to load model|model is unloaded|no models loaded|model \S{0,90} is not loaded/i,
      ],
    },
    {
      source: 'github.com/lmstudio-ai/lmstudio-bug-tracker',
      overloaded: [
        /^model unloaded\b|model has crashed without additional information|^(?:error: )?channel error$/i,
      ],
    },
  ],
};
