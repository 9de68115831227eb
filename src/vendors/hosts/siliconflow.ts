/** SiliconFlow: open models, called by their makers before a slash. */

import { chat, type Vendor } from '../vendor.ts';

const SILICONFLOW = {
  profile: 'siliconflow',
  variables: ['SILICONFLOW_API_KEY'],
  models: ['*/*'],
};

export const siliconflow: Vendor = {
  name: 'SiliconFlow',
  topic: { words: 'siliconflow, siliconcloud, 硅基流动' },
  presets: {
    siliconflow: chat({
      ...SILICONFLOW,
      baseUrl: 'https://api.siliconflow.com/v1',
      catalogue: 'siliconflow',
      discovered: true,
    }),
    'siliconflow-cn': chat({
      ...SILICONFLOW,
      baseUrl: 'https://api.siliconflow.cn/v1',
      catalogue: 'siliconflow-cn',
    }),
  },
  profiles: {
    // https://docs.siliconflow.cn/docs/api/chat-completions-post
    siliconflow: {
      maxTokensParam: 'max_tokens',
      temperature: { min: 0, max: 2 },
      maxStops: 4,
      developerRole: false,
      reasoningField: 'reasoning_content',
      reasoningParam: 'enable_thinking',
      // https://docs.siliconflow.cn/en/faqs/error-code
      errors: { '20012': { kind: 'not_found', retryable: false } },
      // "reasoning_effort … for DeepSeek-V4 and GLM-5.2: high, max"
      models: {
        '*deepseek-v4*': { reasoningParam: 'reasoning_effort', efforts: ['high', 'max'] },
        '*glm-5.2*': { reasoningParam: 'reasoning_effort', efforts: ['high', 'max'] },
      },
    },
  },
  words: [
    {
      source: 'https://docs.siliconflow.cn/en/faqs/error-code',
      context_overflow: [/prompt_tokens \(\d{1,9}\) must be less than max_seq_len/i],
      not_found: [/model does not exist\. please check it|^model disabled/i],
    },
  ],
};
