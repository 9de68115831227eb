export type PartName = 'model' | 'system' | 'tools' | 'messages' | 'settings' | 'answer';

export interface MeaningDiff {
  /** Parts that at least one side has, in this order. */
  readonly parts: readonly MeaningPart[];
  /** The two bodies speak different protocols. */
  readonly translated: boolean;
  /** Rules that are noted for the exchange and explain none of these changes. */
  readonly otherRules: readonly string[];
}

export interface MeaningPart {
  readonly name: PartName;
  /** `28 tools: the same, in another form`. */
  readonly title: string;
  /** Units (tools, messages, settings) that say the same. */
  readonly same: number;
  readonly changes: readonly MeaningChange[];
}

export interface MeaningChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** `tool Bash`, `message 3 (user), text`, `temperature`. */
  readonly what: string;
  /** JSON pointers into the first body and into the second, where they are known. */
  readonly at?: string;
  readonly to?: string;
  /** Texts to compare word by word; JSON is indented. */
  readonly before?: string;
  readonly after?: string;
  readonly rules: readonly string[];
}
