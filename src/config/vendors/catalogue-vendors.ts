/** Which vendor of the model catalogue a provider is: by its preset, or else by the address that it has. */

import { globTest } from '../../lib/text/glob.ts';
import { PRESET_ALIASES } from './presets.ts';

/**
 * The vendors in the catalogue, by their names at models.dev. Those that make models come first: a model that is
 * served by others too has the facts of its maker wherever a vendor's own are unknown.
 */
export const CATALOGUE_VENDORS: readonly string[] = [
  'anthropic',
  'openai',
  'google',
  'zai',
  'zhipuai',
  'deepseek',
  'moonshotai',
  'moonshotai-cn',
  'alibaba',
  'alibaba-cn',
  'minimax',
  'minimax-cn',
  'xai',
  'mistral',
  'cohere',
  'stepfun',
  'inception',
  'perplexity',
  'kimi-for-coding',
  'zai-coding-plan',
  'zhipuai-coding-plan',
  'google-vertex',
  'amazon-bedrock',
  'azure',
  'cerebras',
  'groq',
  'togetherai',
  'fireworks-ai',
  'deepinfra',
  'siliconflow',
  'siliconflow-cn',
  'modelscope',
  'huggingface',
  'nvidia',
  'openrouter',
];

/** By preset. Servers on this machine have no vendor: their models have facts, and no price. */
const BY_PRESET: Readonly<Record<string, string>> = {
  anthropic: 'anthropic',
  openai: 'openai',
  'openai-chat': 'openai',
  glm: 'zhipuai',
  'glm-coding': 'zhipuai-coding-plan',
  zai: 'zai',
  'zai-coding': 'zai-coding-plan',
  deepseek: 'deepseek',
  kimi: 'moonshotai',
  'kimi-cn': 'moonshotai-cn',
  'kimi-coding': 'kimi-for-coding',
  qwen: 'alibaba-cn',
  'qwen-intl': 'alibaba',
  minimax: 'minimax',
  'minimax-cn': 'minimax-cn',
  gemini: 'google',
  xai: 'xai',
  mistral: 'mistral',
  groq: 'groq',
  openrouter: 'openrouter',
  together: 'togetherai',
  azure: 'azure',
  'vertex-claude': 'google-vertex',
  'vertex-gemini': 'google-vertex',
  bedrock: 'amazon-bedrock',
};

/** By host (a glob) and the beginning of the path. The first match wins. */
const BY_ADDRESS: readonly (readonly [host: string, path: string, vendor: string])[] = [
  ['api.anthropic.com', '', 'anthropic'],
  ['api.openai.com', '', 'openai'],
  ['generativelanguage.googleapis.com', '', 'google'],
  ['aiplatform.googleapis.com', '', 'google-vertex'],
  ['*-aiplatform.googleapis.com', '', 'google-vertex'],
  ['aiplatform.*.rep.googleapis.com', '', 'google-vertex'],
  ['bedrock-runtime.*.amazonaws.com', '', 'amazon-bedrock'],
  ['bedrock-runtime.*.amazonaws.com.cn', '', 'amazon-bedrock'],
  ['*.openai.azure.com', '', 'azure'],
  ['*.services.ai.azure.com', '', 'azure'],
  ['*.cognitiveservices.azure.com', '', 'azure'],
  ['open.bigmodel.cn', '/api/coding/', 'zhipuai-coding-plan'],
  ['open.bigmodel.cn', '', 'zhipuai'],
  ['api.z.ai', '/api/coding/', 'zai-coding-plan'],
  ['api.z.ai', '', 'zai'],
  ['api.deepseek.com', '', 'deepseek'],
  ['api.moonshot.ai', '', 'moonshotai'],
  ['api.moonshot.cn', '', 'moonshotai-cn'],
  ['api.kimi.com', '/coding', 'kimi-for-coding'],
  ['dashscope.aliyuncs.com', '', 'alibaba-cn'],
  ['dashscope-intl.aliyuncs.com', '', 'alibaba'],
  ['api.minimax.io', '', 'minimax'],
  ['api.minimaxi.com', '', 'minimax-cn'],
  ['api.x.ai', '', 'xai'],
  ['api.mistral.ai', '', 'mistral'],
  ['api.groq.com', '', 'groq'],
  ['openrouter.ai', '', 'openrouter'],
  ['api.together.xyz', '', 'togetherai'],
  ['api.together.ai', '', 'togetherai'],
  ['api.fireworks.ai', '', 'fireworks-ai'],
  ['api.deepinfra.com', '', 'deepinfra'],
  ['api.cerebras.ai', '', 'cerebras'],
  ['api.cohere.ai', '', 'cohere'],
  ['api.cohere.com', '', 'cohere'],
  ['api.siliconflow.com', '', 'siliconflow'],
  ['api.siliconflow.cn', '', 'siliconflow-cn'],
  ['api-inference.modelscope.cn', '', 'modelscope'],
  ['router.huggingface.co', '', 'huggingface'],
  ['integrate.api.nvidia.com', '', 'nvidia'],
  ['api.perplexity.ai', '', 'perplexity'],
  ['api.stepfun.com', '', 'stepfun'],
  ['api.inceptionlabs.ai', '', 'inception'],
];

/** The vendor in the catalogue; undefined for an address that is no vendor's. */
export function catalogueVendor(preset: string | undefined, baseUrl: string): string | undefined {
  if (preset !== undefined) {
    const name = Object.hasOwn(PRESET_ALIASES, preset) ? PRESET_ALIASES[preset]! : preset;
    if (Object.hasOwn(BY_PRESET, name)) return BY_PRESET[name];
  }
  if (!URL.canParse(baseUrl)) return undefined;
  const { hostname, pathname } = new URL(baseUrl);
  return BY_ADDRESS.find(
    ([host, path]) => pathname.startsWith(path) && globTest(host)(hostname),
  )?.[2];
}
