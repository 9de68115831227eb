/** Google's Gemini API, in its own protocol and as Chat. */

import { OPENAI_ONLY } from '../facts.ts';
import type { Vendor } from '../vendor.ts';

const SIGNED = { callSignatures: true } as const;

export const google: Vendor = {
  name: 'Gemini',
  telemetry: 'gcp.gemini',
  topic: { section: '/recipes#claude-code-on-gemini', words: 'gemini' },
  presets: {
    gemini: {
      protocol: 'google-gemini',
      profile: 'google-gemini',
      endpoints: {
        'google-gemini': {
          baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
          profile: 'google-gemini',
        },
        'openai-chat': {
          baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
          profile: 'gemini',
        },
      },
      variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
      models: ['gemini-3.8-flash', 'gemini-3.5-flash-lite', 'gemini-*', 'gemma-*'],
      aliases: ['google'],
      catalogue: 'google',
      discovered: true,
    },
  },
  profiles: {
    gemini: {
      dropParams: [...OPENAI_ONLY, 'logit_bias', 'user'],
      temperature: { min: 0, max: 2 },
      maxStops: 5,
      parallelToolsParam: false,
      strictTools: false,
      developerRole: false,
      reasoningField: 'none',
      reasoningParam: 'reasoning_effort',
      documents: false,
      // It signs texts, too, and wants them back: https://ai.google.dev/gemini-api/docs/thought-signatures
      models: { 'gemini-3*': SIGNED, 'gemini-4*': SIGNED, 'gemini-flash*': SIGNED },
    },
    // https://ai.google.dev/gemini-api/docs/thinking, …/thought-signatures, …/function-calling
    'google-gemini': {
      exactStreams: true,
      temperature: { min: 0, max: 2 },
      maxStops: 5,
      parallelToolsParam: false,
      strictTools: false,
      hostedTools: ['web_search', 'web_fetch', 'code_execution'],
      // Up to 2.5: "Built-in tools ({google_search}) and Function Calling cannot be combined". From 3 on only for those
      // who send all parts of the searches back (…/docs/tool-combination), which only Gemini's own clients can.
      hostedWithFunctions: false,
    },
  },
  words: [
    {
      source: 'https://ai.google.dev/gemini-api/docs/troubleshooting',
      context_overflow: [
        /input (?:length|token count)[^.]{0,60}exceed/i,
        /exceeds the maximum number of tokens allowed/i,
      ],
      invalid_request: [
        /permission to access the file\b|cachedcontent not found|access the cached ?content/i,
      ],
      authentication: [
        /\bAPI_KEY_(?:INVALID|EXPIRED|SERVICE_BLOCKED)\b|\bACCESS_TOKEN_EXPIRED\b/,
        /api key (?:expired|not found|not valid)|pass a valid api key/i,
        /api key was reported as leaked|invalid authentication credentials/i,
      ],
      not_found: [
        /models\/\S{1,90} is not found|is not (?:found|supported) for api version|is no longer available|access tunedmodels|not allowed to use publisher model/i,
      ],
      permission: [
        /user location is not supported/i,
        /\bSERVICE_DISABLED\b|\bAPI_KEY_(?:HTTP_REFERRER|IP_ADDRESS|ANDROID_APP|IOS_APP)_BLOCKED\b/,
      ],
      quota: [/exceeded its monthly spending cap/i],
      billing: [
        /billing account|prepayment credits|enable billing|requires billing to be enabled/i,
      ],
      // Cloud Code says it with a 429.
      capacity: [/no capacity available for model/i],
      overloaded: [/model is overloaded|experiencing high demand/i],
      rate_limit: [/\bRATE_LIMIT_EXCEEDED\b|\bRESOURCE_EXHAUSTED\b|ratelimitexceeded/i],
    },
    {
      source: 'https://cloud.google.com/apis/docs/system-parameters',
      invalid_request: [/\bUSER_PROJECT_DENIED\b|x-goog-user-project|permission to use project/i],
    },
  ],
};
