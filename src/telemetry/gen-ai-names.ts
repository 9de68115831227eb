/** The names of the OpenTelemetry conventions for generative AI: the one place where they stand. */

/**
 * - `current`: the repository semantic-conventions-genai (state of October 2026, in development)
 * - `older`: semantic-conventions up to 1.36, which many backends still read
 */
export type GenAiNames = 'current' | 'older';

interface Name {
  readonly current: string;
  /** Left out: the same. */
  readonly older?: string;
}

/** Attributes of spans. */
export const GEN_AI_ATTRIBUTES = {
  operation: { current: 'gen_ai.operation.name' },
  provider: { current: 'gen_ai.provider.name', older: 'gen_ai.system' },
  conversation: { current: 'gen_ai.conversation.id' },
  outputType: { current: 'gen_ai.output.type' },
  requestModel: { current: 'gen_ai.request.model' },
  requestStream: { current: 'gen_ai.request.stream' },
  maxTokens: { current: 'gen_ai.request.max_tokens' },
  temperature: { current: 'gen_ai.request.temperature' },
  topP: { current: 'gen_ai.request.top_p' },
  topK: { current: 'gen_ai.request.top_k' },
  seed: { current: 'gen_ai.request.seed' },
  stopSequences: { current: 'gen_ai.request.stop_sequences' },
  choices: { current: 'gen_ai.request.choice.count' },
  frequencyPenalty: { current: 'gen_ai.request.frequency_penalty' },
  presencePenalty: { current: 'gen_ai.request.presence_penalty' },
  reasoningLevel: { current: 'gen_ai.request.reasoning.level' },
  previousResponse: { current: 'gen_ai.request.previous_response.id' },
  responseId: { current: 'gen_ai.response.id' },
  responseModel: { current: 'gen_ai.response.model' },
  systemInstructions: { current: 'gen_ai.system_instructions' },
  inputMessages: { current: 'gen_ai.input.messages' },
  outputMessages: { current: 'gen_ai.output.messages' },
  finishReasons: { current: 'gen_ai.response.finish_reasons' },
  firstChunk: { current: 'gen_ai.response.time_to_first_chunk' },
  inputTokens: { current: 'gen_ai.usage.input_tokens' },
  outputTokens: { current: 'gen_ai.usage.output_tokens' },
  cacheReadTokens: { current: 'gen_ai.usage.cache_read.input_tokens' },
  cacheWriteTokens: {
    current: 'gen_ai.usage.cache_write.input_tokens',
    older: 'gen_ai.usage.cache_creation.input_tokens',
  },
  reasoningTokens: { current: 'gen_ai.usage.reasoning.output_tokens' },
  toolName: { current: 'gen_ai.tool.name' },
  toolType: { current: 'gen_ai.tool.type' },
} as const satisfies Readonly<Record<string, Name>>;

export type GenAiAttribute = keyof typeof GEN_AI_ATTRIBUTES;

/** The name of an attribute in one of the two sets. */
export function attributeName(attribute: GenAiAttribute, names: GenAiNames): string {
  const name: Name = GEN_AI_ATTRIBUTES[attribute];
  return names === 'older' ? (name.older ?? name.current) : name.current;
}

interface MetricName {
  readonly current: string;
  readonly older: string;
  readonly unit: 's' | '{token}';
  /** The older names count both kinds of tokens in one metric; this attribute tells them apart. */
  readonly tokenType?: 'input' | 'output';
}

/** Histograms. The text exposition always has the current names. */
export const GEN_AI_METRICS = {
  duration: {
    current: 'gen_ai.client.inference.duration',
    older: 'gen_ai.client.operation.duration',
    unit: 's',
  },
  firstChunk: {
    current: 'gen_ai.client.inference.time_to_first_chunk',
    older: 'gen_ai.client.operation.time_to_first_chunk',
    unit: 's',
  },
  inputTokens: {
    current: 'gen_ai.client.inference.operation.input_tokens',
    older: 'gen_ai.client.token.usage',
    unit: '{token}',
    tokenType: 'input',
  },
  outputTokens: {
    current: 'gen_ai.client.inference.operation.output_tokens',
    older: 'gen_ai.client.token.usage',
    unit: '{token}',
    tokenType: 'output',
  },
} as const satisfies Readonly<Record<string, MetricName>>;

/** A metric as Prometheus spells it: `gen_ai.client.inference.duration` → `gen_ai_client_inference_duration_seconds`. */
export function prometheusName({ current, unit }: Pick<MetricName, 'current' | 'unit'>): string {
  return `${current.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`;
}

export const TOKEN_TYPE = 'gen_ai.token.type';

/** Labels of the text exposition as attributes. */
export const GEN_AI_LABELS: Readonly<Record<string, GenAiAttribute>> = {
  gen_ai_operation_name: 'operation',
  gen_ai_provider_name: 'provider',
  gen_ai_request_model: 'requestModel',
};

/** What is done, by protocol and endpoint; a protocol that is not listed is a chat. */
const OPERATIONS: Readonly<Record<string, string>> = {
  'google-gemini': 'generate_content',
  embeddings: 'embeddings',
  completions: 'text_completion',
  'images-generations': 'generate_content',
  'images-edits': 'generate_content',
  'images-variations': 'generate_content',
  'audio-speech': 'generate_content',
  'audio-transcriptions': 'generate_content',
  'audio-translations': 'generate_content',
  // The conventions have no name for these.
  rerank: 'rerank',
  moderations: 'moderations',
};

export const operationOf = (protocol: string): string => OPERATIONS[protocol] ?? 'chat';
