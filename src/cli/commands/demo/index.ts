import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { environmentFrom } from '../../../config/environment.ts';
import { parseConfig } from '../../../config/load.ts';
import { NO_AUTH } from '../../../config/sections/auth.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import type { CommandSpec, Invocation } from '../../command.ts';
import { loadOrReport } from '../../load-config.ts';
import { Cancelled, openQuestions } from '../../questions.ts';
import { cutWith, type Terminal } from '../../terminal.ts';
import { type ChatLine, type SendRequest, seedMemories, takeTurn } from './chat-turn.ts';
import { GROUP_CHATS, type Language } from './group-chats.ts';

export const DEMO: CommandSpec = {
  name: 'demo',
  group: 'debug',
  summary: 'play a chat app: a group chat with three characters that remember',
  description: [
    'A group chat in the terminal. Each character has its own memory space. It recalls before it speaks, may recall more, and remembers what is said. A line marked ⚙ names the tools that ran in a turn; an app gets each as an event.',
    'Needs no configuration, key or network: the built-in model plays all three characters. With --model, a model of your configuration plays them. Nothing is kept; the memory is in a temporary folder.',
  ],
  arguments: [{ name: 'which', summary: 'what to play', choices: ['group-chat'] }],
  options: {
    model: {
      short: 'm',
      value: 'NAME',
      summary: 'the model to use, from your configuration',
      default: 'the built-in demo model',
    },
    lang: {
      value: 'LANGUAGE',
      summary: 'the language they speak',
      choices: ['zh', 'en'],
      default: 'zh where $LANG says so, else en',
    },
    script: { summary: 'stop after the script, without asking you to join' },
  },
  examples: {
    'hopgate demo group-chat': 'Watch them talk, then join in.',
    'hopgate demo group-chat --lang zh --model deepseek/deepseek-v4-flash':
      'The same in Chinese, with a real model.',
  },
  exits: { 0: 'done', 1: 'the model could not answer, or the configuration cannot be used' },
  run: runDemo,
};

async function runDemo(invocation: Invocation): Promise<number> {
  const { io, err } = invocation;
  const model = invocation.text('model') ?? 'demo';
  // A temporary folder: the demo must not touch the memory of real conversations.
  const home = mkdtempSync(join(tmpdir(), 'hopgate-demo-'));
  try {
    const environment = { ...io.environment, home };
    const config = await configOf(invocation, home);
    if (config === undefined) return 1;
    const services = await invocation.services();
    const gateway = services.gateway({ config, environment, repair: true, remembers: true });
    await playGroupChat(invocation, (request) => gateway.handle(request), model).finally(() =>
      gateway.close(),
    );
    return 0;
  } catch (thrown) {
    err.line(messageOf(thrown));
    return 1;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The user's configuration where a model is named, else the built-in model; neither records anything. */
async function configOf(invocation: Invocation, home: string): Promise<Config | undefined> {
  const path = join(home, 'memory.db');
  if (invocation.text('model') !== undefined) {
    const own = await loadOrReport(invocation);
    return own && leavingNoTrace(own, path);
  }
  const loaded = parseConfig('{}', 'demo', environmentFrom({}, home));
  return loaded.ok ? leavingNoTrace(loaded.config, path) : undefined;
}

const leavingNoTrace = (config: Config, path: string): Config => ({
  ...config,
  auth: NO_AUTH,
  samples: { ...config.samples, mode: 'off' },
  memory: { ...config.memory, enabled: true, path, external: undefined },
});

async function playGroupChat(
  { out, io, err, text, flag }: Invocation,
  send: SendRequest,
  model: string,
): Promise<void> {
  const language = languageOf(text('lang'), io.environment.variable('LANG'));
  const { characters, script, user } = GROUP_CHATS[language];
  for (const character of characters) await seedMemories(send, character);
  const names = characters.map(({ name }) => name).join(language === 'zh' ? '、' : ', ');
  out.line(
    out.paint(
      'dim',
      language === 'zh'
        ? `群聊演示：${names}，模型 ${model}。每个角色有自己的记忆，每轮先回忆再发言；⚙ 行是这一轮用到的工具。`
        : `A group chat: ${names}, model ${model}. Each of them has a memory and recalls before it speaks; lines with ⚙ name the tools of a turn.`,
    ),
  );
  const history: ChatLine[] = [];
  const playRound = async (userText: string): Promise<void> => {
    out.line();
    out.line(`${out.paint('bold', user)}  ${userText}`);
    const round: ChatLine[] = [];
    for (const self of characters) {
      const tools = toolLine(out);
      let begun = false;
      const reply = await takeTurn({
        send,
        model,
        locale: language,
        self,
        members: characters,
        history,
        user,
        userText,
        round,
        onEvent: tools.take,
        onText: (more) => {
          if (!begun) {
            tools.print();
            io.stdout.write(`${out.paint('cyan', self.name)}  `);
          }
          begun = true;
          io.stdout.write(more);
        },
      });
      out.line();
      round.push({ from: self.name, text: reply });
    }
    history.push({ from: user, text: userText }, ...round);
  };
  for (const userText of script) await playRound(userText);
  if (!io.interactive || flag('script')) return;
  const questions = openQuestions(io, err);
  try {
    for (;;) {
      out.line();
      const userText = await questions.ask(
        language === 'zh' ? '你来说（空行结束）>' : 'You (empty: end) >',
      );
      if (userText === '') return;
      await playRound(userText);
    }
  } catch (thrown) {
    if (!(thrown instanceof Cancelled)) throw thrown;
  } finally {
    questions.close();
  }
}

interface ToolLine {
  /** A tool event of this turn. */
  take(event: JsonObject): void;
  /** Prints the line once, if any tool ran. */
  print(): void;
}

/** One line a turn: which tools ran how often, and what the last recall found. */
function toolLine(out: Terminal): ToolLine {
  const counts = new Map<string, number>();
  let remembered = '';
  return {
    take({ event, name, result }) {
      if (event === 'tool_call') {
        counts.set(String(name), (counts.get(String(name)) ?? 0) + 1);
        return;
      }
      if (isObject(result)) remembered = rememberedTexts(result) || remembered;
    },
    print() {
      if (counts.size === 0) return;
      const names = [...counts].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`));
      const found = remembered === '' ? '' : ` → ${remembered}`;
      counts.clear();
      const line = `  ⚙ ${names.join(', ')}${found}`.replaceAll(/\n|\\n/g, ' / ');
      out.line(out.paint('dim', cutWith(line, out.width, '…')));
    },
  };
}

function rememberedTexts(result: JsonObject): string {
  const events = (result.events ?? []) as readonly { readonly text: string }[];
  return events.map(({ text }) => `“${text}”`).join(' ');
}

function languageOf(option: string | undefined, lang: string | undefined): Language {
  if (option === 'zh' || option === 'en') return option;
  return lang?.startsWith('zh') === true ? 'zh' : 'en';
}
