/** Context windows and output limits of well-known models, for clients that need them in their settings. */

export interface ModelLimits {
  /** Tokens. */
  readonly context: number;
  readonly output: number;
}

// From the vendors' model pages; for a family with different limits, the smallest. The first match wins.
const LIMITS: readonly (readonly [RegExp, number, number])[] = [
  [/claude-/, 200_000, 64_000],
  [/glm-4\.5/, 131_072, 98_304],
  [/glm-(4\.[6-9]|[5-9])/, 200_000, 131_072],
  [/deepseek-/, 131_072, 8_192],
  [/kimi-k2/, 262_144, 32_768],
  [/qwen3-coder-plus|qwen3-coder-flash/, 1_000_000, 65_536],
  [/qwen3/, 262_144, 32_768],
  [/minimax-m2/, 204_800, 131_072],
  [/gpt-5/, 400_000, 128_000],
  [/gpt-4\.1/, 1_047_576, 32_768],
  [/gpt-4o/, 128_000, 16_384],
  [/gemini-(2\.5|3)/, 1_048_576, 65_536],
  [/grok-4/, 256_000, 64_000],
];

/** The limits of a model by its name (with or without a provider, in any case); undefined when unknown. */
export function limitsOf(model: string): ModelLimits | undefined {
  const name = model.toLowerCase();
  const found = LIMITS.find(([pattern]) => pattern.test(name));
  return found && { context: found[1], output: found[2] };
}
