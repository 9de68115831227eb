/** Reads from a vendor's error that it takes no cache marks, no breakpoints, or no lifetime of a mark. */

import type { SettingRefusal } from './refused-settings.ts';

/** Refusals of a single mark, not of marks in general: on thinking or empty text, too many, a long lifetime after a short one. */
const ONE_MARK =
  /thinking\.cache_control|empty text|maximum of \d+ blocks|must not come after|(?:^| )tools\.[\d*]{1,6}\.(?:[a-z]{1,20}\.)?cache_control/;

/** Each sentence is a row of test/features/prompt-cache/refused.test.ts, with its source. In lower case, without quotes. */
const REFUSALS: readonly (readonly [RegExp, Omit<SettingRefusal, 'kind'>])[] = [
  [
    /cache_control(?:\.ephemeral)?\.ttl\b.{0,40}(?:extra inputs|not (?:supported|permitted|allowed)|unknown|unexpected|unsupported)/,
    { setting: 'cache_control.ttl', paths: [['**', 'ttl']] },
  ],
  [
    /(?:[\w*\])]\.|property |field |\()cache_control\b.{0,40}(?:extra inputs|unsupported|unexpected|expected one of|not (?:supported|permitted|allowed))|unknown (?:field|parameter):? (?:\S{1,80}\.)?cache_control\b|cache_control (?:is|was|are) (?:not|un)\W?(?:supported|permitted|allowed|available)|(?:not support|did not allow) (?:cache_control|prompt caching)|prompt caching is not (?:supported|available|enabled)/,
    {
      setting: 'cache_control',
      facts: { cacheMarks: false },
      paths: [['**', 'cache_control']],
    },
  ],
  [
    /prompt_cache_breakpoint\b.{0,80}(?:extra inputs|unsupported|unexpected|not (?:supported|permitted|allowed|available))|(?:unknown|unsupported|unrecognized|unexpected)\b.{0,40}\bprompt_cache_breakpoint\b/,
    {
      setting: 'prompt_cache_breakpoint',
      facts: { breakpointsAt: '' },
      paths: [['**', 'prompt_cache_breakpoint']],
    },
  ],
];

/** @param words of the error, in lower case and without quotes */
export function refusedMarks(words: string): SettingRefusal | undefined {
  if (!words.includes('cach') || ONE_MARK.test(words)) return undefined;
  for (const [pattern, refusal] of REFUSALS) {
    if (pattern.test(words)) return { kind: 'setting', ...refusal };
  }
  return undefined;
}
