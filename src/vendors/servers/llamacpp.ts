/** llama.cpp's server. */

import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

export const llamacpp: Vendor = {
  name: 'llama.cpp',
  presets: {
    llamacpp: local(8080, 'llamacpp', {
      aliases: ['llama.cpp', 'llama-cpp'],
      discovered: true,
      otherPorts: [9931],
    }),
  },
  profiles: {
    // It also serves Messages, on the same port.
    llamacpp: {
      ...TEMPLATE,
      // An object that names a tool counts as "auto"; only the server's log says so.
      toolChoices: ['auto', 'none', 'required'],
      reasoningField: 'reasoning_content',
      documents: false,
      countTokens: true,
    },
  },
  words: [
    {
      source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
      context_overflow: [/exceed_context_size/i, /exceeds the available context size/i],
    },
    {
      source: 'github.com/ggml-org/llama.cpp tools/server',
      context_overflow: [/input is too large to process/i],
      overloaded: [/loading model|slot unavailable/i],
    },
  ],
};
