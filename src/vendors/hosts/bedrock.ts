/** Amazon Bedrock: Claude in Amazon's cloud. */

import { CLAUDE } from '../makers/anthropic.ts';
import type { Codes, Vendor } from '../vendor.ts';
import { CLOUD_BETAS, CLOUD_NAMES } from './cloud-claude.ts';

/** Amazon Bedrock names an error by its exception. https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html */
const ERRORS: Codes = {
  ServiceQuotaExceededException: { kind: 'quota' },
  ModelNotReadyException: { kind: 'overloaded', retryable: true },
  ModelErrorException: { kind: 'upstream', retryable: true },
};

export const bedrock: Vendor = {
  name: 'Bedrock',
  topic: { section: '/platforms#bedrock', words: 'bedrock, aws, amazon' },
  presets: {
    bedrock: {
      platform: 'bedrock',
      protocol: 'anthropic-messages',
      profile: 'bedrock-claude',
      endpoints: {},
      variables: ['AWS_BEARER_TOKEN_BEDROCK'],
      models: ['anthropic.claude-*', '*.anthropic.claude-*'],
      catalogue: 'amazon-bedrock',
    },
  },
  hosts: [
    {
      host: 'bedrock-runtime.*.amazonaws.com',
      catalogue: 'amazon-bedrock',
      telemetry: 'aws.bedrock',
    },
    { host: 'bedrock-runtime.*.amazonaws.com.cn', catalogue: 'amazon-bedrock' },
    { host: '*.amazonaws.com', telemetry: 'aws.bedrock' },
  ],
  profiles: {
    'bedrock-claude': {
      ...CLAUDE,
      // https://doc.routerhub.ai/prompt-caching.html
      rootCacheMark: false,
      hostedTools: ['tool_search', 'memory', 'computer', 'bash', 'text_editor'],
      // Others: "invalid beta flag".
      betas: [
        ...CLOUD_BETAS,
        'claude-code-20250219',
        'dev-full-thinking-2025-05-14',
        'effort-2025-11-24',
        'fine-grained-tool-streaming-2025-05-14',
        'output-128k-2025-02-19',
        'token-efficient-tools-2025-02-19',
        'tool-examples-2025-10-29',
      ],
      betaFields: ['output_config.format', 'tools.*.strict'],
      renameBetas: CLOUD_NAMES,
      errors: ERRORS,
    },
  },
  words: [
    {
      source: 'https://docs.aws.amazon.com/nova/latest/userguide, errors of Nova Reel',
      content_filter: [/blocked by (?:our |the )?content filter/i],
    },
    {
      source: 'github.com/aws-samples/bedrock-chat/issues/95',
      context_overflow: [/input (?:is )?too long/i],
    },
    {
      source: 'github.com/pkdone/paul-genai-test-tools-ts',
      context_overflow: [/too many input tokens/i],
    },
    {
      source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html',
      authentication: [
        /unrecognizedclientexception|expiredtokenexception|invalidsignatureexception|security token included in the request is (?:invalid|expired)/i,
      ],
      quota: [/servicequotaexceededexception/i],
      overloaded: [/modelnotreadyexception|serviceunavailableexception/i],
      rate_limit: [/\bthrottl(?:ing|ed)(?:exception)?\b|too many requests/i],
    },
    {
      source: 'github.com/RooCodeInc/Roo-Code/issues/9182',
      not_found: [/provided model identifier is invalid/i],
    },
    {
      source: 'github.com/dirkpetersen/our-chat/issues/3',
      not_found: [/access to the model with the specified model id/i],
    },
    {
      source: 'github.com/gsd-build/gsd-2/issues/5425',
      not_found: [/model version has reached the end of its life|marked by provider as legacy/i],
    },
    {
      source: 'github.com/anthropics/claude-code/issues/1466',
      not_found: [/on-demand throughput isn.t supported/i],
    },
    {
      source: 'github.com/anthropics/claude-code/issues/2656',
      permission: [
        /not (?:supported|allowed|available) (?:from|in) (?:unsupported |this |your )?(?:countries|country|region|location)/i,
      ],
    },
    {
      source: 'github.com/anthropics/claude-code/issues, "INVALID_PAYMENT_INSTRUMENT"',
      billing: [/\binvalid_payment_instrument\b/i],
    },
    {
      source: 'github.com/minorun365/agent-book/issues/29',
      quota: [/too many tokens per day/i],
    },
  ],
};
