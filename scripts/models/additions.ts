/** Facts of models that the two sources of `scripts/models.ts` do not have, each with its source. */

/** As a line of the file of models, with the vendor it belongs to; laid over what the sources say of the model. */
export interface AddedModel {
  readonly vendor: string;
  readonly id: string;
  /** Starts from what is known of this model of the vendor. */
  readonly from?: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** https://platform.kimi.ai/docs/guide/kimi-k3-quickstart: the last K2.5 and v1 names ended on 31 August 2026. */
const KIMI_ENDED = [
  'kimi-k2.5',
  'moonshot-v1-8k',
  'moonshot-v1-32k',
  'moonshot-v1-128k',
  'moonshot-v1-auto',
  'moonshot-v1-8k-vision-preview',
  'moonshot-v1-32k-vision-preview',
  'moonshot-v1-128k-vision-preview',
].map((id) => ({ id, facts: { ends: '2026-08-31', next: 'kimi-k3' } }));

export const ADDED_MODELS: readonly AddedModel[] = [
  // https://platform.claude.com/docs/en/about-claude/pricing
  {
    vendor: 'anthropic',
    id: 'claude-fable-5-2',
    from: 'claude-fable-5-1',
    facts: {
      name: 'Claude Fable 5.2',
      usd: {
        ...{ input: 8, output: 40, cached: 0.2, cache_write: 10, cache_write_1h: 16, search: 10 },
        // https://platform.claude.com/docs/en/manage-claude/data-residency
        regions: { us: 1.1 },
      },
    },
  },
  // https://api-docs.deepseek.com/updates: "deepseek-chat" and "deepseek-reasoner" ended on 24 July 2026.
  ...['deepseek-chat', 'deepseek-reasoner'].map((id) => ({
    vendor: 'deepseek',
    id,
    facts: { ends: '2026-07-24', next: 'deepseek-v4-flash' },
  })),
  ...['moonshotai', 'moonshotai-cn'].flatMap((vendor) =>
    KIMI_ENDED.map((ended) => ({ vendor, ...ended })),
  ),
];
