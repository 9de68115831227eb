/** Decides for `inject: selective` whether the user's text calls for a web search. */

import { ownWords } from '../../../../conversation/agent-parts.ts';

/**
 * Small on purpose, as the manual documents it: an order to search, a time that models cannot know
 * about, or a subject that changes by the day, in English or Chinese. Code and quoted material are
 * removed first.
 */
const SIGNS: readonly RegExp[] = [
  /\b(?:search|google|look(?:ing)?\s+up)\b.{0,40}\b(?:web|internet|online|net)\b/i,
  /\b(?:web\s*search|search\s+(?:for|the)|google\s+(?:it|for)|look\s+(?:it|this|that)\s+up|browse\s+the)\b/i,
  /\b(?:latest|newest|most\s+recent|up[-\s]to[-\s]date|breaking)\b.{0,60}\b(?:news|version|release|update|price|version|model|results?|score|status|changes?|docs?|documentation)\b/i,
  /\b(?:today'?s?|tonight|yesterday'?s?|this\s+(?:week|month|year)'?s?|right\s+now|currently|as\s+of\s+(?:now|today|20\d\d))\b.{0,60}\b(?:news|weather|price|score|stock|rate|event|version|president|ceo|happen\w*|won|cost\w*)\b/i,
  /\b(?:news|weather|forecast|stock\s+price|exchange\s+rate|share\s+price|score)\b.{0,60}\b(?:today|now|tonight|yesterday|this\s+(?:week|month)|latest|in|for|about|of)\b/i,
  /\b(?:happen(?:s|ed|ing)?|won|wins?|beat|lost|died|resigned|elected|announced|launched|released)\b.{0,60}\b(?:today|tonight|yesterday|last\s+(?:night|week|weekend|month)|this\s+(?:week|weekend|morning|month|year)|right\s+now)\b/i,
  /\bgoogle\s+(?:the|this|that|it|for|some|how|what|who|when|where|whether|if)\b/i,
  /\b(?:prices?|(?:exchange|interest)\s+rates?)\b.{0,40}(?:\b(?:today|tonight|right\s+now|currently|at\s+the\s+moment|this\s+(?:week|morning))\b|\bnow\s*(?:[?.!]|$))/i,
  /\b(?:bitcoin|btc|ethereum|crypto|gold|silver|oil|dollar|euro)\b.{0,40}\b(?:now|today|right\s+now|currently)\b/i,
  /\bwhat(?:'s|\s+is)\s+(?:new|happening)\b/i,
  /(?:搜索|搜一下|搜搜|上网查|网上查|查一查|查一下|查询一下|联网|百度一下|谷歌一下)/,
  /(?:最新|最近|今天|今日|昨天|本周|这周|本月|目前|现在|实时|刚刚).{0,20}(?:新闻|消息|动态|版本|价格|股价|汇率|天气|比分|进展|情况|政策|发布|数据|行情)/,
  /(?:天气预报|股价|汇率|新闻|行情).{0,10}(?:怎么样|如何|多少|是什么|有哪些)/,
];

/** Characters: of a longer text only both ends are read, since the middle is usually material. */
const LONG = 4000;
const END = 1500;

export function wantsSearch(text: string): boolean {
  const own = ownWords(withoutFences(text)).replace(/`[^`\n]*`/g, ' ');
  const read = own.length > LONG ? `${own.slice(0, END)}\n${own.slice(-END)}` : own;
  return SIGNS.some((sign) => sign.test(read));
}

/** The text without code between fences; one that does not end is code to the end. */
const withoutFences = (text: string): string =>
  text
    .split('```')
    .filter((_, i) => i % 2 === 0)
    .join(' ');
