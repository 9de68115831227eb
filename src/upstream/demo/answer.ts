/** The demo model's answers: by script, in English and in Chinese. The same request gets the same answer. */

import { type Language, languageOf, quote, readIntent } from './intent.ts';
import type { Plan } from './reply.ts';
import type { DemoRequest, ToolOutcome } from './request.ts';
import { playRole } from './role-play.ts';
import { sampleOf } from './sample.ts';
import { planCalls } from './tools.ts';

/** The notice in front of everything that is not an explanation already. */
const NOTICE = { en: '[hopgate demo model] ', zh: '【hopgate 演示模型】' };

const THINK = /\bthink(?:ing)?\b|\breason(?:ing)?\b|思考|推理|想一想|想想/i;

export function planAnswer(request: DemoRequest): Plan {
  const role = playRole(request);
  if (role !== undefined) return { reasoning: '', ...role };
  const { question, effort } = request;
  const language = languageOf(question);
  const thinks =
    THINK.test(question) || (effort !== undefined && effort !== 'none' && effort !== 'minimal');
  const reasoning = thinks ? musings(question, language) : '';
  const calls = planCalls(request);
  if (calls.length === 0) return { reasoning, text: textFor(request, language), calls };
  // A forced call comes without words, and with stop sequences words might cut it off.
  const isSilent = request.choice === 'forced' || request.stop.length > 0;
  const names = [...new Set(calls.map(({ name }) => name))];
  const announced =
    language === 'zh' ? `正在调用工具：${names.join('、')}。` : `Calling ${names.join(' and ')}.`;
  return { reasoning, text: isSilent ? '' : NOTICE[language] + announced, calls };
}

function textFor(request: DemoRequest, language: Language): string {
  const { format, question, results } = request;
  if (format !== undefined) {
    const plain = {
      model: 'hopgate demo model',
      question,
      results: results.map(({ text }) => text),
    };
    const isFree = Object.keys(format).length === 0;
    return JSON.stringify(isFree ? plain : (sampleOf(format, { optional: true }) ?? {}));
  }
  if (results.length > 0) return NOTICE[language] + summary(results, language);
  const intent = readIntent(question);
  if (intent.kind === 'say') return NOTICE[language] + intent.text;
  if (intent.kind !== 'count') return explanation(request, language);
  return NOTICE[language] + Array.from({ length: intent.to }, (_, at) => at + 1).join(' ');
}

const musings = (question: string, language: Language): string =>
  language === 'zh'
    ? `用户说：“${quote(question, 60)}”。我是演示模型，不会真正推理：我只看这句话里有没有我认得的指令，然后给出固定的回答。`
    : `The user wrote: “${quote(question, 60)}”. I am a demo model and do not really reason: I look for an instruction I know in that sentence, and answer by script.`;

const some = (count: number, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`;

/** Once the results are there. */
function summary(results: readonly ToolOutcome[], language: Language): string {
  const zh = language === 'zh';
  const lines = results.slice(-20).map(({ name, text }) => {
    const said = text === '' ? (zh ? '（空）' : 'nothing') : `“${quote(text, 160)}”`;
    return zh ? `- ${name} 返回：${said}` : `- ${name} returned ${said}`;
  });
  const head = zh
    ? `工具运行完毕，共 ${results.length} 个结果：`
    : `Done. ${some(results.length, 'tool result')}:`;
  return [head, ...lines].join('\n');
}

/** The answer to anything it has no script for. */
function explanation({ question, tools, ...media }: DemoRequest, language: Language): string {
  const zh = language === 'zh';
  const asked = quote(question);
  const ended = /[.?!…。？！]$/.test(asked);
  const kinds = [
    [media.images, 'image', '张图片'],
    [media.documents, 'document', '个文档'],
    [media.audio, 'recording', '段音频'],
  ] as const;
  const given = kinds
    .filter(([count]) => count > 0)
    .map(([count, english, chinese]) => (zh ? `${count} ${chinese}` : some(count, english)));
  const offered = tools.length > 0;
  return zh
    ? [
        '这里是 hopgate 内置的演示模型，还没有连接任何真正的模型。',
        asked !== '' && `你问的是：“${asked}”${ended ? '' : '。'}`,
        given.length > 0 && `我收到了${given.join('、')}，但演示模型看不懂其中内容。`,
        '要得到真正的回答，请设置 API 密钥环境变量（例如 DEEPSEEK_API_KEY、ZHIPU_API_KEY 或 OPENAI_API_KEY）后重新启动，或在 hopgate.yaml 的 providers 下添加一个供应商。现在可以试试“说你好”或“数到20”。',
        offered && `（本次请求带有 ${tools.length} 个工具；发送“/demo tools”可逐个演示。）`,
      ]
        .filter(Boolean)
        .join('')
    : [
        "This is hopgate's built-in demo model; no real model is connected yet.",
        asked !== '' && `You asked: “${asked}${ended ? '' : '.'}”`,
        given.length > 0 &&
          `I was given ${given.join(' and ')}, which a demo model cannot look into.`,
        'To get real answers, set an API key such as OPENAI_API_KEY, ANTHROPIC_API_KEY or DEEPSEEK_API_KEY and start hopgate again, or add a provider under “providers” in hopgate.yaml. Until then, try “say hello” or “count to 20”.',
        offered &&
          `(This request offers ${some(tools.length, 'tool')}: “/demo tools” runs through them.)`,
      ]
        .filter(Boolean)
        .join(' ');
}
