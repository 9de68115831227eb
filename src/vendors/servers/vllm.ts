/** vLLM, a server of models with their own templates. */

import { local, type Vendor } from '../vendor.ts';
import { TEMPLATE } from './template.ts';

export const vllm: Vendor = {
  name: 'vLLM',
  presets: { vllm: local(8000, 'vllm', { discovered: true }) },
  profiles: {
    vllm: {
      ...TEMPLATE,
      // Beside functions those that gpt-oss knows.
      toolTypes: ['function', 'code_interpreter', 'web_search_preview', 'mcp'],
      reasoningField: 'reasoning',
      // github.com/vllm-project/vllm/pull/28248
      readableReasoning: true,
      // github.com/vllm-project/vllm/pull/8942
      prefill: 'continue',
      prefillWhileThinking: false,
      documents: false,
    },
  },
  words: [
    {
      source: 'github.com/vllm-project/vllm vllm/v1/engine/processor.py',
      context_overflow: [
        /longer than the maximum model length/i,
        /prompt \(length \d{1,9}\)/i,
        /max_model_len/,
      ],
    },
  ],
};
