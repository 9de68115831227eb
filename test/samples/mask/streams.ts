/** How each protocol streams a text, and secrets of all kinds. */

const json = JSON.stringify;
const data = (text: string) => `data: ${text}\n\n`;
const named = (name: string, text: string) => `event: ${name}\ndata: ${text}\n\n`;
const delta = (member: string, type: string, bit: string) =>
  named(
    'content_block_delta',
    `{"type":"content_block_delta","index":1,"delta":{"type":"${type}","${member}":${json(bit)}}}`,
  );
const said = (kind: string, bit: string) =>
  named(
    `response.${kind}.delta`,
    `{"type":"response.${kind}.delta","item_id":"it_1","output_index":0,"content_index":0,"delta":${json(bit)}}`,
  );

/** The event with a part of a text, by protocol and member. */
export const FORMS: Readonly<Record<string, (bit: string) => string>> = {
  'Chat, content': (bit) => data(`{"choices":[{"index":0,"delta":{"content":${json(bit)}}}]}`),
  'Chat, reasoning': (bit) =>
    data(`{"choices":[{"delta":{"reasoning_content":${json(bit)}},"index":0}]}`),
  'Chat, a call': (bit) =>
    data(
      `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":${json(bit)}}}]}}]}`,
    ),
  'Messages, text': (bit) => delta('text', 'text_delta', bit),
  'Messages, thinking': (bit) => delta('thinking', 'thinking_delta', bit),
  'Messages, a call': (bit) => delta('partial_json', 'input_json_delta', bit),
  'Responses, text': (bit) => said('output_text', bit),
  'Responses, reasoning': (bit) => said('reasoning_summary_text', bit),
  'Responses, a call': (bit) => said('function_call_arguments', bit),
  'Gemini, text': (bit) =>
    data(`{"candidates":[{"content":{"parts":[{"text":${json(bit)}}],"role":"model"},"index":0}]}`),
  'Gemini, a call': (bit) =>
    data(
      `{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":${json(bit)}}],"willContinue":true}}]},"index":0}]}`,
    ),
  'OpenRouter, reasoning': (bit) =>
    data(
      `{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":${json(bit)},"index":0}]}}]}`,
    ),
  'Chat, audio': (bit) =>
    data(`{"choices":[{"index":0,"delta":{"audio":{"id":"a1","transcript":${json(bit)}}}}]}`),
};

export const SECRETS = {
  known: 'correct horse "battery" staple 42',
  key: 'sk-proj-A1b2C3d4E5f6G7h8I9j0',
  token: `eyJhbGciOiJIUzI1NiJ9.eyJ${'x1'.repeat(60)}.c2lnbmF0dXJlX2hlcmU`,
  aws: 'AKIAIOSFODNN7EXAMPLE',
  zhipu: '0123456789abcdef0123456789abcdef.AbCdEfGh12345678',
  named: 'API_KEY=abcdefgh12345678ijkl',
  password: 'postgres://app:hunter2hunter2@db/x',
  pem: `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkq\n'.repeat(12)}-----END PRIVATE KEY-----`,
} as const;

/** What no file may show of them. */
export const HIDDEN: readonly string[] = [
  SECRETS.known,
  SECRETS.key.slice(3),
  SECRETS.token.slice(0, 12),
  SECRETS.aws.slice(4),
  SECRETS.zhipu.slice(0, 16),
  SECRETS.named.slice(8),
  'hunter2',
  'MIIEvQIBADANBgkq',
];

const MEMBERS = new Set([
  'content',
  'text',
  'delta',
  'arguments',
  'partial_json',
  'thinking',
  'reasoning_content',
  'stringValue',
  'summary',
  'transcript',
]);

/** The texts of a stream, each joined from its events: what a client would have shown. */
export function joinedTexts(sse: string): readonly string[] {
  const texts = new Map<string, string>();
  const walk = (value: unknown, member: string, place: string) => {
    if (typeof value === 'string') {
      if (!MEMBERS.has(member)) return;
      const key = `${member} ${place}`;
      texts.set(key, (texts.get(key) ?? '') + value);
    } else if (Array.isArray(value)) for (const one of value) walk(one, member, place);
    else if (typeof value === 'object' && value !== null) {
      const index = Object.entries(value)
        .filter(([name, one]) => name.endsWith('index') && typeof one === 'number')
        .map(([name, one]) => `${name}=${one}`)
        .join(',');
      for (const [name, one] of Object.entries(value)) walk(one, name, `${place}/${index}`);
    }
  };
  for (const [, text] of sse.matchAll(/^data: (.*)$/gm)) walk(JSON.parse(text!), '', '');
  return [...texts.values()];
}
