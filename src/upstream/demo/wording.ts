/** Texts of the demo model, in English and in Chinese. */

import type { DemoRequest } from './chat-request.ts';
import type { ToolOutcome } from './chat-tail.ts';

export type Language = 'en' | 'zh';

/** The language of the question: Chinese where a good part of its letters is. */
export function languageOf(text: string): Language {
  const start = text.slice(0, 2000);
  const han = start.match(/\p{Script=Han}/gu)?.length ?? 0;
  const letters = start.match(/\p{L}/gu)?.length ?? 0;
  return han > 0 && han * 5 >= letters ? 'zh' : 'en';
}

/** The start of the text on one line, with an ellipsis where it was longer. */
export function quote(text: string, length = 80): string {
  const whole = text.trim();
  const start = whole.slice(0, length * 20);
  const line = [...start.replace(/\s+/g, ' ')];
  const fits = line.length <= length && start.length === whole.length;
  return fits ? line.join('') : `${line.slice(0, length).join('').trimEnd()}…`;
}

/** The short notice in front of everything that is not an explanation already. */
export const NOTICE: Readonly<Record<Language, string>> = {
  en: '[hopgate demo model] ',
  zh: '【hopgate 演示模型】',
};

const some = (count: number, one: string, many: string) =>
  count === 1 ? `1 ${one}` : `${count} ${many}`;

function mediaWords(request: DemoRequest, language: Language): string {
  const { images, documents, audio } = request;
  const parts =
    language === 'zh'
      ? [
          images && `${images} 张图片`,
          documents && `${documents} 个文档`,
          audio && `${audio} 段音频`,
        ]
      : [
          images && some(images, 'image', 'images'),
          documents && some(documents, 'document', 'documents'),
          audio && some(audio, 'recording', 'recordings'),
        ];
  const given = parts.filter(Boolean);
  if (given.length === 0) return '';
  return language === 'zh'
    ? `我收到了${given.join('、')}，但演示模型看不懂其中内容。`
    : ` I was given ${given.join(' and ')}, which a demo model cannot look into.`;
}

/** The answer to anything it has no script for. */
export function explain(request: DemoRequest, language: Language): string {
  const asked = quote(request.question);
  const media = mediaWords(request, language);
  const tools = request.tools.length;
  const ended = /[.?!…。？！]$/.test(asked);
  if (language === 'zh') {
    const heard = asked === '' ? '' : `你问的是：“${asked}”${ended ? '' : '。'}`;
    const offered =
      tools > 0 ? `（本次请求带有 ${tools} 个工具；发送“/demo tools”可逐个演示。）` : '';
    return `这里是 hopgate 内置的演示模型，还没有连接任何真正的模型。${heard}${media}要得到真正的回答，请设置 API 密钥环境变量（例如 DEEPSEEK_API_KEY、ZHIPU_API_KEY 或 OPENAI_API_KEY）后重新启动，或在 hopgate.yaml 的 providers 下添加一个供应商。现在可以试试“说你好”或“数到20”。${offered}`;
  }
  const heard = asked === '' ? '' : ` You asked: “${asked}${ended ? '' : '.'}”`;
  const offered =
    tools > 0
      ? ` (This request offers ${some(tools, 'tool', 'tools')}: “/demo tools” runs through them.)`
      : '';
  return `This is hopgate's built-in demo model; no real model is connected yet.${heard}${media} To get real answers, set an API key such as OPENAI_API_KEY, ANTHROPIC_API_KEY or DEEPSEEK_API_KEY and start hopgate again, or add a provider under “providers” in hopgate.yaml. Until then, try “say hello” or “count to 20”.${offered}`;
}

/** What it "thinks" before it answers. */
export function musings(request: DemoRequest, language: Language): string {
  const asked = quote(request.question, 60);
  return language === 'zh'
    ? `用户说：“${asked}”。我是演示模型，不会真正推理：我只看这句话里有没有我认得的指令，然后给出固定的回答。`
    : `The user wrote: “${asked}”. I am a demo model and do not really reason: I look for an instruction I know in that sentence, and answer by script.`;
}

/** Said before a call. */
export function announce(names: readonly string[], language: Language): string {
  return language === 'zh'
    ? `${NOTICE.zh}正在调用工具：${names.join('、')}。`
    : `${NOTICE.en}Calling ${names.join(' and ')}.`;
}

/** Said once the results are there. */
export function summarize(results: readonly ToolOutcome[], language: Language): string {
  const shown = results.slice(-20);
  const lines = shown.map(({ name, text }) =>
    language === 'zh'
      ? `- ${name} 返回：${text === '' ? '（空）' : `“${quote(text, 160)}”`}`
      : `- ${name} returned ${text === '' ? 'nothing' : `“${quote(text, 160)}”`}`,
  );
  const head =
    language === 'zh'
      ? `${NOTICE.zh}工具运行完毕，共 ${results.length} 个结果：`
      : `${NOTICE.en}Done. ${some(results.length, 'tool result', 'tool results')}:`;
  return [head, ...lines].join('\n');
}
